//! Regional NAT gateways: where AWS offers none, which addresses they have, and the exchange with
//! those of zones.

use std::net::Ipv4Addr;

use aws_fixtures::{absent, present};
use aws_network::{
    Action, IngressRuleSpec, LogicalId, Memory, NatMode, NatState, Part, Reason, Reconciliation,
    Rest, Source, Spec, Target, conditions, outputs,
};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::driver::{Fault, World};
use crate::policies::{no_subnet_loses_its_route, private_exits, serving, with};

/// Codes by which AWS says that it offers none here.
const NOT_OFFERED: [&str; 3] = ["UnsupportedOperation", "Client.UnknownParameter", "Unsupported"];

/// Codes that may also be about a VPC or an internet gateway that AWS does not see yet.
const DOUBTFUL: [&str; 4] = [
    "InvalidParameter",
    "InvalidParameterValue",
    "InvalidParameterCombination",
    "Client.MissingParameter",
];

const SLOW: Nature = Nature { slow: 60, ..Nature::PROMPT };

fn regional() -> Spec {
    with(NatMode::Regional, None)
}

/// A cluster without public subnets, and so without a bastion and a public load balancer.
fn private() -> Spec {
    let mut spec = Spec { bastion: None, load_balancer: None, ..regional() };
    spec.subnets.retain(|subnet| !subnet.is_public);
    spec
}

fn of_region(region: &str) -> Spec {
    let mut spec = Spec { region: region.to_owned(), ..regional() };
    for zone in spec.subnets.iter_mut().filter_map(|it| it.availability_zone.as_mut()) {
        *zone = zone.replace("us-east-2", region);
    }
    spec
}

/// AWS refuses each regional NAT gateway.
fn refusing(code: &'static str) -> World {
    let mut world = World::new(SLOW, 1);
    world.cloud.refusals.push(("CreateRegionalNatGateway", code, u32::MAX));
    world
}

fn tries(world: &World) -> usize {
    let is_try = |action: &Action| matches!(action, Action::CreateRegionalNatGateway { .. });
    world.writes.iter().filter(|planned| is_try(&planned.action)).count()
}

/// Whether the part is ready, with the reason and the message.
fn condition_of(
    part: Part,
    reconciliation: &Reconciliation,
    spec: &Spec,
) -> (bool, &'static str, String) {
    let desired = aws_network::Desired::from_spec(spec).unwrap();
    let all = conditions(
        &desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    let found = all.into_iter().find(|it| it.part == part).unwrap();
    (found.is_true, found.reason, found.message)
}

/// Like [`condition_of`], of the NAT gateways.
fn condition(reconciliation: &Reconciliation, spec: &Spec) -> (bool, &'static str, String) {
    condition_of(Part::NatGateways, reconciliation, spec)
}

/// The mode in effect, as the status shows it.
fn mode(world: &World, spec: &Spec) -> Option<&'static str> {
    let desired = aws_network::Desired::from_spec(spec).unwrap();
    desired.nat_in_effect(&world.memory).map(aws_network::NatPolicy::word)
}

fn live(cloud: &Cloud) -> Vec<aws_network::NatGateway> {
    cloud.nats.all().into_iter().filter(|nat| nat.state == NatState::Available).collect()
}

#[test]
fn one_gateway_serves_all_zones_without_a_public_subnet_and_without_an_address_of_ours() {
    let (spec, mut world) = (private(), World::new(SLOW, 1));
    let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let [nat] = &live(&world.cloud)[..] else { panic!("{:?}", world.cloud.nats.all()) };
    assert_eq!(private_exits(&world.cloud), vec![Some(Target::NatGateway(nat.id.clone())); 3]);
    assert_eq!(world.cloud.addresses.ever(), 0);
    let place = |is_it: fn(&Action) -> bool| {
        world.writes.iter().position(|planned| is_it(&planned.action)).unwrap()
    };
    let attached = place(|action| matches!(action, Action::AttachInternetGateway { .. }));
    assert!(attached < place(|action| matches!(action, Action::CreateRegionalNatGateway { .. })));
    assert_eq!(mode(&world, &spec), Some("Regional"));

    world.memory = Memory::default();
    world.run_later(&present(&spec));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let (reconciliation, rest) = world.run_later(&absent(&spec));
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(inventory(&world.cloud), Vec::<String>::new());
}

