//! Two replicas, one leader at a time, and no leader that lives long.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod mixed_faults;
mod replicas;
mod warm_standby;

use std::time::Duration;

use tests::churn::{Churn, Going};
use tests::{
    Allocator, Observer, Vms, assert_never_shared, assert_patches_end, assert_patches_never_share,
    cluster, create_nodes, delete_nodes, mk_node,
};
use tokio_util::sync::CancellationToken;

use crate::replicas::{End, Replicas};

/// 4,096 blocks. The Services take 1,024 and foreign Nodes 72, so 3,000 are left: 1.5 times as
/// many as Nodes at the most.
const ARGS: &str = "--cluster-cidr=10.0.0.0/16 --node-cidr-mask-size=28 \
     --service-cluster-ip-range=10.0.0.0/18";
/// 512 blocks, which come round while Nodes do: one that is not freed serves no Node again.
const CLOUD_ARGS: &str = "--cluster-cidr=10.1.0.0/19 --node-cidr-mask-size=28";
const FOREIGN: [(&str, &str); 2] = [("foreign-64", "10.0.64.0/22"), ("foreign-8", "10.0.68.0/25")];
const BASELINE: f64 = 1_024.0 / 4_096.0;

/// Minimum time of each leader; none ends before it has assigned a block.
const TERM: Duration = Duration::from_secs(3);
/// Time limit for thousands of Nodes on a busy machine.
const LONG: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn every_leader_assigns_blocks_and_none_is_shared_or_lost_while_leaders_and_nodes_come_and_go()
 {
    // Leaders end in each way with each wire.
    let going = Going { old: 9, young: 2 };
    leaders_and_nodes_come_and_go(Allocator::Range, 1_000, going, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_for_blocks_of_cluster_cidrs() {
    let going = Going { old: 8, young: 2 };
    leaders_and_nodes_come_and_go(Allocator::MultiCidr, 400, going, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_for_what_a_cloud_gives_again_and_again() {
    let going = Going { old: 8, young: 2 };
    leaders_and_nodes_come_and_go(Allocator::Cloud, 200, going, 2).await;
}

/// Keeps this number of Nodes alive while this number of leaders is ended.
async fn leaders_and_nodes_come_and_go(
    allocator: Allocator,
    alive: usize,
    going: Going,
    terms: usize,
) {
    let cluster = cluster().await;
    allocator.prepare(&cluster).await;
    let client = cluster.client().await;
    let nodes = Observer::start(&client).await;
    create_nodes(&client, FOREIGN.map(|(name, cidr)| mk_node(name).cidr(cidr))).await;
    let (args, vms) = match allocator {
        Allocator::Cloud => (CLOUD_ARGS, Some(Vms::start().await)),
        _ => (ARGS, None),
    };
    let mut replicas = Replicas::start(&cluster, allocator, vms.clone(), args).await;
    let churn = Churn::begin(&client, alive, going, vms.clone()).await;
    let calm = CancellationToken::new();
    let churning = tokio::spawn(churn.run(calm.clone()));

    for term in 0..terms {
        let leader = replicas.leader().await;
        // Counted from the acquisition of the lease, whatever the leader makes of its time.
        tokio::time::sleep(TERM).await;
        replicas.until_assigned(leader).await;
        let how = if term % 2 == 0 { End::Kill } else { End::Terminate };
        let assigned = replicas.end(leader, how).await;
        eprintln!("term {term}: {assigned} Nodes assigned, then {how:?}");
    }
    calm.cancel();
    let left = churning.await.unwrap();
    assert_eq!(left.len(), alive);

    let leader = replicas.leader().await;
    let all = alive + FOREIGN.len();
    let what = "every Node that is left has a block";
    let now = nodes.until_within(LONG, what, |now| now.len() == all && now.assigned() == all).await;
    if let Some(vms) = &vms {
        for name in &left {
            assert_eq!(now.cidrs(name), vms.alias(name), "{name}");
        }
    }
    delete_nodes(&client, left.into_iter().chain(FOREIGN.map(|(name, _)| name.to_owned()))).await;
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
