//! Resources of others in unusual shapes, in the VPC of a cluster.

use aws_fixtures::{absent, load_balancer, present, with_nats};
use aws_network::{LoadBalancerKind, NatMode, Rest, Spec};
use tests::aws_proxy::Fate;

use crate::inventory::{differences, inventory};
use crate::totals::totals;
use crate::world::{REGION, World};

fn with_network_balancer() -> Spec {
    let balancer = Some(load_balancer(LoadBalancerKind::Network));
    Spec { load_balancer: balancer, ..with_nats(NatMode::PerZone) }
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_neighbours_change_nothing_of_making_keeping_and_deleting_a_cluster() {
    // rule:only-ours-spoils-an-answer
    let Some(world) = World::new().await else { return };
    for spec in [with_nats(NatMode::PerZone), with_network_balancer()] {
        world.reset().await;
        world.run(&present(&spec)).await;
        let wanted = inventory(&world).await;
        world.reset().await;
        world.proxy.neighbours_move_in();
        let (reconciliation, rest) = world.run(&present(&spec)).await;
        assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        assert_eq!(differences(&inventory(&world).await, &wanted), Vec::<String>::new());
        let (reconciliation, rest) = world.run_later(&present(&spec)).await;
        assert_eq!(
            (rest, world.writes()),
            (Rest::Reached, Vec::new()),
            "{:#?}",
            reconciliation.problems()
        );
        assert!(reconciliation.failures().is_empty(), "{:#?}", reconciliation.failures());
        let (reconciliation, rest) = world.run_later(&absent(&spec)).await;
        assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        assert_eq!(inventory(&world).await, Vec::<String>::new());
        let named = world.proxy.calls().into_iter().filter(tests::aws_proxy::Call::is_write);
        let named =
            named.filter(|call| call.parameters.values().any(|it| it.contains("neighbour")));
        assert_eq!(named.count(), 0, "a write names a resource of others");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_neighbours_that_block_a_deletion_are_named() {
    let Some(world) = World::new().await else { return };
    let spec = with_nats(NatMode::PerZone);
    world.run(&present(&spec)).await;
    world.advance(1800);
    world.proxy.neighbours_move_in();
    world.hit_all(&[("DeleteVpc", Fate::Refuse("DependencyViolation"))]);
    let (reconciliation, rest) = world.attempts(&absent(&spec), 15).await;
    assert!(matches!(rest, Rest::For(_)), "{rest:?}: it is tried again");
    let said = format!("{:?}", reconciliation.problems());
    assert!(said.contains("subnet-neighbour") && said.contains("rtb-neighbour"), "{said}");
}

/// The cloud provider's target groups have names of their own, and no listener leads to them once
/// their load balancer is gone. AWS frees them later.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_group_that_aws_frees_after_its_load_balancer_is_deleted_all_the_same() {
    let Some(world) = World::new().await else { return };
    let spec = with_nats(NatMode::PerZone);
    let before = totals(&world).await;
    world.run(&present(&spec)).await;
    let vpcs = [
        ("Action", "DescribeVpcs"),
        ("Filter.1.Name", "cidr"),
        ("Filter.1.Value.1", "10.66.0.0/24"),
    ];
    let vpcs = world.proxy.upstream().ec2(REGION, &vpcs).await;
    let vpc = vpcs.split("<vpcId>").nth(1).unwrap().split('<').next().unwrap();
    let create = [
        ("Action", "CreateTargetGroup"),
        ("Name", "k8s-default-web"),
        ("Protocol", "TCP"),
        ("Port", "30000"),
        ("VpcId", vpc),
        ("Tags.member.1.Key", "kubernetes.io/cluster/testnetwork3"),
        ("Tags.member.1.Value", "owned"),
        ("Tags.member.2.Key", "kubernetes.io/service-name"),
        ("Tags.member.2.Value", "default/web"),
    ];
    world.proxy.upstream().elbv2(REGION, &create).await;
    world.advance(1800);
    let left = world.hit_first(&[("DeleteTargetGroup", Fate::Refuse("ResourceInUse"))]);
    let (reconciliation, rest) = world.run(&absent(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert!(left.lock().is_empty(), "it was never deleted");
    assert_eq!(totals(&world).await, before, "something is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bastion_is_launched_with_a_public_address_whatever_its_subnet_gives() {
    let Some(world) = World::new().await else { return };
    world.run(&present(&with_nats(NatMode::PerZone))).await;
    let calls = world.proxy.calls();
    let launch = calls.iter().find(|call| call.action == "RunInstances").unwrap();
    assert_eq!(launch.parameter("NetworkInterface.1.AssociatePublicIpAddress"), "true");
    assert!(launch.parameter("NetworkInterface.1.SubnetId").starts_with("subnet-"));
    assert_eq!(launch.parameter("SubnetId"), "", "AWS takes only one of both");
}
