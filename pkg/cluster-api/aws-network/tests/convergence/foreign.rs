//! Resources of others are used or left alone, and never changed or deleted.

use std::collections::BTreeMap;

use aws_fixtures::{absent, load_balancer, present, seed};
use aws_network::{
    Action, Goal, InternetGateway, LoadBalancerKind, NetworkInterface, Part, ROLE_TAG, Reason,
    Removal, Rest, Role, Route, RouteTable, Rule, SecurityGroup, ServiceResources, Source, Spec,
    Subnet, SubnetSpec, Tags, Target, Vpc,
};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::driver::World;

fn vpc(id: &str, cidr: &str, tags: Tags) -> Vpc {
    let cidr = cidr::parse(cidr).unwrap();
    let (ipv6, dns_support, dns_hostnames) = (None, Some(true), Some(false));
    let (secondary, more_ipv6) = (Vec::new(), Vec::new());
    let id = id.to_owned();
    Vpc { id, cidr, secondary, ipv6, more_ipv6, dns_support, dns_hostnames, tags }
}

fn subnet(id: &str, cidr: &str, zone: &str) -> Subnet {
    Subnet {
        id: id.to_owned(),
        vpc: "vpc-theirs".to_owned(),
        cidr: cidr::parse(cidr).unwrap(),
        ipv6: None,
        zone: format!("us-east-2{zone}"),
        map_public_ip: false,
        assigns_ipv6: false,
        available: true,
        tags: Tags::new(),
    }
}

/// A VPC of somebody else: two public subnets, by a route and by a tag, and two private ones.
pub(crate) fn theirs(cloud: &mut Cloud) {
    cloud.vpcs.put("vpc-theirs", 0, vpc("vpc-theirs", "10.1.0.0/16", Tags::new()));
    for (id, cidr, zone) in [
        ("subnet-f0000001", "10.1.1.0/24", "a"),
        ("subnet-f0000002", "10.1.2.0/24", "b"),
        ("subnet-f0000003", "10.1.3.0/24", "a"),
        ("subnet-f0000004", "10.1.4.0/24", "b"),
    ] {
        cloud.subnets.put(id, 0, subnet(id, cidr, zone));
    }
    cloud.subnets.edit("subnet-f0000002", 0, |subnet| {
        subnet.tags.insert(ROLE_TAG.to_owned(), "public".to_owned());
    });
    let gateway = InternetGateway {
        pending: false,
        id: "igw-theirs".to_owned(),
        attached_to: Some("vpc-theirs".to_owned()),
        tags: Tags::new(),
    };
    cloud.gateways.put("igw-theirs", 0, gateway);
    let (destination, target) =
        ("0.0.0.0/0".to_owned(), Target::InternetGateway("igw-theirs".to_owned()));
    let association = aws_network::Association {
        id: "rtbassoc-1".to_owned(),
        subnet: Some("subnet-f0000001".to_owned()),
    };
    let table = RouteTable {
        id: "rtb-theirs".to_owned(),
        vpc: "vpc-theirs".to_owned(),
        associations: vec![association],
        routes: vec![Route { destination, target, blackhole: false }],
        tags: Tags::new(),
    };
    cloud.tables.put("rtb-theirs", 0, table);
}

pub(crate) fn in_theirs() -> Spec {
    let mut spec = seed();
    spec.vpc_id = Some("vpc-theirs".to_owned());
    spec.vpc_cidr = None;
    let named = |id: &str| SubnetSpec { id: Some(id.to_owned()), ..SubnetSpec::default() };
    spec.subnets = ["subnet-f0000001", "subnet-f0000002", "subnet-f0000003", "subnet-f0000004"]
        .map(named)
        .to_vec();
    spec
}