#[test]
fn an_exchange_interrupts_no_subnet_and_ends_like_a_new_cluster() {
    let mut world = World::new(SLOW, 1);
    world.run(&present(&with(NatMode::PerZone, None)), &mut |_| None);
    world.invariant = no_subnet_loses_its_route;
    let all = [NatMode::Regional, NatMode::Single, NatMode::Regional, NatMode::PerZone];
    for spec in all.map(|mode| with(mode, None)) {
        let mode = spec.nat_mode;
        let (reconciliation, rest) = world.run_later(&present(&spec));
        assert_eq!(rest, Rest::Reached, "{mode:?}: {:#?}", reconciliation.problems());
        let mut fresh = World::new(SLOW, 1);
        fresh.run(&present(&spec), &mut |_| None);
        let found = differences(&inventory(&world.cloud), &inventory(&fresh.cloud));
        assert_eq!(found, Vec::<String>::new(), "{mode:?}");
        world.run_later(&present(&spec));
        assert!(world.writes.is_empty(), "{mode:?}: {:#?}", world.writes);
    }
}

#[test]
fn a_free_address_of_a_zone_is_kept_until_aws_has_refused_a_regional_gateway() {
    let mut world = refusing("UnsupportedOperation");
    world.run(&present(&with(NatMode::PerZone, None)), &mut |_| None);
    let (now, (lost, allocations)) = (world.cloud.now, serving(&world.cloud)[0].clone());
    world.cloud.nats.edit(&lost, now, |nat| nat.state = NatState::Deleted);
    world.cloud.addresses.edit(&allocations[0], now, |address| address.association = None);
    let (_, rest) = world.run_later(&present(&regional()));
    assert_eq!((rest, serving(&world.cloud).len()), (Rest::Reached, 3), "{:#?}", world.writes);
    assert_eq!(world.cloud.addresses.ever(), 3, "others have it in allow-lists");
}

#[test]
fn addresses_that_aws_adds_are_published_and_admitted() {
    let rule = IngressRuleSpec {
        protocol: "tcp".to_owned(),
        from_port: 22,
        to_port: 22,
        from_nat_gateways: true,
        ..IngressRuleSpec::default()
    };
    let spec = Spec { node_rules: vec![rule], ..regional() };
    let (goal, mut world) = (present(&spec), World::new(SLOW, 1));
    let desired = aws_network::Desired::from_spec(&spec).unwrap();
    world.run(&goal, &mut |_| None);
    for number in 1..=3 {
        let (reconciliation, _) = world.run_later(&goal);
        let published = outputs(&desired, reconciliation.observed(), None).nat_addresses;
        assert_eq!(published.len(), number, "{published:?}");
        let groups = world.cloud.groups.all();
        let rules = &groups.iter().find(|it| it.name == "testnetwork3-node").unwrap().rules;
        for ip in published {
            let source = Source::Cidr(std::net::IpAddr::V4(ip).into());
            assert!(rules.iter().any(|rule| rule.key.source == source), "{ip}: {rules:#?}");
        }
        // It has grown into another zone.
        let (nat, now) = (live(&world.cloud).remove(0), world.cloud.now);
        let ip = Ipv4Addr::new(52, 9, 9, u8::try_from(number).unwrap());
        world.cloud.nats.edit(&nat.id, now, |nat| nat.public_ips.push(ip));
    }
}

