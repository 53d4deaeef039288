//! The NAT policy is changed while traffic flows.

use aws_fixtures::{LOCAL, WAVELENGTH, absent, edge, present, seed};
use aws_network::{Action, DEFAULT_ROUTE, Memory, NatMode, NatState, Rest, Spec, Target};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::driver::World;
use crate::dual_stack::{goes, is_silent, made, reach};
use crate::edge::{exits, is_of, without, zone};

pub(crate) fn with(mode: NatMode, zone: Option<&str>) -> Spec {
    let mut spec = seed();
    spec.nat_mode = mode;
    spec.nat_zone = zone.map(str::to_owned);
    spec
}

pub(crate) fn private_exits(cloud: &Cloud) -> Vec<Option<Target>> {
    let tables = cloud.tables.all();
    let is_private = |table: &&aws_network::RouteTable| table.tags["Name"].contains("-rt-private-");
    let exit = |table: &aws_network::RouteTable| {
        let mut routes = table.routes.iter();
        routes.find(|route| route.destination == DEFAULT_ROUTE).map(|route| route.target.clone())
    };
    tables.iter().filter(is_private).map(exit).collect()
}

/// Every private subnet leads to a NAT gateway that serves.
pub(crate) fn no_subnet_loses_its_route(cloud: &Cloud) {
    for exit in private_exits(cloud) {
        let Some(Target::NatGateway(id)) = exit else { panic!("{exit:?} is no way out") };
        assert_eq!(
            cloud.nats.get(&id).unwrap().state,
            NatState::Available,
            "a route leads to {id}"
        );
    }
}

/// The NAT gateways that serve, with their addresses.
pub(crate) fn serving(cloud: &Cloud) -> Vec<(String, Vec<String>)> {
    let live = cloud.nats.all().into_iter().filter(|nat| nat.state == NatState::Available);
    live.map(|nat| (nat.id, nat.allocations)).collect()
}

#[test]
fn a_change_of_the_policy_interrupts_no_subnet_and_ends_like_a_new_cluster() {
    let nature = Nature { slow: 60, ..Nature::PROMPT };
    let steps = [
        (NatMode::Single, None),
        (NatMode::Single, Some("us-east-2c")),
        (NatMode::PerZone, None),
        (NatMode::Single, Some("us-east-2b")),
        (NatMode::PerZone, None),
    ];
    let mut world = World::new(nature.clone(), 1);
    world.run(&present(&with(NatMode::PerZone, None)), &mut |_| None);
    no_subnet_loses_its_route(&world.cloud);
    world.invariant = no_subnet_loses_its_route;
    for (mode, zone) in steps {
        let spec = with(mode, zone);
        let before = serving(&world.cloud);
        let (reconciliation, rest) = world.run_later(&present(&spec));
        assert_eq!(rest, Rest::Reached, "{mode:?} {zone:?}: {:#?}", reconciliation.problems());
        let mut fresh = World::new(nature.clone(), 1);
        fresh.run(&present(&spec), &mut |_| None);
        assert_eq!(
            differences(&inventory(&world.cloud), &inventory(&fresh.cloud)),
            Vec::<String>::new(),
            "{mode:?} {zone:?}"
        );
        let after = serving(&world.cloud);
        let (few, many) =
            if after.len() < before.len() { (&after, &before) } else { (&before, &after) };
        if before.len() != after.len() {
            assert!(
                few.iter().all(|nat| many.contains(nat)),
                "who stays keeps its address: {before:?} {after:?}"
            );
        }
        world.run_later(&present(&spec));
        assert!(world.writes.is_empty(), "{:#?}", world.writes);
    }
}

#[test]
fn a_single_nat_gateway_stays_where_it_is_when_the_spec_lists_its_subnets_in_another_order() {
    let spec = with(NatMode::Single, None);
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 1);
    world.run(&present(&spec), &mut |_| None);
    let before = serving(&world.cloud);
    let mut reordered = spec;
    reordered.subnets.rotate_left(2);
    let (_, rest) = world.run_later(&present(&reordered));
    assert_eq!((rest, serving(&world.cloud)), (Rest::Reached, before.clone()));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);

    // One that is lost comes back with its address, which others have in allow-lists.
    let (now, (lost, allocations)) = (world.cloud.now, before[0].clone());
    world.cloud.nats.edit(&lost, now, |nat| nat.state = NatState::Deleted);
    world.cloud.addresses.edit(&allocations[0], now, |address| address.association = None);
    let (_, rest) = world.run_later(&present(&reordered));
    let after = serving(&world.cloud);
    assert_eq!((rest, after.len(), &after[0].1), (Rest::Reached, 1, &allocations));
    assert_ne!(after[0].0, lost);
}

