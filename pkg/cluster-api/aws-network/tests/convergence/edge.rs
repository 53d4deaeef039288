//! Subnets in local zones and wavelength zones: where their traffic goes, what is never there, the carrier
//! gateway, and specs that contradict AWS.

use aws_fixtures::{LOCAL, WAVELENGTH, absent, dual_stack, edge, load_balancer, present, seed};
use aws_network::{
    Action, BastionSpec, DEFAULT_ROUTE, Desired, LoadBalancerKind, Memory, NatMode, Part, Planned,
    Problem, Reason, Rest, Spec, SubnetSpec, Tags, Target, ZoneType, network_ids, outputs,
};
use cloud_double::{Cloud, Nature, inventory};

use crate::adoption::as_upstream_made_it;
use crate::driver::World;
use crate::dual_stack::{conditions_of, goes, is_silent, made, reach};
use crate::foreign::{in_theirs, theirs};

const SLOW: Nature = Nature { slow: 60, ..Nature::PROMPT };

pub(crate) fn zone(name: &str) -> String {
    format!("us-east-2{name}")
}

/// The zones of the subnets, with where the default route leads: to `igw`, to the NAT gateway of a zone, or
/// elsewhere.
pub(crate) fn exits(cloud: &Cloud, place: &str) -> Vec<String> {
    let zone_of =
        |id: &str| cloud.subnets.get(id).map_or("all zones".to_owned(), |it| it.zone.clone());
    let here = cloud.subnets.all().into_iter().filter(|it| it.zone == zone(place));
    let exit = |subnet: aws_network::Subnet| {
        let all = cloud.tables.all();
        let table = all.iter().find(|it| it.association_of(&subnet.id).is_some()).unwrap();
        match table.route_to(DEFAULT_ROUTE).map(|route| &route.target) {
            Some(Target::NatGateway(id)) => zone_of(&cloud.nats.get(id).unwrap().subnet),
            Some(Target::InternetGateway(_)) => "igw".to_owned(),
            Some(Target::CarrierGateway(_)) => "carrier".to_owned(),
            other => format!("{other:?}"),
        }
    };
    let mut all: Vec<_> = here.map(exit).collect();
    all.sort();
    all
}

pub(crate) fn without(mut spec: Spec, is_surplus: fn(&SubnetSpec) -> bool) -> Spec {
    spec.subnets.retain(|it| !is_surplus(it));
    spec
}

pub(crate) fn is_of(subnet: &SubnetSpec, place: &str) -> bool {
    subnet.availability_zone == Some(zone(place))
}

#[test]
fn subnets_in_edge_zones_have_routes_and_nothing_of_the_region() {
    for kind in [LoadBalancerKind::Classic, LoadBalancerKind::Network] {
        let spec = Spec { load_balancer: Some(load_balancer(kind)), ..edge() };
        let mut world = World::new(SLOW, 4);
        let (reconciliation, rest) = world.run_later(&present(&spec));
        assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        assert_eq!(exits(&world.cloud, LOCAL), ["igw", "us-east-2b"]);
        assert_eq!(exits(&world.cloud, WAVELENGTH), ["carrier", "us-east-2c"]);
        for subnet in world.cloud.subnets.all() {
            let is_far = subnet.zone.len() > zone("a").len();
            let has_tag = subnet.tags.keys().any(|key| key.starts_with("kubernetes.io/role/"));
            assert_eq!(has_tag, !is_far, "{subnet:?}");
            let is_public = subnet.tags["Name"].contains("-public-");
            let maps = is_public && !subnet.zone.ends_with(WAVELENGTH);
            assert_eq!(subnet.map_public_ip, maps, "{subnet:?}");
        }
        assert_eq!(world.cloud.carriers.all()[0].tags["Name"], "testnetwork3-igw");
        let found = conditions_of(&reconciliation, &present(&spec));
        assert!(found.contains(&(Part::CarrierGateway, true)), "{found:?}");
        let desired = Desired::from_spec(&spec).unwrap();
        let domains = outputs(&desired, reconciliation.observed(), None).failure_domains;
        let domains: Vec<_> = domains.into_iter().map(|(name, _)| name).collect();
        assert_eq!(domains, ["a", "b", "c"].map(zone));
        let ids = network_ids(&desired, reconciliation.observed()).unwrap();
        assert_eq!(ids.carrier_gateway, Some(world.cloud.carriers.all().remove(0).id));
        let edges = ids.subnets.into_iter().filter_map(|it| it.edge?.parent);
        assert_eq!(edges.collect::<Vec<_>>(), ["b", "b", "c", "c"].map(zone));
        is_silent(&mut world, &spec);
        world.memory = Memory::default();
        is_silent(&mut world, &spec);
        goes(&mut world, &spec);
    }
}