#[test]
fn where_aws_offers_none_each_zone_has_its_own_until_the_mode_changes() {
    let mut fresh = World::new(SLOW, 1);
    fresh.run(&present(&with(NatMode::PerZone, None)), &mut |_| None);
    for code in [&NOT_OFFERED[..], &DOUBTFUL].concat() {
        let (spec, mut world) = (regional(), refusing(code));
        let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
        assert_eq!(rest, Rest::Reached, "{code}: {:#?}", reconciliation.problems());
        let found = differences(&inventory(&world.cloud), &inventory(&fresh.cloud));
        assert_eq!(found, Vec::<String>::new(), "{code}");
        assert_eq!(tries(&world) == 1, NOT_OFFERED.contains(&code), "{code}: {}", tries(&world));
        let (is_true, reason, message) = condition(&reconciliation, &spec);
        assert_eq!((is_true, reason), (true, "RegionalNatNotAvailable"), "{code}");
        let again = "wait until the annotation aws.cluster.x-k8s.io/regional-nat-refused is gone";
        let fact = format!("Regional is not available in us-east-2 (AWS answered {code}); ");
        assert!(message.starts_with(&fact) && message.contains(again), "{message}");
        assert_eq!(mode(&world, &spec), Some("PerAZ"), "{code}");

        // AWS offers it by now: the public addresses change only with the spec.
        world.cloud.refusals.clear();
        let more = Spec { api_port: 443, ..spec.clone() };
        for spec in [&spec, &more, &spec] {
            world.run_later(&present(spec));
            let nats: Vec<_> = live(&world.cloud).iter().map(|nat| nat.is_regional).collect();
            assert_eq!((tries(&world), nats), (0, vec![false; 3]), "{code}");
        }
        world.run_later(&present(&with(NatMode::PerZone, None)));
        assert!(world.writes.is_empty(), "{:#?}", world.writes);
        let (_, rest) = world.run_later(&present(&spec));
        assert_eq!(
            (rest, tries(&world), mode(&world, &spec)),
            (Rest::Reached, 1, Some("Regional"))
        );
        assert!(live(&world.cloud).iter().all(|nat| nat.is_regional));
    }
}

#[test]
fn another_refusal_does_not_change_the_mode() {
    for code in ["NatGatewayLimitExceeded", "InternalError", "UnauthorizedOperation", "NewFangled"]
    {
        let mut world = refusing(code);
        let (_, rest) = world.run_once_for(&present(&regional()), 600);
        assert_eq!((rest, mode(&world, &regional())), (None, Some("Regional")), "{code}");
        assert!(world.cloud.nats.all().is_empty() && tries(&world) > 1, "{code}");
        world.cloud.refusals.clear();
        let (_, rest) = world.run_later(&present(&regional()));
        assert_eq!((rest, live(&world.cloud).len()), (Rest::Reached, 1), "{code}");
    }
    // A general one after it has not been repeated.
    let mut world = World::new(SLOW, 1);
    for (code, times) in [("UnauthorizedOperation", 2), ("InvalidParameterValue", 2)] {
        world.cloud.refusals.push(("CreateRegionalNatGateway", code, times));
    }
    let (_, rest) = world.run(&present(&regional()), &mut |_| None);
    assert_eq!((rest, mode(&world, &regional())), (Rest::Reached, Some("Regional")));
    assert_eq!((tries(&world), live(&world.cloud).len()), (5, 1));
}

/// As of a VPC whose internet gateway is not visible to that API yet.
#[test]
fn a_general_refusal_counts_only_when_it_comes_again_after_a_minute_and_all_it_names_is_there() {
    for code in DOUBTFUL {
        let mut world = World::new(SLOW, 1);
        world.cloud.refusals.push(("CreateRegionalNatGateway", code, 3));
        let (reconciliation, _) = world.run_once_for(&present(&regional()), 20);
        let (is_true, _, message) = condition(&reconciliation, &regional());
        assert!(!is_true && message.contains(code), "{message}");
        let (_, rest) = world.run(&present(&regional()), &mut |_| None);
        let modes: Vec<_> = live(&world.cloud).iter().map(|nat| nat.is_regional).collect();
        assert_eq!((rest, modes), (Rest::Reached, vec![true]), "{code}");
        assert_eq!((mode(&world, &regional()), tries(&world)), (Some("Regional"), 4), "{code}");
    }
    let mut world = refusing("InvalidParameterValue");
    let (mut reconciliation, _) = world.run_once_for(&present(&regional()), 20);
    let (gateway, now) = (world.cloud.gateways.all().remove(0).id, world.cloud.now);
    world.cloud.gateways.edit(&gateway, now, |gateway| gateway.attached_to = None);
    world.cloud.advance(60);
    reconciliation.resume();
    let before = tries(&world);
    let (reconciliation, rest) = world.go_on(reconciliation, 0);
    assert_eq!((rest, mode(&world, &regional())), (None, Some("Regional")), "just attached");
    assert_eq!(tries(&world), before + 1);
    let (_, rest) = world.go_on(reconciliation, 600);
    assert_eq!((rest, mode(&world, &regional())), (Some(Rest::Reached), Some("PerAZ")));
}

