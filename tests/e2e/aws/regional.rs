//! Regional NAT gateways: creation, growth, exchange with those of zones, refusals, deletion.

use aws_fixtures::{absent, present, with_nats};
use aws_network::{Desired, NatMode, Reason, Rest, Spec, outputs};
use tests::aws_proxy::{Call, Fate};

use crate::complaints::text;
use crate::inventory::inventory;
use crate::totals::totals;
use crate::world::{REGION, World};

fn count(lines: &[String], start: &str) -> usize {
    lines.iter().filter(|line| line.starts_with(start)).count()
}

fn is_regional(call: &Call) -> bool {
    call.action == "CreateNatGateway" && call.parameter("AvailabilityMode") == "regional"
}

/// The cluster without public subnets, and so without a bastion and a public load balancer.
fn private() -> Spec {
    let spec = with_nats(NatMode::Regional);
    let subnets = spec.subnets.iter().filter(|subnet| !subnet.is_public).cloned().collect();
    Spec { subnets, bastion: None, load_balancer: None, ..spec }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_made_without_public_subnets_grows_and_goes_with_its_route_table() {
    let Some(world) = World::new().await else { return };
    let (before, spec) = (totals(&world).await, private());
    let (reconciliation, rest) = world.run(&present(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let lines = inventory(&world).await;
    assert_eq!((count(&lines, "nat"), count(&lines, "eip")), (1, 0), "{lines:#?}");
    let routes = lines.iter().filter(|line| line.contains("to nat regional")).count();
    assert_eq!(routes, 3, "{lines:#?}");
    let calls = world.proxy.calls();
    let made: Vec<_> = calls.iter().filter(|call| call.action == "CreateNatGateway").collect();
    let [create] = &made[..] else { panic!("{made:?}") };
    let said = ["AvailabilityMode", "ConnectivityType", "SubnetId", "AllocationId"];
    assert_eq!(said.map(|name| create.parameter(name)), ["regional", "public", "", ""]);
    assert!(create.parameter("VpcId").starts_with("vpc-"), "{create:?}");
    assert_eq!(create.parameter("ClientToken").len(), 32, "{create:?}");
    assert_eq!(create.parameter("TagSpecification.1.ResourceType"), "natgateway", "{create:?}");

    let desired = Desired::from_spec(&spec).unwrap();
    for number in [1, 3] {
        world.proxy.regional_nats_grow_to(number);
        let (reconciliation, rest) = world.run_later(&present(&spec)).await;
        let published = outputs(&desired, reconciliation.observed(), None).nat_addresses;
        assert_eq!((rest, published.len()), (Rest::Reached, number), "{published:?}");
        assert_eq!(world.writes(), Vec::<String>::new());
    }
    let (reconciliation, rest) = world.run_later(&absent(&spec)).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(totals(&world).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_exchanged_with_those_of_zones_and_back_and_routes_move_first() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let modes = [NatMode::PerZone, NatMode::Regional, NatMode::Single, NatMode::Regional];
    for (mode, nats, eips) in modes.map(|mode| match mode {
        NatMode::PerZone => (mode, 3, 3),
        NatMode::Single => (mode, 1, 1),
        _ => (mode, 1, 0),
    }) {
        let (reconciliation, rest) = world.run_later(&present(&with_nats(mode))).await;
        assert_eq!(rest, Rest::Reached, "{mode:?}: {:#?}", reconciliation.problems());
        let lines = inventory(&world).await;
        assert_eq!((count(&lines, "nat"), count(&lines, "eip")), (nats, eips), "{mode:?}");
        let of_zones = lines.iter().filter(|line| line.contains("to nat us-")).count();
        let of_all = lines.iter().filter(|line| line.contains("to nat regional")).count();
        let wanted = if mode == NatMode::Regional { (0, 3) } else { (3, 0) };
        assert_eq!((of_zones, of_all), wanted, "{mode:?}: {lines:#?}");
        let writes = world.writes();
        let place = |name: &str| writes.iter().rposition(|write| write == name);
        let first_delete = writes.iter().position(|write| write == "DeleteNatGateway");
        if let (Some(routes), Some(delete)) = (place("ReplaceRoute"), first_delete) {
            assert!(routes < delete, "{mode:?}: routes move first: {writes:?}");
        }
    }
    world.run_later(&absent(&with_nats(NatMode::Regional))).await;
    assert_eq!(totals(&world).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_aws_refuses_it_each_zone_has_its_own_and_it_is_not_tried_again() {
    let Some(world) = World::new().await else { return };
    let before = totals(&world).await;
    let goal = present(&with_nats(NatMode::Regional));
    world.proxy.decide(|_, call| {
        if is_regional(call) { Fate::Refuse("UnsupportedOperation") } else { Fate::Pass }
    });
    let (reconciliation, rest) = world.run(&goal).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let problems = reconciliation.problems();
    let found = problems.iter().find(|it| it.reason == Reason::RegionalNatNotAvailable).unwrap();
    assert!(found.message.starts_with("Regional is not available in us-east-2"), "{found:?}");
    let tries = |world: &World| world.proxy.calls().iter().filter(|it| is_regional(it)).count();
    assert_eq!((tries(&world), count(&inventory(&world).await, "nat")), (1, 3));

    world.proxy.forget();
    let (_, rest) = world.run_later(&goal).await;
    assert_eq!((rest, tries(&world), world.writes()), (Rest::Reached, 0, Vec::new()));
    world.run_later(&absent(&with_nats(NatMode::Regional))).await;
    assert_eq!(totals(&world).await, before);
}

/// The proxy refuses what AWS refuses.
#[tokio::test(flavor = "multi_thread")]
async fn it_takes_a_vpc_with_a_gateway_and_neither_subnet_nor_address() {
    let Some(world) = World::new().await else { return };
    let vpc = [("Action", "CreateVpc"), ("CidrBlock", "10.9.0.0/16")];
    let vpc = text(&world.proxy.upstream().ec2(REGION, &vpc).await, "vpcId");
    for (parameters, code) in [
        (&[][..], "MissingParameter"),
        (&[("VpcId", &*vpc), ("SubnetId", "subnet-1")], "InvalidParameterCombination"),
        (&[("VpcId", &vpc), ("AllocationId", "eipalloc-1")], "InvalidParameterCombination"),
        (&[("VpcId", &vpc)], "Gateway.NotAttached"),
    ] {
        let call = [("Action", "CreateNatGateway"), ("AvailabilityMode", "regional")];
        let call = [&call[..], parameters].concat();
        let asked = world.proxy.itself().try_ask("ec2", "2016-11-15", REGION, &call).await;
        assert_eq!(
            (asked.0.is_success(), text(&asked.1, "Code")),
            (false, code.into()),
            "{call:?}"
        );
    }
}