#[test]
fn traffic_of_private_subnets_leaves_through_the_parent_zone_or_else_the_first() {
    let not_b = |it: &SubnetSpec| is_of(it, "b");
    let private_of_zones =
        |it: &SubnetSpec| !it.is_public && !is_of(it, LOCAL) && !is_of(it, WAVELENGTH);
    let with = |mode| Spec { nat_mode: mode, ..edge() };
    let in_c = Spec { nat_zone: Some(zone("c")), ..with(NatMode::Single) };
    for (spec, local, wavelength, nats) in [
        (without(edge(), not_b), "us-east-2a", "us-east-2c", 2),
        (without(edge(), private_of_zones), "us-east-2b", "us-east-2b", 1),
        (in_c, "us-east-2c", "us-east-2c", 1),
        (with(NatMode::Regional), "all zones", "all zones", 1),
        (without(with(NatMode::Regional), private_of_zones), "all zones", "all zones", 1),
        (with(NatMode::None), "None", "None", 0),
    ] {
        let mut world = made(&spec);
        for (place, mut exits_of) in
            [(LOCAL, ["igw", local]), (WAVELENGTH, ["carrier", wavelength])]
        {
            exits_of.sort_unstable();
            assert_eq!(exits(&world.cloud, place), exits_of, "{place}");
        }
        assert_eq!(world.cloud.nats.all().len(), nats);
        is_silent(&mut world, &spec);
        goes(&mut world, &spec);
    }
}

/// AWS offers carrier gateways to VPCs with a subnet in a wavelength zone, and deletes no VPC with one.
#[test]
fn the_carrier_gateway_is_made_after_its_subnet_and_goes_before_it() {
    let mut world = World::new(SLOW, 4);
    reach(&mut world, &edge());
    let place = |world: &World, is_it: &dyn Fn(&Action) -> bool| {
        world.writes.iter().position(|it| is_it(&it.action)).unwrap()
    };
    let in_wavelength =
        |it: &Action| matches!(it, Action::CreateSubnet { zone, .. } if zone.contains("-wlz-"));
    let creates = |it: &Action| matches!(it, Action::CreateCarrierGateway { .. });
    let routes =
        |it: &Action| matches!(it, Action::CreateRoute { target: Target::CarrierGateway(_), .. });
    let order = [place(&world, &in_wavelength), place(&world, &creates), place(&world, &routes)];
    assert!(order.is_sorted(), "{order:?}");
    let tries = world.writes.iter().filter(|it| routes(&it.action)).count();
    assert_eq!(tries, 1, "none while it is pending");
    assert!(world.writes[order[1]].action.token().is_some());
    let far: Vec<_> =
        world.cloud.subnets.all().into_iter().filter(|it| it.zone.contains("-wlz-")).collect();
    world.memory = Memory::default();
    goes(&mut world, &edge());
    let deletes = |it: &Action| matches!(it, Action::DeleteCarrierGateway { .. });
    let of_far = |it: &Action| matches!(it, Action::DeleteSubnet { subnet } if far.iter().any(|far| far.id == *subnet));
    assert!(place(&world, &deletes) < place(&world, &of_far));

    let mut world = World::new(Nature::PROMPT, 4);
    world.cloud.refusals.push(("-wlz-", "InternalError", u32::MAX));
    let (reconciliation, rest) = world.run_once_for(&present(&edge()), 400);
    assert!(rest.is_none() && !world.writes.iter().any(|it| creates(&it.action)));
    let found = conditions_of(&reconciliation, &present(&edge()));
    assert!(found.contains(&(Part::CarrierGateway, false)), "{found:?}");

    let local = without(edge(), |it| is_of(it, WAVELENGTH));
    let mut world = made(&local);
    let (reconciliation, _) = world.run_later(&present(&local));
    let found = conditions_of(&reconciliation, &present(&local));
    assert!(!found.iter().any(|(part, _)| *part == Part::CarrierGateway), "{found:?}");
    assert_eq!(world.cloud.carriers.ever(), 0);
    reach(&mut world, &edge());
    assert_eq!(exits(&world.cloud, WAVELENGTH), ["carrier", "us-east-2c"], "it is added");
    goes(&mut world, &edge());
}