/// A new tag of the spec is in the request, too.
#[test]
fn a_general_refusal_does_not_count_while_aws_refuses_the_tags_on_other_resources() {
    let mut world = refusing("InvalidParameterValue");
    world.run(&present(&with(NatMode::Single, None)), &mut |_| None);
    world.cloud.refusals.push(("CreateTags", "InvalidParameterValue", u32::MAX));
    let mut spec = regional();
    spec.additional_tags.insert("team".to_owned(), "blue".to_owned());
    let (reconciliation, rest) = world.run_once_for(&present(&spec), 600);
    assert_eq!((rest, mode(&world, &spec)), (None, Some("Regional")));
    let (_, _, message) = condition(&reconciliation, &spec);
    assert!(message.contains("; the cause may be additionalTags: "), "{message}");
    // One that says nothing about the tags does not keep it open.
    for refusal in [None, Some(("CreateTags", "UnauthorizedOperation", u32::MAX))] {
        let mut world = world.clone();
        world.cloud.refusals.retain(|(operation, ..)| *operation != "CreateTags");
        world.cloud.refusals.extend(refusal);
        let (reconciliation, _) = world.run_once_for(&present(&spec), 600);
        assert_eq!(mode(&world, &spec), Some("PerAZ"), "{refusal:?}");
        let (_, _, message) = condition(&reconciliation, &spec);
        assert!(!message.contains("additionalTags"), "{message}");
    }
}

#[test]
fn where_no_mode_takes_its_place_all_stays_as_it_is_and_the_condition_says_so() {
    let mut world = refusing("UnsupportedOperation");
    let without_public = |mode| {
        let mut spec = with(mode, None);
        spec.subnets.remove(4);
        spec
    };
    world.run(&present(&without_public(NatMode::Single)), &mut |_| None);
    let before = inventory(&world.cloud);
    let spec = without_public(NatMode::Regional);
    for tried in [1, 0] {
        let (reconciliation, rest) = world.run_later(&present(&spec));
        assert_eq!((rest, tries(&world)), (Rest::Stuck, tried));
        let (is_true, reason, message) = condition(&reconciliation, &spec);
        assert_eq!((is_true, reason), (false, Reason::Unsupported.as_str()), "{message}");
        assert!(message.contains("us-east-2") && message.contains("public subnet"), "{message}");
        assert_eq!(differences(&inventory(&world.cloud), &before), Vec::<String>::new());
        assert_eq!(mode(&world, &spec), None);
        let (is_true, ..) = condition_of(Part::RouteTables, &reconciliation, &spec);
        assert!(is_true, "routes still lead to the NAT gateway of before");
    }
    let mut fresh = refusing("UnsupportedOperation");
    let (reconciliation, rest) = fresh.run(&present(&spec), &mut |_| None);
    let (is_true, reason, message) = condition_of(Part::RouteTables, &reconciliation, &spec);
    assert_eq!((rest, is_true, reason), (Rest::Stuck, false, "Unsupported"), "{message}");
    assert!(message.contains("without a default route: 3"), "{message}");
    // With a public subnet in each zone the mode PerAZ takes its place.
    let (_, rest) = world.run_later(&present(&regional()));
    assert_eq!((rest, tries(&world), live(&world.cloud).len()), (Rest::Reached, 0, 3));
}

#[test]
fn partitions_that_have_none_are_not_asked() {
    let regions =
        ["cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1"];
    for region in regions {
        let (spec, mut world) = (of_region(region), World::new(SLOW, 1));
        let (_, rest) = world.run(&present(&spec), &mut |_| None);
        assert_eq!((rest, tries(&world), live(&world.cloud).len()), (Rest::Reached, 0, 3));
        assert_eq!(mode(&world, &spec), Some("PerAZ"), "{region}");
    }
    for region in ["eu-central-1", "us-east-1", "eusc-de-east-1"] {
        let mut world = World::new(SLOW, 1);
        world.run(&present(&of_region(region)), &mut |_| None);
        assert_eq!(tries(&world), 1, "{region}");
    }
}