/// While it ends, AWS shows its address as in use.
#[test]
fn a_nat_gateway_that_somebody_deletes_comes_back_with_its_address() {
    let spec = with(NatMode::PerZone, None);
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 1);
    world.run(&present(&spec), &mut |_| None);
    let before = serving(&world.cloud);
    let nat_gateway = before[0].0.clone();
    world.cloud.call(&Action::DeleteNatGateway { nat_gateway }).unwrap();
    let (_, rest) = world.run(&present(&spec), &mut |_| None);
    let addresses = |nats: Vec<(String, Vec<String>)>| {
        let mut all: Vec<_> = nats.into_iter().flat_map(|nat| nat.1).collect();
        all.sort();
        all
    };
    let after = addresses(serving(&world.cloud));
    assert_eq!((rest, after), (Rest::Reached, addresses(before)), "{:#?}", world.writes);
    assert_eq!(world.cloud.addresses.ever(), 3);
}

#[test]
fn without_nat_gateways_private_subnets_lead_nowhere_and_nothing_is_paid_for() {
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 1);
    world.run(&present(&with(NatMode::PerZone, None)), &mut |_| None);
    let (_, rest) = world.run_later(&present(&with(NatMode::None, None)));
    assert_eq!(rest, Rest::Reached);
    assert_eq!(private_exits(&world.cloud), [None, None, None]);
    assert_eq!((serving(&world.cloud).len(), world.cloud.addresses.all().len()), (0, 0));
    let (_, rest) = world.run_later(&present(&with(NatMode::PerZone, None)));
    assert_eq!(rest, Rest::Reached);
    no_subnet_loses_its_route(&world.cloud);
}

#[test]
fn a_route_of_the_user_stays_where_there_are_no_nat_gateways() {
    let spec = with(NatMode::None, None);
    let mut world = World::new(Nature::PROMPT, 1);
    world.run(&present(&spec), &mut |_| None);
    let tables = world.cloud.tables.all();
    let table = tables.iter().find(|table| table.tags["Name"].contains("-rt-private-")).unwrap();
    let target = Target::Other("tgw-1".to_owned());
    world.cloud.tables.edit(&table.id, 1_000_000, |table| {
        let destination = DEFAULT_ROUTE.to_owned();
        table.routes.push(aws_network::Route { destination, target, blackhole: false });
    });
    world.run_later(&present(&spec));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
}

#[test]
fn a_change_of_the_policy_survives_a_fault_at_any_write() {
    use crate::driver::Fault;
    for (from, to) in [
        (NatMode::PerZone, NatMode::Single),
        (NatMode::Single, NatMode::PerZone),
        (NatMode::PerZone, NatMode::None),
        (NatMode::PerZone, NatMode::Regional),
        (NatMode::Regional, NatMode::PerZone),
        (NatMode::Regional, NatMode::Single),
    ] {
        let mut start = World::new(Nature { slow: 60, ..Nature::PROMPT }, 1);
        start.run(&present(&with(from, None)), &mut |_| None);
        let mut whole = start.clone();
        whole.run_later(&present(&with(to, None)));
        let wanted = inventory(&whole.cloud);
        for point in 0..whole.writes.len() {
            for fault in Fault::ALL {
                let mut world = start.clone();
                let (reconciliation, rest) = world
                    .run(&present(&with(to, None)), &mut |sent| (sent == point).then_some(fault));
                assert_eq!(
                    rest,
                    Rest::Reached,
                    "{from:?} to {to:?}, {point}, {fault:?}: {:#?}",
                    reconciliation.problems()
                );
                assert_eq!(
                    differences(&inventory(&world.cloud), &wanted),
                    Vec::<String>::new(),
                    "{from:?} to {to:?}, {point}, {fault:?}"
                );
            }
        }
        whole.run_later(&absent(&with(to, None)));
        assert_eq!(inventory(&whole.cloud), Vec::<String>::new());
    }
}