#[test]
fn in_a_vpc_of_others_groups_and_the_load_balancer_are_all_that_comes_and_goes() {
    for kind in [LoadBalancerKind::Classic, LoadBalancerKind::Network] {
        let mut spec = in_theirs();
        spec.load_balancer = Some(load_balancer(kind));
        let mut world = World::new(Nature::PROMPT, 2);
        theirs(&mut world.cloud);
        let before = inventory(&world.cloud);
        let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
        assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
        let ours = inventory(&world.cloud).into_iter().filter(|line| !before.contains(line));
        let kinds: Vec<_> = ours.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        let wanted: &[&str] = match kind {
            LoadBalancerKind::Classic => &["elb", "group", "group", "group", "group"],
            LoadBalancerKind::Network => &["group", "group", "group", "group", "nlb", "target"],
        };
        assert_eq!(kinds, wanted);
        let subnets = match kind {
            LoadBalancerKind::Classic => world.cloud.classic.all().remove(0).subnets,
            LoadBalancerKind::Network => world.cloud.network.all().remove(0).subnets,
        };
        assert_eq!(subnets, ["subnet-f0000001", "subnet-f0000002"], "the public ones");
        world.run_later(&present(&spec));
        assert!(world.writes.is_empty(), "{:#?}", world.writes);
        let (_, rest) = world.run_later(&absent(&spec));
        assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, before));
    }
}

#[test]
fn a_named_vpc_that_does_not_exist_is_not_made() {
    let mut world = World::new(Nature::PROMPT, 2);
    let (reconciliation, rest) = world.run(&present(&in_theirs()), &mut |_| None);
    assert_eq!(rest, Rest::Stuck);
    assert!(world.writes.is_empty());
    assert_eq!(reconciliation.problems()[0].reason, Reason::NotFound);
}

#[test]
fn a_cluster_of_the_same_name_and_another_owner_is_neither_used_nor_deleted() {
    let mut other = seed();
    other.identity.owner_id = "another".to_owned();
    other.load_balancer = None;
    let mut spec = seed();
    spec.load_balancer = None;
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&other), &mut |_| None);
    let theirs = inventory(&world.cloud);
    world.memory = aws_network::Memory::default();
    let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert_eq!(world.cloud.vpcs.all().len(), 2);
    world.run_later(&absent(&spec));
    assert_eq!(differences(&inventory(&world.cloud), &theirs), Vec::<String>::new());
}

#[test]
fn a_taken_name_is_a_conflict_and_stays_as_it_is() {
    let mut other = seed();
    other.identity.owner_id = "another".to_owned();
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&other), &mut |_| None);
    let balancer = world.cloud.classic.all().remove(0);
    world.memory = aws_network::Memory::default();
    let (reconciliation, rest) = world.run(&present(&seed()), &mut |_| None);
    assert_eq!(rest, Rest::Stuck);
    let problem = reconciliation
        .problems()
        .into_iter()
        .find(|problem| problem.part == Part::LoadBalancer)
        .unwrap();
    assert_eq!(problem.reason, Reason::OwnershipConflict);
    world.run_later(&absent(&seed()));
    assert_eq!(world.cloud.classic.all(), [balancer]);
}

