//! Two replicas, one leader at a time, and no leader that lives long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod mixed_faults;
mod replicas;

use std::time::Duration;

use tests::churn::{Churn, Going};
use tests::{
    Observer, assert_never_shared, assert_patches_end, assert_patches_never_share, cluster,
    create_nodes, delete_nodes, mk_node,
};
use tokio_util::sync::CancellationToken;

use crate::replicas::{End, Replicas};

/// Nodes alive at a time.
const ALIVE: usize = 2_000;
const GOING: Going = Going { old: 17, young: 3 };
/// 4,096 blocks. The Services take 1,024 and foreign Nodes 72, so 3,000 are left: 1.5 times as
/// many as Nodes.
const ARGS: &str = "--cluster-cidr=10.0.0.0/20 --node-cidr-mask-size=32 \
     --service-cluster-ip-range=10.0.0.0/22";
const FOREIGN: [(&str, &str); 2] = [("foreign-64", "10.0.4.0/26"), ("foreign-8", "10.0.4.64/29")];
const BASELINE: f64 = 1_024.0 / 4_096.0;

/// How many leaders are ended, each wire in each way, and how long each is let to lead at least;
/// none ends before it has assigned a block.
const TERMS: usize = 6;
const TERM: Duration = Duration::from_secs(3);
/// For thousands of Nodes on a busy machine.
const LONG: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn every_leader_assigns_blocks_and_none_is_shared_or_lost_while_leaders_and_nodes_come_and_go()
 {
    let cluster = cluster().await;
    let client = cluster.client().await;
    let nodes = Observer::start(&client).await;
    create_nodes(&client, FOREIGN.map(|(name, cidr)| mk_node(name).cidr(cidr))).await;
    let mut replicas = Replicas::start(&cluster, ARGS).await;
    let churn = Churn::begin(&client, ALIVE, GOING).await;
    let calm = CancellationToken::new();
    let churning = tokio::spawn(churn.run(calm.clone()));

    for term in 0..TERMS {
        let leader = replicas.leader().await;
        // Counted from the acquisition of the lease, whatever the leader makes of its time.
        tokio::time::sleep(TERM).await;
        replicas.until_assigned(leader).await;
        let how = if term % 2 == 0 { End::Kill } else { End::Terminate };
        let assigned = replicas.end(leader, how).await;
        eprintln!("term {term}: {assigned} Nodes assigned, then {how:?}");
    }
    calm.cancel();
    let alive = churning.await.unwrap();
    assert_eq!(alive.len(), ALIVE);

    let leader = replicas.leader().await;
    let all = ALIVE + FOREIGN.len();
    let what = "every Node that is left has a block";
    nodes.until_within(LONG, what, |now| now.len() == all && now.assigned() == all).await;
    delete_nodes(&client, alive.into_iter().chain(FOREIGN.map(|(name, _)| name.to_owned()))).await;
    nodes.until_within(LONG, "all Nodes are gone", |now| now.is_empty()).await;
    replicas.until_back_at(leader, BASELINE).await;

    let history = nodes.history();
    let patches = replicas.node_patches();
    assert_never_shared(&history, &[]);
    assert_patches_never_share(&patches, &history, &[]);
    assert_patches_end(&patches);
    let uids: std::collections::HashSet<_> = history.iter().map(|seen| &seen.uid).collect();
    eprintln!("{} Nodes in all, {} PATCHes", uids.len(), patches.len());
}