/// A NAT gateway in the local zone as a release made it that took the zone for an availability zone; with its
/// routes, and with or without the others.
fn with_nat_in_local_zone(spec: &Spec, is_only_one: bool) -> World {
    let mut world = made(spec);
    let now = world.cloud.now;
    let subnets = world.cloud.subnets.all();
    let in_local = |public: bool| {
        let role = if public { "public" } else { "private" };
        let name = format!("-{role}-{}", zone(LOCAL));
        subnets.iter().find(|it| it.tags["Name"].ends_with(&name)).unwrap().id.clone()
    };
    let others = world.cloud.nats.all();
    let address = others[0].allocations[0].clone();
    let mut nat = others[0].clone();
    let mut elastic = world.cloud.addresses.get(&address).unwrap().clone();
    for tags in [&mut nat.tags, &mut elastic.tags] {
        tags.insert("aws.cluster.x-k8s.io/nat-az".to_owned(), zone(LOCAL));
    }
    (nat.id, nat.subnet, nat.allocations) =
        ("nat-local".to_owned(), in_local(true), vec!["eipalloc-local".to_owned()]);
    elastic.id.clone_from(&nat.allocations[0]);
    world.cloud.nats.put("nat-local", now, nat);
    world.cloud.addresses.put("eipalloc-local", now, elastic);
    for old in others.iter().filter(|_| is_only_one) {
        world.cloud.nats.remove(&old.id, now);
        world.cloud.addresses.remove(&old.allocations[0], now);
    }
    for table in world.cloud.tables.all() {
        let is_far = table.association_of(&in_local(false)).is_some();
        let target = Target::NatGateway("nat-local".to_owned());
        world.cloud.tables.edit(&table.id, now, |it| {
            let mut to_nat = it.routes.iter_mut();
            let route = to_nat.find(|it| matches!(it.target, Target::NatGateway(_)));
            if let Some(route) = route.filter(|_| is_far || is_only_one) {
                route.target = target.clone();
            }
        });
    }
    world.memory = Memory::default();
    world.cloud.advance(1);
    world
}

/// Earlier releases made NAT gateways in those local zones where AWS offers them.
#[test]
fn a_nat_gateway_of_ours_in_a_local_zone_stays_with_its_address_and_routes() {
    let single = Spec { nat_mode: NatMode::Single, ..edge() };
    let only_far =
        without(edge(), |it| !it.is_public && (!is_of(it, LOCAL) || is_of(it, WAVELENGTH)));
    for (spec, is_only_one) in [(edge(), false), (single, true), (only_far, true)] {
        let mut world = with_nat_in_local_zone(&spec, is_only_one);
        is_silent(&mut world, &spec);
        assert_eq!(exits(&world.cloud, LOCAL), ["igw", "us-east-2-lcl-1a"]);
        let elsewhere = exits(&world.cloud, WAVELENGTH);
        let through = if is_only_one { "us-east-2-lcl-1a" } else { "us-east-2c" };
        assert!(elsewhere.len() == 1 || elsewhere == ["carrier", through], "{elsewhere:?}");
        assert_eq!(world.cloud.nats.all().len(), if is_only_one { 1 } else { 4 });
        // It ends with its subnet or its mode, and is not made again.
        let moved = Spec { nat_mode: NatMode::Regional, ..spec.clone() };
        let mut gone = without(spec.clone(), |it| is_of(it, LOCAL) && !it.is_public);
        gone.prune_subnets = true;
        let mut ended = world.clone();
        let now = ended.cloud.now;
        ended.cloud.nats.remove("nat-local", now);
        ended.cloud.addresses.edit("eipalloc-local", now, |it| it.association = None);
        for other in if is_only_one { vec![moved] } else { vec![moved, gone] } {
            let mut world = world.clone();
            reach(&mut world, &other);
            assert!(world.cloud.addresses.get("eipalloc-local").is_none());
        }
        reach(&mut ended, &spec);
        assert!(!exits(&ended.cloud, LOCAL).contains(&zone(LOCAL)));
        goes(&mut world, &spec);
    }
}