/// Without records, as after a move, and without subnets in wavelength zones it is found by what is in the VPC.
#[test]
fn a_carrier_gateway_of_ours_that_is_not_needed_goes() {
    let far = |it: &SubnetSpec| is_of(it, WAVELENGTH);
    let mut world = made(&edge());
    let left = without(edge(), far);
    let (_, rest) = world.run_later(&present(&left));
    assert_eq!((rest, world.writes.len()), (Rest::Reached, 0), "surplus subnets use it");
    let left = Spec { prune_subnets: true, ..left };
    reach(&mut world, &left);
    assert_eq!(world.cloud.carriers.all(), []);
    is_silent(&mut world, &left);
    reach(&mut world, &edge());
    assert_eq!(exits(&world.cloud, WAVELENGTH), ["carrier", "us-east-2c"], "it is added again");

    let now = world.cloud.now;
    for subnet in world.cloud.subnets.all().into_iter().filter(|it| it.zone == zone(WAVELENGTH)) {
        let mut tables = world.cloud.tables.all().into_iter();
        let table = tables.find(|it| it.association_of(&subnet.id).is_some()).unwrap();
        world.cloud.tables.remove(&table.id, now);
        world.cloud.subnets.remove(&subnet.id, now);
    }
    world.memory = Memory::default();
    world.cloud.advance(1);
    let (reconciliation, rest) = world.run_later(&absent(&left));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
    assert_eq!(reconciliation.problems(), []);
}

/// The spec has neither zone nor CIDR of such a subnet.
#[test]
fn public_subnets_that_are_named_by_id_only_have_a_carrier_gateway_and_the_bastion() {
    let mut world = made(&Spec { bastion: None, ..edge() });
    let (now, mut spec) = (world.cloud.now, edge());
    for subnet in spec.subnets.iter_mut().filter(|it| it.is_public) {
        let is_it = |it: &aws_network::Subnet| subnet.cidr_block == Some(it.cidr.to_string());
        let found = world.cloud.subnets.all().into_iter().find(is_it).unwrap();
        (subnet.id, subnet.cidr_block, subnet.availability_zone) = (Some(found.id), None, None);
    }
    spec.nat_mode = NatMode::None;
    spec.bastion = Some(BastionSpec::default());
    let id = world.cloud.carriers.all().remove(0).id;
    world.cloud.carriers.remove(&id, now);
    world.memory = Memory::default();
    world.cloud.advance(1);
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(exits(&world.cloud, WAVELENGTH), ["None", "carrier"]);
    assert_ne!(world.cloud.carriers.all()[0].id, id);
    let found = conditions_of(&reconciliation, &present(&spec));
    assert!(found.contains(&(Part::CarrierGateway, true)), "{found:?}");
    assert_eq!(world.cloud.instances.all().len(), 1);
    is_silent(&mut world, &spec);
    goes(&mut world, &spec);
}