#[test]
fn a_gateway_of_others_is_used_and_stays() {
    let spec = seed();
    let mut world = World::new(Nature::PROMPT, 2);
    world.run_until_crash(&present(&spec), 0);
    let vpc = world.cloud.vpcs.all().remove(0).id;
    let gateway = InternetGateway {
        id: "igw-theirs".to_owned(),
        attached_to: Some(vpc),
        pending: false,
        tags: Tags::new(),
    };
    world.cloud.gateways.put("igw-theirs", 0, gateway);
    let (_, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert_eq!(world.cloud.gateways.all().len(), 1);
    let mut pass_world = world.clone();
    let (reconciliation, rest) = pass_world.run_once_for(&absent(&spec), 400);
    assert_eq!(rest, None, "the gateway of others holds the VPC: {:#?}", reconciliation.problems());
    assert!(reconciliation.problems().iter().any(|problem| problem.reason == Reason::InUse));
    assert_eq!((pass_world.cloud.gateways.all().len(), pass_world.cloud.vpcs.all().len()), (1, 1));
}

#[test]
fn a_group_that_the_spec_names_is_used_as_it_is() {
    let mut spec = in_theirs();
    spec.group_overrides = BTreeMap::from([(Role::Node, "sg-theirs".to_owned())]);
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    let group = SecurityGroup {
        id: "sg-theirs".to_owned(),
        vpc: "vpc-theirs".to_owned(),
        name: "nodes".to_owned(),
        rules: Vec::new(),
        tags: Tags::new(),
    };
    world.cloud.groups.put("sg-theirs", 0, group.clone());
    let (_, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    assert_eq!(world.cloud.groups.get("sg-theirs"), Some(&group));
    let all = world.cloud.groups.all();
    let names_it = |rule: &Rule| rule.key.source == Source::Group("sg-theirs".to_owned());
    assert!(all.iter().any(|group| group.rules.iter().any(names_it)));
    world.run_later(&absent(&spec));
    assert_eq!(world.cloud.groups.all(), [group]);
}

/// The cloud provider's leavings hold subnets and groups; they go with the cluster unless the user
/// says otherwise.
#[test]
fn what_the_cloud_provider_made_for_services_goes_with_the_cluster() {
    let spec = seed();
    let mut world = World::new(Nature { drain: 40, ..Nature::PROMPT }, 2);
    world.run(&present(&spec), &mut |_| None);
    let vpc = world.cloud.vpcs.all().remove(0).id;
    let tags = Tags::from([
        ("kubernetes.io/cluster/testnetwork3".to_owned(), "owned".to_owned()),
        ("kubernetes.io/service-name".to_owned(), "default/web".to_owned()),
    ]);
    let mut balancer = world.cloud.classic.all().remove(0);
    balancer.name = "a1b2c3".to_owned();
    balancer.groups = vec!["sg-service".to_owned()];
    balancer.tags = Some(tags.clone());
    world.cloud.classic.put("a1b2c3", 0, balancer);
    let (id, name) = ("sg-service".to_owned(), "k8s-elb-a1b2c3".to_owned());
    let group = SecurityGroup { id, vpc, name, rules: Vec::new(), tags };
    world.cloud.groups.put("sg-service", 0, group);
    let (_, rest) = world.run_later(&absent(&spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

#[test]
fn what_blocks_a_deletion_for_five_minutes_is_named() {
    let spec = seed();
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&spec), &mut |_| None);
    let group =
        world.cloud.groups.all().into_iter().find(|group| group.name.ends_with("-node")).unwrap();
    let everything = Rule::new("-1", (-1, -1), Source::Group(group.id.clone()), "");
    let foreign = SecurityGroup {
        id: "sg-foreign".to_owned(),
        vpc: group.vpc.clone(),
        name: "database".to_owned(),
        rules: vec![everything],
        tags: Tags::new(),
    };
    world.cloud.groups.put("sg-foreign", 0, foreign);
    let subnet = world.cloud.subnets.all().remove(0).id;
    world.cloud.refusals.push(("DeleteSubnet", "DependencyViolation", u32::MAX));
    let interface = NetworkInterface {
        id: "eni-1".to_owned(),
        available: false,
        description: format!("database in {subnet}"),
        requester: "amazon-rds".to_owned(),
        groups: vec!["sg-foreign".to_owned()],
    };
    world.cloud.interfaces.put("eni-1", 0, interface);
    let mut stranger = world.cloud.subnets.all().remove(0);
    "subnet-foreign".clone_into(&mut stranger.id);
    stranger.tags.clear();
    world.cloud.subnets.put("subnet-foreign", 0, stranger);
    let mut stranger = world.cloud.tables.all().remove(0);
    "rtb-foreign".clone_into(&mut stranger.id);
    stranger.tags.clear();
    stranger.associations.clear();
    world.cloud.tables.put("rtb-foreign", 0, stranger);
    let mut stranger = world.cloud.gateways.all().remove(0);
    "igw-foreign".clone_into(&mut stranger.id);
    stranger.tags.clear();
    world.cloud.gateways.put("igw-foreign", 0, stranger);
    world.cloud.residents.push("vpce-foreign".to_owned());
    let (reconciliation, rest) = world.run_once_for(&absent(&spec), 900);
    assert_eq!(rest, None, "it goes on trying");
    let text = format!("{:?}", reconciliation.problems());
    for part in [
        "sg-foreign",
        "eni-1",
        "amazon-rds",
        "subnet-foreign",
        "rtb-foreign",
        "igw-foreign",
        "vpce-foreign",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    world.cloud.refusals.clear();
    world.cloud.groups.remove("sg-foreign", world.cloud.now);
    world.cloud.subnets.remove("subnet-foreign", world.cloud.now);
    world.cloud.tables.remove("rtb-foreign", world.cloud.now);
    world.cloud.gateways.remove("igw-foreign", world.cloud.now);
    let (_, rest) = world.run_later(&absent(&spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

#[test]
fn no_write_ever_names_what_is_not_ours() {
    let spec = seed();
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    world.run(&present(&spec), &mut |_| None);
    world.run(&absent(&spec), &mut |_| None);
    for planned in &world.writes {
        let text = format!("{:?}", planned.action);
        assert!(
            !text.contains("theirs")
                && !matches!(planned.action, Action::DeleteNetworkInterface { .. }),
            "{text}"
        );
    }
}

/// Two VPCs that are ours, which only an unlucky crash can leave (cluster-api-provider-aws#2563,
/// #2658).
#[test]
fn of_two_vpcs_the_one_in_use_counts_and_the_empty_one_goes() {
    // cluster-api-provider-aws#2563, #2658
    let spec = seed();
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&spec), &mut |_| None);
    let wanted = inventory(&world.cloud);
    let used = world.cloud.vpcs.all().remove(0);
    world.cloud.vpcs.put("vpc-0000", 0, vpc("vpc-0000", "10.66.0.0/24", used.tags.clone()));
    world.memory = aws_network::Memory::default();
    let (_, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, world.cloud.vpcs.all()[0].id.clone()), (Rest::Reached, used.id.clone()));
    assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new());

    world.cloud.vpcs.put("vpc-0000", 0, vpc("vpc-0000", "10.66.0.0/24", used.tags.clone()));
    let mut subnet = world.cloud.subnets.all().remove(0);
    "subnet-00000000".clone_into(&mut subnet.id);
    "vpc-0000".clone_into(&mut subnet.vpc);
    world.cloud.subnets.put("subnet-00000000", 0, subnet);
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, reconciliation.problems()[0].reason), (Rest::Stuck, Reason::DuplicateVpc));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let (_, rest) = world.run_later(&absent(&spec));
    assert_eq!(
        (rest, inventory(&world.cloud)),
        (Rest::Reached, Vec::new()),
        "both are ours to delete"
    );
}

fn interface(available: bool, id: &str) -> NetworkInterface {
    NetworkInterface {
        id: id.to_owned(),
        available,
        description: String::new(),
        requester: "somebody".to_owned(),
        groups: Vec::new(),
    }
}

#[test]
fn free_interfaces_are_deleted_when_the_user_says_so_and_used_ones_never() {
    for says_so in [false, true] {
        let spec = seed();
        let Goal::Absent(removal) = absent(&spec) else { panic!() };
        let goal = Goal::Absent(Removal { deletes_free_interfaces: says_so, ..removal });
        let mut world = World::new(Nature::PROMPT, 2);
        world.run(&present(&spec), &mut |_| None);
        world.cloud.interfaces.put("eni-free", 0, interface(true, "eni-free"));
        world.cloud.interfaces.put("eni-used", 0, interface(false, "eni-used"));
        world.cloud.refusals.push(("DeleteSubnet", "DependencyViolation", u32::MAX));
        world.run_once_for(&goal, 900);
        let left: Vec<_> = world.cloud.interfaces.all().into_iter().map(|found| found.id).collect();
        assert_eq!(left.len(), if says_so { 1 } else { 2 }, "{left:?}");
        assert!(left.contains(&"eni-used".to_owned()), "{left:?}");
    }
}

#[test]
fn the_cloud_providers_leavings_stay_when_the_user_says_so() {
    let spec = seed();
    let Goal::Absent(removal) = absent(&spec) else { panic!() };
    let goal = Goal::Absent(Removal { service_resources: ServiceResources::Stay, ..removal });
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&spec), &mut |_| None);
    let mut balancer = world.cloud.classic.all().remove(0);
    "service".clone_into(&mut balancer.name);
    balancer.groups.clear();
    balancer.subnets.clear();
    balancer.tags =
        Some(Tags::from([("kubernetes.io/cluster/testnetwork3".to_owned(), "owned".to_owned())]));
    world.cloud.classic.put("service", 0, balancer.clone());
    world.run_once_for(&goal, 600);
    assert_eq!(world.cloud.classic.all(), [balancer]);
}