/// The refusal is stored before anything is made in its place.
#[test]
fn a_refusal_outlives_a_crash_at_any_write() {
    let (spec, mut whole) = (regional(), refusing("UnsupportedOperation"));
    whole.run(&present(&spec), &mut |_| None);
    let wanted = inventory(&whole.cloud);
    for point in 0..whole.writes.len() {
        for fault in Fault::ALL {
            let mut world = refusing("UnsupportedOperation");
            world.run(&present(&spec), &mut |sent| (sent == point).then_some(fault));
            assert!(tries(&world) <= 2, "{point}, {fault:?}: {} tries", tries(&world));
            let found = differences(&inventory(&world.cloud), &wanted);
            assert_eq!(found, Vec::<String>::new(), "{point}, {fault:?}");
        }
        // AWS offers it when the process is back, and the mode stays if addresses were allocated.
        let mut world = refusing("UnsupportedOperation");
        world.run_until_crash(&present(&spec), point);
        world.cloud.refusals.clear();
        let has_addresses = world.cloud.addresses.ever() > 0;
        world.run_later(&present(&spec));
        assert!(!has_addresses || tries(&world) == 0, "{point}: the refusal was forgotten");
    }
}

#[test]
fn a_create_of_unknown_outcome_is_forgotten_once_another_mode_has_taken_its_place() {
    let mut whole = World::new(SLOW, 1);
    whole.run(&present(&regional()), &mut |_| None);
    let is_try =
        |it: &aws_network::Planned| matches!(it.action, Action::CreateRegionalNatGateway { .. });
    let point = whole.writes.iter().position(is_try).unwrap();
    for next in [NatMode::Regional, NatMode::Single] {
        let mut world = World::new(SLOW, 1);
        world.run_until(&present(&regional()), point, Fault::CrashBefore);
        let record = &world.memory.records[&LogicalId::NatGateway("regional".to_owned())];
        assert_eq!(record.id, None);
        world.cloud.refusals.push(("CreateRegionalNatGateway", "UnsupportedOperation", u32::MAX));
        let (_, rest) = world.run(&present(&with(next, None)), &mut |_| None);
        assert_eq!(rest, Rest::Reached);
        let mut pending = world.memory.records.iter().filter(|(_, record)| record.id.is_none());
        assert_eq!(pending.next(), None, "{next:?}");
    }
}

#[test]
fn a_gateway_that_fails_or_is_lost_is_made_again() {
    let mut world = World::new(Nature { failing_nats: 2, ..SLOW }, 1);
    let (_, rest) = world.run(&present(&regional()), &mut |_| None);
    assert_eq!((rest, tries(&world)), (Rest::Reached, 3));
    let lost = live(&world.cloud).remove(0).id;
    world.cloud.call(&Action::DeleteNatGateway { nat_gateway: lost.clone() }).unwrap();
    let (_, rest) = world.run_later(&present(&regional()));
    let after = live(&world.cloud);
    assert_eq!((rest, after.len()), (Rest::Reached, 1));
    assert_ne!(after[0].id, lost);
    no_subnet_loses_its_route(&world.cloud);
}

#[test]
fn the_table_that_aws_has_made_is_not_reported_as_somebody_elses() {
    let (spec, mut world) = (regional(), World::new(Nature::PROMPT, 1));
    world.run(&present(&spec), &mut |_| None);
    let (table, now) = (live(&world.cloud).remove(0).route_table.unwrap(), world.cloud.now);
    world.cloud.tables.edit(&table, now, |table| table.tags.clear());
    world.cloud.refusals.push(("DeleteNatGateway", "DependencyViolation", u32::MAX));
    let (reconciliation, rest) = world.run_once_for(&absent(&spec), 1200);
    let problems = format!("{:?}", reconciliation.problems());
    assert!(rest.is_none() && problems.contains("DeleteNatGateway"), "{problems}");
    assert!(!problems.contains(&table), "{table}: {problems}");
    world.cloud.refusals.clear();
    world.run(&absent(&spec), &mut |_| None);
    assert_eq!(inventory(&world.cloud), Vec::<String>::new());
}