#[test]
fn a_carrier_gateway_that_is_not_ours_is_used_and_stays() {
    let spec = edge();
    let anothers = (spec.identity.owner_tag.clone(), "another".to_owned());
    for tags in [Tags::new(), Tags::from([anothers])] {
        let mut world = made(&spec);
        let (id, now) = (world.cloud.carriers.all().remove(0).id, world.cloud.now);
        world.cloud.carriers.edit(&id, now, |it| it.tags.clone_from(&tags));
        is_silent(&mut world, &spec);
        world.memory = Memory::default();
        is_silent(&mut world, &spec);
        let (reconciliation, rest) = world.run_once_for(&absent(&spec), 400);
        let problems = reconciliation.problems();
        let names_it = |it: &Problem| it.reason == Reason::InUse && it.message.contains(&id);
        assert!(rest.is_none() && problems.iter().any(names_it), "{problems:#?}");
        assert_eq!(world.cloud.carriers.all()[0].tags, tags);
        world.cloud.carriers.remove(&id, world.cloud.now);
        goes(&mut world, &spec);
    }
    let mut world = made(&spec);
    let (id, now) = (world.cloud.carriers.all().remove(0).id, world.cloud.now);
    world.cloud.carriers.edit(&id, now, |it| drop(it.tags.remove(&spec.identity.owner_tag)));
    for table in world.cloud.tables.all() {
        let is_other = |it: &aws_network::Route| !matches!(it.target, Target::CarrierGateway(_));
        world.cloud.tables.edit(&table.id, now, |it| it.routes.retain(is_other));
    }
    world.memory = Memory::default();
    let (reconciliation, _) = world.run_later(&present(&spec));
    let problems = reconciliation.problems();
    let is_conflict = |it: &Problem| it.part == Part::CarrierGateway && it.message.contains(&id);
    assert!(problems.iter().any(is_conflict) && world.writes.is_empty(), "{problems:#?}");
}

/// Upstream gives subnets in edge zones the tags for load balancers when it looks at them again.
#[test]
fn a_cluster_of_upstream_with_edge_zones_is_adopted_by_tags_and_deleted_as_a_whole() {
    let mut world = made(&edge());
    as_upstream_made_it(&mut world.cloud);
    let now = world.cloud.now;
    for subnet in world.cloud.subnets.all() {
        let key = if subnet.tags["Name"].contains("-public") { "elb" } else { "internal-elb" };
        let key = format!("kubernetes.io/role/{key}");
        world
            .cloud
            .subnets
            .edit(&subnet.id, now, |it| drop(it.tags.insert(key.clone(), "1".into())));
    }
    world.memory = Memory::default();
    world.cloud.advance(1);
    let mut spec = edge();
    let (_, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, world.writes.len()), (Rest::Stuck, 0));
    spec.identity.adopt = true;
    let mut ending = world.clone();
    reach(&mut world, &spec);
    let is_of_tags = |it: &Planned| {
        matches!(it.action, Action::CreateTags { .. } | Action::DeleteTags { .. } | Action::Elb(_))
    };
    assert!(world.writes.iter().all(is_of_tags), "{:#?}", world.writes);
    let far = world.cloud.subnets.all().into_iter().filter(|it| it.zone.starts_with("us-east-2-"));
    let keys: Vec<_> = far.flat_map(|it| it.tags.into_keys()).collect();
    assert!(!keys.iter().any(|key| key.starts_with("kubernetes.io/role/")), "{keys:?}");
    spec.identity.adopt = false;
    is_silent(&mut world, &spec);
    assert_eq!(world.cloud.carriers.ever(), 1);
    goes(&mut world, &spec);
    spec.identity.adopt = true;
    goes(&mut ending, &spec);
}

/// The spec names subnets by their ids only, so AWS was not asked about their zones.
#[test]
fn in_a_vpc_of_the_user_the_load_balancer_stays_out_of_edge_zones() {
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    world.cloud.subnets.edit("subnet-f0000001", 0, |it| it.zone = zone(LOCAL));
    reach(&mut world, &in_theirs());
    assert_eq!(world.cloud.classic.all()[0].subnets, ["subnet-f0000002"]);
    is_silent(&mut world, &in_theirs());

    let mut named = in_theirs();
    named.load_balancer.as_mut().unwrap().subnets = vec!["subnet-f0000001".to_owned()];
    let (reconciliation, _) = world.run_later(&present(&named));
    let problems = reconciliation.problems();
    assert_eq!(
        problems[0].message,
        "spec.controlPlaneLoadBalancer.subnets: subnet-f0000001 is in us-east-2-lcl-1a: requires a subnet \
         in a regular zone"
    );
}