#[test]
fn a_load_balancer_of_our_name_in_another_vpc_is_not_changed_although_the_name_is_recorded() {
    let spec = seed();
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&spec), &mut |_| None);
    world.cloud.classic.edit("testnetwork3-apiserver", 1_000_001, |found| {
        "vpc-theirs".clone_into(&mut found.vpc);
        found.groups.clear();
    });
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!(
        (rest, reconciliation.problems()[0].reason),
        (Rest::Stuck, Reason::OwnershipConflict)
    );
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
}

/// Upstream gives Machines elastic IPs whose role names the instance.
#[test]
fn addresses_of_machines_are_neither_released_nor_reported_as_those_of_nat_gateways() {
    let goal = present(&seed());
    let Goal::Present(desired) = &goal else { panic!() };
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&goal, &mut |_| None);
    let mut address = world.cloud.addresses.all().remove(0);
    "eipalloc-machine".clone_into(&mut address.id);
    address.ip = std::net::Ipv4Addr::new(52, 9, 9, 9);
    address.tags.retain(|key, _| key != aws_network::NAT_ZONE_TAG);
    address.tags.insert(ROLE_TAG.to_owned(), "ec2-i-0123".to_owned());
    world.cloud.addresses.put("eipalloc-machine", 1_000_001, address.clone());
    let (reconciliation, rest) = world.run_later(&goal);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let outputs = aws_network::outputs(desired, reconciliation.observed(), None);
    assert_eq!(outputs.nat_addresses.len(), 3);
    assert!(!outputs.nat_addresses.contains(&address.ip));
}

