//! Number of calls and resources of the sample cluster.

use aws::run_pass;
use aws_fixtures::{absent, counted, counts, dual_stack, present, with_nats};
use aws_network::{NatMode, Reconciliation, Rest, Spec};

use tests::aws_proxy::Pace;

use crate::inventory::inventory;
use crate::totals::totals;
use crate::world::World;

/// The most calls that create a cluster, keep it, keep it with a deep check, and delete it. `None` where the tests on moto
/// are left out; otherwise the inventory.
async fn needs_calls(name: &str, spec: &Spec, most: [usize; 4]) -> Option<Vec<String>> {
    let world = World::new().await?;
    world.proxy.set_pace(Pace::PROMPT);
    let before = totals(&world).await;

    let (reconciliation, rest) = world.run(&present(spec)).await;
    assert_eq!(rest, Rest::Reached, "{name}: {:#?}", reconciliation.problems());
    let (made, writes) = (world.actions(), world.writes());
    let lines = inventory(&world).await;

    world.run_later(&present(spec)).await;
    let kept = world.actions();
    assert_eq!(world.writes(), Vec::<String>::new(), "{name}");
    // Half an hour each: one of them is an hour after the create.
    let mut deep = 0;
    for _ in 0..2 {
        world.run_later(&present(spec)).await;
        assert_eq!(world.writes(), Vec::<String>::new(), "{name}");
        deep = deep.max(world.actions().len());
    }
    assert!(deep > kept.len(), "{name}: {deep} calls of a deep check");

    let (reconciliation, rest) = world.run_later(&absent(spec)).await;
    assert_eq!(rest, Rest::Reached, "{name}: {:#?}", reconciliation.problems());
    let deleted = world.actions();
    assert_eq!(inventory(&world).await, Vec::<String>::new());
    assert_eq!(totals(&world).await, before, "{name}: nothing is left, tagged or not");
    println!(
        "{name}: create {} calls ({} writes), no-op {}, deep check {deep}, delete {} ({} writes)",
        made.len(),
        writes.len(),
        kept.len(),
        deleted.len(),
        world.writes().len()
    );
    let calls = [made.len(), kept.len(), deep, deleted.len()];
    let is_more = calls.iter().zip(&most).any(|(calls, most)| calls > most);
    assert!(!is_more, "{name}: {calls:?}, at most {most:?}: {made:#?} {kept:#?} {deleted:#?}");
    Some(lines)
}

async fn the_first_cluster_needs_calls(mode: NatMode, nats: usize) {
    let name = format!("{mode:?}");
    let made = needs_calls(&name, &with_nats(mode), [58, 9, 13, 50]).await;
    let Some(lines) = made else { return };
    assert_eq!(counted(&lines), counts(nats), "{name}: {lines:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_nat_gateway_in_each_zone_it_takes_58_calls_9_to_keep_and_50_to_delete() {
    the_first_cluster_needs_calls(NatMode::PerZone, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_nat_gateway_it_takes_no_more_calls() {
    the_first_cluster_needs_calls(NatMode::Single, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nat_gateways_it_takes_no_more_calls() {
    the_first_cluster_needs_calls(NatMode::None, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_ipv6_and_a_network_load_balancer_it_takes_79_calls_13_to_keep_and_54_to_delete() {
    needs_calls("dual stack", &dual_stack(), [79, 13, 17, 54]).await;
}

/// The controller limits the reads of clusters at rest by this number.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_counts_its_reads_and_a_cluster_at_rest_needs_no_write() {
    let Some(world) = World::new().await else { return };
    let goal = present(&with_nats(NatMode::Single));
    world.run(&goal).await;
    let before = world.actions().len();
    let executor = world.executor();
    let mut reconciliation = Reconciliation::new(goal, world.memory());
    for _ in 0..2 {
        assert_eq!(run_pass(&mut reconciliation, &executor, &world).await, Rest::Reached);
        reconciliation.resume();
    }
    let actions = world.actions();
    assert_eq!(executor.reads() as usize, actions.len() - before, "{:?}", &actions[before..]);
    assert!(executor.reads() > 8 && world.executor().reads() == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_of_the_first_article_is_exactly_this() {
    let Some(world) = World::new().await else { return };
    let (_, rest) = world.run(&present(&with_nats(NatMode::PerZone))).await;
    assert_eq!(rest, Rest::Reached);
    let lines = inventory(&world).await;
    let owner = "aws.cluster.x-k8s.io/owner-id=5d9f0c8e-owner";
    let cluster = "sigs.k8s.io/cluster-api-provider-aws/cluster/testnetwork3=owned";
    let role = |role: &str| format!("sigs.k8s.io/cluster-api-provider-aws/role={role}");
    let has = |parts: &[&str]| {
        let found = lines.iter().filter(|line| parts.iter().all(|part| line.contains(part)));
        assert_eq!(found.count(), 1, "{parts:?} of {lines:#?}");
    };
    let common = role("common");
    has(&["vpc 10.66.0.0/24 support true hostnames true", owner, cluster, &common]);
    for (zone, public, private) in [("a", 0, 32), ("b", 64, 96), ("c", 128, 160)] {
        let zone = format!("us-east-2{zone}");
        has(&[
            &format!("subnet 10.66.0.{public}/27 {zone}"),
            "maps true",
            "kubernetes.io/role/elb=1",
            "kubernetes.io/cluster/testnetwork3=shared",
            owner,
        ]);
        has(&[
            &format!("subnet 10.66.0.{private}/27 {zone}"),
            "maps false",
            "kubernetes.io/role/internal-elb=1",
            owner,
        ]);
        has(&[&format!("nat Available in 10.66.0.{public}/27 with [\"eip {zone}\"]"), owner]);
        has(&[&format!("table of [Some(\"10.66.0.{public}/27\")]"), "\"0.0.0.0/0 to igw\""]);
        let route = format!("\"0.0.0.0/0 to nat {zone}\"");
        has(&[&format!("table of [Some(\"10.66.0.{private}/27\")]"), &route]);
    }
    has(&["igw at Some(\"vpc 10.66.0.0/24\")", cluster]);
    let api = "\"tcp 6443-6443 from 0.0.0.0/0 (Kubernetes API)\"";
    has(&["group testnetwork3-apiserver-lb", api, owner]);
    has(&["group testnetwork3-lb []", "kubernetes.io/cluster/testnetwork3=owned"]);
    has(&["instance Running in vpc 10.66.0.0/24", &role("bastion"), owner]);
    has(&[
        "elb testnetwork3-apiserver InternetFacing",
        "ClassicListener { port: 6443, instance_port: 6443, tcp: true }",
        "protocol: \"SSL\", port: 6443",
        "idle_timeout: 600",
        "in [\"10.66.0.0/27\", \"10.66.0.128/27\", \"10.66.0.64/27\"]",
        "with [\"testnetwork3-apiserver-lb\"]",
        &role("apiserver"),
        owner,
    ]);
}