#[test]
fn target_groups_use_ipv6_although_edge_zones_have_none() {
    let mut spec =
        Spec { subnets: edge().subnets, known_zones: edge().known_zones, ..dual_stack() };
    spec.subnets.iter_mut().take(6).for_each(|subnet| subnet.is_ipv6 = true);
    let mut world = made(&spec);
    assert!(world.cloud.target_groups.all()[0].is_ipv6);
    is_silent(&mut world, &spec);
    goes(&mut world, &spec);
}

#[test]
fn what_contradicts_aws_or_is_not_to_be_had_in_edge_zones_is_refused() {
    let of = |change: fn(&mut Spec)| {
        let mut spec = edge();
        change(&mut spec);
        let errors = Desired::from_spec(&spec).map_or_else(|errors| errors, |it| it.contradictions);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let subnets = "cannot use spec.network.subnets";
    assert_eq!(of(|_| {}), [""; 0]);
    let right = of(|spec| {
        spec.subnets[6].zone_type = Some(ZoneType::LocalZone);
        spec.subnets[6].parent_zone = Some(zone("b"));
        spec.subnets[0].zone_type = Some(ZoneType::AvailabilityZone);
    });
    assert_eq!(right, [""; 0]);
    assert_eq!(
        of(|spec| spec.subnets[6].zone_type = Some(ZoneType::WavelengthZone)),
        [format!(
            "{subnets}[6].zoneType: us-east-2-lcl-1a is of the type local-zone, not wavelength-zone"
        )]
    );
    assert_eq!(
        of(|spec| spec.subnets[0].zone_type = Some(ZoneType::LocalZone)),
        [format!(
            "{subnets}[0].zoneType: us-east-2a is of the type availability-zone, not local-zone"
        )]
    );
    assert_eq!(
        of(|spec| spec.subnets[6].parent_zone = Some(zone("a"))),
        [format!("{subnets}[6].parentZoneName: us-east-2-lcl-1a has us-east-2b, not us-east-2a")]
    );
    assert_eq!(
        of(|spec| spec.subnets[1].parent_zone = Some(zone("a"))),
        [format!("{subnets}[1].parentZoneName: us-east-2a has no parent zone, not us-east-2a")]
    );
    assert_eq!(
        of(|spec| {
            spec.ipv6 = true;
            spec.subnets[9].is_ipv6 = true;
        }),
        [format!("{subnets}[9]: IPv6 is not supported in wavelength-zone us-east-2-wl1-cmh-wlz-1")]
    );
    let in_local = of(|spec| {
        (spec.nat_mode, spec.nat_zone) = (NatMode::Single, Some(zone(LOCAL)));
    });
    let problem = "zone \"us-east-2-lcl-1a\" has no public subnet for the NAT gateway";
    let path = "cannot use spec.network.natGateways.availabilityZone";
    assert_eq!(in_local, [format!("{path}: {problem}")]);
    let far = of(|spec| drop(spec.subnets.drain(..6)));
    assert!(far.contains(&format!("{subnets}: requires a subnet in a regular zone")), "{far:?}");
    let public = of(|spec| spec.subnets[..6].iter_mut().for_each(|it| it.is_public = false));
    assert_eq!(public.len(), 2, "NAT gateways and a public load balancer need one: {public:?}");
}

/// A plan that is made from manifests knows names only.
#[test]
fn the_name_of_a_zone_tells_its_type_where_aws_was_not_asked() {
    let mut spec = Spec { known_zones: Vec::new(), ..edge() };
    spec.subnets[7].parent_zone = Some(zone("c"));
    let desired = Desired::from_spec(&spec).unwrap();
    let types = desired.subnets[5..].iter().map(|it| Some(it.edge.as_ref()?.zone_type));
    let (local, wavelength) = (Some(ZoneType::LocalZone), Some(ZoneType::WavelengthZone));
    assert_eq!(types.collect::<Vec<_>>(), [None, local, local, wavelength, wavelength]);
    let world = made(&spec);
    assert_eq!(exits(&world.cloud, LOCAL), ["igw", "us-east-2c"]);
    assert_eq!(exits(&world.cloud, WAVELENGTH), ["carrier", "us-east-2a"]);
    assert!(!inventory(&world.cloud).is_empty());
    assert!(inventory(&made(&seed()).cloud).iter().all(|line| !line.contains("carrier")));
}