#[test]
fn a_spec_that_says_no_cidr_says_nothing_against_that_of_its_vpc() {
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&seed()), &mut |_| None);
    let id = world.cloud.vpcs.all().remove(0).id;
    let spec = Spec { vpc_id: Some(id), vpc_cidr: None, ..seed() };
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, reconciliation.problems()), (Rest::Reached, Vec::new()));
}
#[test]
fn a_cluster_does_not_move_into_a_vpc_that_is_named_later() {
    let mut world = World::new(Nature::PROMPT, 4);
    world.run(&present(&seed()), &mut |_| None);
    let before = inventory(&world.cloud);
    let own = world.cloud.vpcs.all().remove(0).id;
    for (named, is_refused) in [("vpc-theirs", true), (&*own, false)] {
        let goal = present(&Spec { vpc_id: Some(named.to_owned()), ..seed() });
        let (reconciliation, _) = world.run_later(&goal);
        assert!(world.writes.is_empty(), "{named}: {:?}", world.writes);
        let problems = reconciliation.problems();
        let told = problems.iter().find(|problem| problem.reason == Reason::Immutable);
        assert_eq!(told.is_some(), is_refused, "{named}: {problems:?}");
        let names_both = |message: &str| message.contains(&own) && message.contains(named);
        assert!(told.is_none_or(|told| names_both(&told.message)), "{told:?}");
    }
    assert_eq!(differences(&before, &inventory(&world.cloud)), [""; 0]);
}
