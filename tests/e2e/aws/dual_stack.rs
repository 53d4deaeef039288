//! VPCs with IPv6, with several CIDRs or with subnets in edge zones on moto: made, kept, changed and deleted.

use aws_fixtures::{absent, dual_stack, edge, present, seed, subnet};
use aws_network::{NatMode, Rest, Spec, SubnetSpec};

use crate::faults::{Fault, Point, Reference, create, delete};
use crate::inventory::inventory;
use crate::totals::totals;
use crate::world::World;

fn spec() -> Spec {
    Spec { nat_mode: NatMode::Single, ..dual_stack() }
}

fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dual_stack_cluster_is_made_kept_extended_and_deleted() {
    let Some(world) = World::new().await else { return };
    let (before, mut spec) = (totals(&world).await, spec());
    let (reconciliation, rest) = world.run(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let lines = inventory(&world).await;
    for (text, number) in [
        ("assigned true", 6),
        ("::/0 to igw", 3),
        ("::/0 to egress-only", 3),
        ("0.0.0.0/0 to nat", 3),
        ("egress-only at Some", 1),
        ("from ::/0 (Kubernetes API IPv6)", 1),
        ("from RANGE (Allow NLB traffic", 1),
        ("apiserver dualstack", 1),
        ("apiserver ipv6", 1),
    ] {
        assert_eq!(count(&lines, text), number, "{text}: {lines:#?}");
    }
    let mut numbers: Vec<_> = (0..6).map(|it| count(&lines, &format!(" ipv6 {it} "))).collect();
    numbers.dedup();
    assert_eq!(numbers, [1], "{lines:#?}");
    for _ in 0..2 {
        let (_, rest) = world.run_later(&present(&spec)).await;
        assert_eq!((rest, world.writes()), (Rest::Reached, Vec::new()));
    }
    spec.subnets.push(SubnetSpec { is_ipv6: true, ..subnet("a", "10.66.0.192/27", false) });
    let (_, rest) = world.run_later(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached);
    let lines = inventory(&world).await;
    assert_eq!(
        (count(&lines, " ipv6 6 "), count(&lines, "::/0 to egress-only")),
        (1, 4),
        "{lines:#?}"
    );
    let (_, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!((rest, totals(&world).await), (Rest::Reached, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_a_call_for_ipv6_changes_nothing_of_the_end() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::of(&world, spec()).await;
    for call in ["CreateVpc", "CreateSubnet", "CreateEgressOnlyInternetGateway", "CreateRoute"] {
        for fault in [Fault::CrashAfter, Fault::AnswerLost] {
            world.shows_late(fault == Fault::AnswerLost);
            let point = Point::First(call.to_owned());
            assert!(create(&world, &reference, point, fault).await.is_some(), "{call}");
        }
    }
    for call in ["DeleteEgressOnlyInternetGateway", "DeleteVpc"] {
        world.reset().await;
        world.run(&present(&reference.spec)).await;
        let point = Point::First(call.to_owned());
        assert!(delete(&world, &reference, point, Fault::AnswerLost).await.is_some(), "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secondary_cidr_is_associated_with_a_vpc_that_exists() {
    let Some(world) = World::new().await else { return };
    let (before, mut spec) = (totals(&world).await, Spec { nat_mode: NatMode::Single, ..seed() });
    world.run(&present(&spec)).await;
    spec.secondary_cidrs.push("10.67.0.0/24".to_owned());
    spec.subnets.push(subnet("a", "10.67.0.0/27", false));
    let (reconciliation, rest) = world.run_later(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let lines = inventory(&world).await;
    assert_eq!(count(&lines, "cidr 10.67.0.0/24 true"), 1, "{lines:#?}");
    assert_eq!(count(&lines, "subnet 10.67.0.0/27"), 1, "{lines:#?}");
    let (_, rest) = world.run_later(&present(&spec)).await;
    assert_eq!((rest, world.writes()), (Rest::Reached, Vec::new()));
    let (_, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!((rest, totals(&world).await), (Rest::Reached, before));
}

/// The zones of the spec are those that the proxy shows.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_edge_zones_is_made_kept_and_deleted() {
    let Some(world) = World::new().await else { return };
    let (before, spec) = (totals(&world).await, edge());
    let found = world.executor().zones().await.unwrap().into_iter().map(|it| it.zone);
    let found: Vec<_> = found.filter(|zone| zone.parent.is_some()).collect();
    assert!(spec.known_zones.iter().all(|zone| found.contains(zone)), "{found:#?}");
    let (reconciliation, rest) = world.run(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let lines = inventory(&world).await;
    for (text, number) in [
        ("0.0.0.0/0 to igw", 4),
        ("0.0.0.0/0 to carrier", 1),
        ("0.0.0.0/0 to nat us-east-2a", 1),
        ("0.0.0.0/0 to nat us-east-2b", 2),
        ("0.0.0.0/0 to nat us-east-2c", 2),
        ("carrier at Some(\"vpc", 1),
        ("Name=testnetwork3-igw", 2),
        ("kubernetes.io/role/", 6),
    ] {
        assert_eq!(count(&lines, text), number, "{text}: {lines:#?}");
    }
    let create = world.proxy.calls().into_iter().find(|it| it.action == "CreateCarrierGateway");
    let create = create.unwrap();
    assert_eq!(create.parameter("ClientToken").len(), 32, "{create:?}");
    assert_eq!(create.parameter("TagSpecification.1.ResourceType"), "carrier-gateway");
    for _ in 0..2 {
        let (_, rest) = world.run_later(&present(&spec)).await;
        assert_eq!((rest, world.writes()), (Rest::Reached, Vec::new()));
    }
    world.lose_status();
    let (_, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!((rest, totals(&world).await), (Rest::Reached, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_a_call_for_edge_zones_changes_nothing_of_the_end() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::of(&world, Spec { nat_mode: NatMode::Single, ..edge() }).await;
    for call in ["CreateSubnet", "CreateCarrierGateway", "CreateRoute"] {
        for fault in [Fault::CrashAfter, Fault::AnswerLost] {
            world.shows_late(fault == Fault::AnswerLost);
            let point = Point::First(call.to_owned());
            assert!(create(&world, &reference, point, fault).await.is_some(), "{call}");
        }
    }
    for call in ["DeleteCarrierGateway", "DeleteVpc"] {
        world.reset().await;
        world.run(&present(&reference.spec)).await;
        let point = Point::First(call.to_owned());
        assert!(delete(&world, &reference, point, Fault::AnswerLost).await.is_some(), "{call}");
    }
}
