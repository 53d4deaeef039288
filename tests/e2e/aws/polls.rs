//! Many clusters that wait at once.

use std::collections::BTreeMap;

use aws_fixtures::{identity, present, with_nats};
use aws_network::{Identity, NatMode, Rest};
use futures::future::join_all;

use crate::world::World;

/// Clusters that are made at once.
const CLUSTERS: usize = 6;

fn cluster(number: usize) -> Identity {
    let cluster = format!("net{number}");
    Identity { owner_id: format!("{cluster}-owner"), cluster, ..identity() }
}

/// cluster-api-provider-aws#1275, #2794: a minute of waiting for NAT gateways costs the region as
/// much for many clusters as for one.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_wait_for_nat_gateways_are_polled_together() {
    let Some(world) = World::new().await else { return };
    world.proxy.nats_pending_for(u32::MAX);
    let mut reconciliations = Vec::new();
    for number in 0..CLUSTERS {
        let mut spec = with_nats(NatMode::Single);
        spec.identity = cluster(number);
        world.turn_to(&spec.identity);
        let (reconciliation, rest) = world.attempt(&present(&spec)).await;
        assert_eq!(rest, Rest::For(10), "{:#?}", reconciliation.problems());
        reconciliations.push((world.executor(), reconciliation));
    }
    world.proxy.forget();
    for _ in 0..6 {
        world.advance(10);
        join_all(reconciliations.iter_mut().map(async |(executor, reconciliation)| {
            reconciliation.resume();
            assert_eq!(aws::run_pass(reconciliation, executor, &world).await, Rest::For(10));
        }))
        .await;
    }
    let mut calls = BTreeMap::<_, usize>::new();
    for action in world.actions() {
        *calls.entry(action).or_default() += 1;
    }
    println!("{CLUSTERS} clusters waiting for a minute: {calls:?}");
    let nats = calls.remove("DescribeNatGateways").unwrap_or_default();
    assert!((6..=12).contains(&nats), "{nats} reads of NAT gateways in six rounds");
    assert!(calls.is_empty(), "nothing else is read: {calls:?}");
}
