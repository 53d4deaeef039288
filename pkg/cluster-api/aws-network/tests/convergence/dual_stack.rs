//! VPCs with IPv6: the CIDRs of their subnets, the egress-only gateway, routes, rules and load
//! balancers.

use aws_fixtures::{absent, dual_stack, present, seed, subnet};
use aws_network::{
    Action, Dialect, Goal, IPV6_ROUTE, InternetGateway, Ipv6Range, LoadBalancerKind, Memory, Part,
    Planned, Problem, Reason, Reconciliation, Rest, Scheme, Spec, SubnetSpec, Tags, Target,
    conditions, is_ready,
};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::adoption::as_upstream_made_it;
use crate::driver::World;
use crate::foreign::{in_theirs, theirs};

pub(crate) fn made(spec: &Spec) -> World {
    let mut world = World::new(Nature::PROMPT, 4);
    reach(&mut world, spec);
    world
}

pub(crate) fn reach(world: &mut World, spec: &Spec) {
    let (reconciliation, rest) = world.run_later(&present(spec));
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
}

pub(crate) fn is_silent(world: &mut World, spec: &Spec) {
    for _ in 0..3 {
        reach(world, spec);
        assert!(world.writes.is_empty(), "{:#?}", world.writes);
    }
}

pub(crate) fn goes(world: &mut World, spec: &Spec) {
    let (_, rest) = world.run_later(&absent(spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

/// The IPv6 CIDR of each subnet, by its IPv4 CIDR, as they are ordered.
fn blocks(cloud: &Cloud) -> Vec<(String, String)> {
    let all = cloud.subnets.all().into_iter();
    let text = |cidr: Option<cidr::IpNet>| cidr.map(|cidr| cidr.to_string()).unwrap_or_default();
    let mut all: Vec<_> = all.map(|found| (found.cidr.to_string(), text(found.ipv6))).collect();
    all.sort();
    all
}

/// The kinds of targets of the routes for IPv6 of public and of private subnets.
fn exits(cloud: &Cloud) -> Vec<(bool, &'static str)> {
    let exit = |subnet: aws_network::Subnet| {
        let all = cloud.tables.all();
        let table = all.iter().find(|table| table.association_of(&subnet.id).is_some());
        let kind = match table?.route_to(IPV6_ROUTE).map(|route| &route.target) {
            Some(Target::InternetGateway(_)) => "internet",
            Some(Target::EgressOnlyGateway(_)) => "egress-only",
            Some(_) => "other",
            None => "none",
        };
        Some((subnet.map_public_ip, kind))
    };
    let mut all: Vec<_> = cloud.subnets.all().into_iter().filter_map(exit).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The rules of a group with an IPv6 source: first port, source and description.
pub(crate) fn rules(cloud: &Cloud, group: &str) -> Vec<String> {
    let all = cloud.groups.all();
    let group = all.iter().find(|it| it.name == format!("testnetwork3-{group}")).unwrap();
    let text = |rule: &aws_network::Rule| match &rule.key.source {
        aws_network::Source::Cidr(cidr @ cidr::IpNet::V6(_)) => {
            Some(format!("{} {cidr} {}", rule.key.from_port, rule.description))
        }
        _ => None,
    };
    let mut rules: Vec<_> = group.rules.iter().filter_map(text).collect();
    rules.sort();
    rules
}

pub(crate) const RANGE: &str = "2600:db8:0:100::/56";

#[test]
fn upstreams_rule_for_a_nat_gateway_stays_where_everybody_is_allowed() {
    let mut world = made(&seed());
    let groups = world.cloud.groups.all();
    let id = groups.iter().find(|it| it.name == "testnetwork3-apiserver-lb").unwrap().id.clone();
    let nat = aws_network::Source::Cidr(cidr::parse("192.0.2.1/32").unwrap());
    let rule = aws_network::Rule::new("tcp", (6443, 6443), nat, "Kubernetes API");
    world.cloud.groups.edit(&id, world.cloud.now, |group| group.rules.push(rule));
    is_silent(&mut world, &seed());
}

#[test]
fn upstreams_default_for_clients_of_a_bastion_allows_the_families_of_the_vpc() {
    for (mut spec, allowed) in [(seed(), &[][..]), (dual_stack(), &["22 ::/0 SSH"])] {
        let bastion = spec.bastion.as_mut().unwrap();
        bastion.allowed_cidr_blocks = ["0.0.0.0/0", "::/0"].map(str::to_owned).to_vec();
        assert_eq!(rules(&made(&spec).cloud, "bastion"), allowed);
    }
}

/// Clients that were admitted by IPv6 keep their access. The controller admits no others.
#[test]
fn a_rule_for_clients_by_ipv6_stays_in_a_network_without_ipv6() {
    let mut world = made(&seed());
    let mut spec = seed();
    let clients = "2001:db8::/32".to_owned();
    spec.node_port_cidr_blocks = vec!["0.0.0.0/0".to_owned(), clients.clone()];
    is_silent(&mut world, &spec);
    assert_eq!(rules(&world.cloud, "node"), [""; 0]);
    let groups = world.cloud.groups.all();
    let id = groups.iter().find(|it| it.name == "testnetwork3-node").unwrap().id.clone();
    let source = aws_network::Source::Cidr(cidr::parse(&clients).unwrap());
    let rule = aws_network::Rule::new("tcp", (30000, 32767), source, "Node Port Services");
    world.cloud.groups.edit(&id, world.cloud.now, |group| group.rules.push(rule));
    is_silent(&mut world, &spec);
    reach(&mut world, &seed());
    assert_eq!(rules(&world.cloud, "node"), [""; 0]);
}

/// The load balancer that exists still has the group.
#[test]
fn a_disabled_load_balancer_is_not_opened() {
    let narrow = aws_network::IngressRuleSpec {
        description: "clients".to_owned(),
        protocol: "tcp".to_owned(),
        from_port: 6443,
        to_port: 6443,
        cidr_blocks: vec!["192.0.2.0/24".to_owned()],
        ..Default::default()
    };
    let mut spec = dual_stack();
    spec.load_balancer.as_mut().unwrap().ingress_rules = vec![narrow];
    let mut world = made(&spec);
    spec.load_balancer = None;
    world.memory.deep_checked = None;
    is_silent(&mut world, &spec);
    let groups = world.cloud.groups.all();
    let group = groups.iter().find(|it| it.name == "testnetwork3-apiserver-lb").unwrap();
    let is_anybody = |rule: &aws_network::Rule| matches!(rule.key.source, aws_network::Source::Cidr(it) if it.prefix_len() == 0);
    assert!(!group.rules.is_empty() && !group.rules.iter().any(is_anybody), "{:#?}", group.rules);
}

#[test]
fn default_subnets_of_a_dual_stack_vpc_have_upstreams_numbers_and_ways_out() {
    let spec =
        Spec { subnets: Vec::new(), vpc_cidr: None, dialect: Dialect::V1Beta2, ..dual_stack() };
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 4);
    reach(&mut world, &spec);
    let numbers: Vec<_> = blocks(&world.cloud).into_iter().map(|(_, ipv6)| ipv6).collect();
    let number = |number: u32| format!("2600:db8:0:10{number}::/64");
    // In the order of the texts of the IPv4 CIDRs: public and private ones in turn.
    assert_eq!(numbers, [5, 3, 6, 4, 7, 2].map(number));
    assert_eq!(exits(&world.cloud), [(false, "egress-only"), (true, "internet")]);
    assert!(world.cloud.subnets.all().iter().all(|subnet| subnet.assigns_ipv6));
    assert_eq!(rules(&world.cloud, "bastion"), ["22 ::/0 SSH"]);
    assert_eq!(rules(&world.cloud, "node"), ["30000 ::/0 Node Port Services"]);
    assert_eq!(rules(&world.cloud, "apiserver-lb"), ["6443 ::/0 Kubernetes API IPv6"]);
    assert_eq!(
        rules(&world.cloud, "lb"),
        [format!("6443 {RANGE} Allow NLB traffic to the control plane instances.")]
    );
    assert!(world.cloud.network.all()[0].is_dualstack);
    assert!(world.cloud.target_groups.all()[0].is_ipv6);
    let first = |is_it: fn(&Action) -> bool| world.writes.iter().position(|it| is_it(&it.action));
    let waits = first(|it| matches!(it, Action::CreateInternetGateway { .. }));
    let needs = first(|it| matches!(it, Action::CreateSubnet { .. }));
    assert!(waits < needs, "only what needs the CIDR waits for it");
    is_silent(&mut world, &spec);
    let (reconciliation, _) = world.run_later(&present(&spec));
    let found = conditions_of(&reconciliation, &present(&spec));
    assert!(found.contains(&(Part::EgressOnlyGateway, true)), "{found:?}");
    world.writes.clear();
    goes(&mut world, &spec);
    let place = |is_it: fn(&Action) -> bool| world.writes.iter().position(|it| is_it(&it.action));
    let gateway = place(|it| matches!(it, Action::DeleteEgressOnlyGateway { .. }));
    assert!(gateway.is_some() && gateway < place(|it| matches!(it, Action::DeleteVpc { .. })));
}

pub(crate) fn conditions_of(reconciliation: &Reconciliation, goal: &Goal) -> Vec<(Part, bool)> {
    let Goal::Present(desired) = goal else { panic!("{goal:?}") };
    let all = conditions(
        desired,
        reconciliation.observed(),
        reconciliation.plan(),
        &reconciliation.problems(),
    );
    assert_eq!(is_ready(&all), all.iter().all(|it| it.is_true || !it.part.is_mandatory()));
    all.into_iter().map(|it| (it.part, it.is_true)).collect()
}

#[test]
fn subnets_that_are_added_get_their_own_or_the_next_free_cidr() {
    let mut spec = Spec { vpc_cidr: Some("10.66.0.0/16".to_owned()), ..dual_stack() };
    spec.subnets[1].ipv6_cidr_block = Some("2600:db8:0:102::/64".to_owned());
    let mut world = made(&spec);
    let of = |world: &World, cidr: &str| {
        blocks(&world.cloud).into_iter().find(|(ipv4, _)| ipv4 == cidr).unwrap().1
    };
    assert_eq!(of(&world, "10.66.0.0/27"), "2600:db8:0:100::/64");
    assert_eq!(of(&world, "10.66.0.32/27"), "2600:db8:0:102::/64");
    assert_eq!(of(&world, "10.66.0.64/27"), "2600:db8:0:101::/64");
    assert_eq!(of(&world, "10.66.0.96/27"), "2600:db8:0:103::/64");
    // One of others has a CIDR too.
    let now = world.cloud.now;
    let mut theirs = world.cloud.subnets.all().remove(0);
    (theirs.id, theirs.cidr) = ("subnet-theirs".to_owned(), "10.66.9.0/24".parse().unwrap());
    (theirs.ipv6, theirs.tags) = (Some("2600:db8:0:106::/64".parse().unwrap()), Tags::new());
    world.cloud.subnets.put("subnet-theirs", now, theirs);
    let more = |cidr: &str| SubnetSpec { is_ipv6: true, ..subnet("a", cidr, false) };
    spec.subnets.extend([more("10.66.1.0/24"), more("10.66.2.0/24")]);
    let named = Some("2600:db8:0:1ff::/64".to_owned());
    spec.subnets.push(SubnetSpec { ipv6_cidr_block: named, ..more("10.66.3.0/24") });
    reach(&mut world, &spec);
    assert_eq!(of(&world, "10.66.1.0/24"), "2600:db8:0:107::/64");
    assert_eq!(of(&world, "10.66.2.0/24"), "2600:db8:0:108::/64");
    assert_eq!(of(&world, "10.66.3.0/24"), "2600:db8:0:1ff::/64");
    is_silent(&mut world, &spec);
    let outside = Some("2600:db8:9::/64".to_owned());
    spec.subnets.push(SubnetSpec { ipv6_cidr_block: outside, ..more("10.66.4.0/24") });
    let (reconciliation, _) = world.run_later(&present(&spec));
    let problems = reconciliation.problems();
    let message = format!("2600:db8:9::/64 is not inside {RANGE}");
    assert!(problems.iter().any(|it| it.message.contains(&message)), "{problems:#?}");
    world.cloud.subnets.remove("subnet-theirs", now);
    goes(&mut world, &spec);
}

#[test]
fn a_subnet_with_ipv4_only_has_no_route_and_makes_target_groups_ipv4() {
    let mut spec = dual_stack();
    spec.subnets[1].is_ipv6 = false;
    let mut world = made(&spec);
    assert_eq!(exits(&world.cloud), [(false, "egress-only"), (false, "none"), (true, "internet")]);
    let is_ipv6 = |world: &World| world.cloud.target_groups.all()[0].is_ipv6;
    assert!(world.cloud.network.all()[0].is_dualstack && !is_ipv6(&world));
    is_silent(&mut world, &spec);
    // The address type of a target group is fixed.
    spec.load_balancer.as_mut().unwrap().ipv6_targets = Some(true);
    let (reconciliation, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, reconciliation.problems()[0].reason), (Rest::Stuck, Reason::Immutable));
    assert!(is_ipv6(&made(&spec)), "the spec decides when it is created");
    let mut public = dual_stack();
    public.subnets[0].is_ipv6 = false;
    let found = made(&public).cloud.network.all().remove(0);
    assert!(!found.is_dualstack, "AWS wants IPv6 in each of its subnets");
}

#[test]
fn an_internal_load_balancer_is_reached_from_the_addresses_of_the_vpc() {
    let mut spec = dual_stack();
    let rule = aws_network::IngressRuleSpec {
        description: "office".to_owned(),
        protocol: "tcp".to_owned(),
        from_port: 6443,
        to_port: 6443,
        cidr_blocks: vec!["2001:db8:7::/48".to_owned()],
        ..aws_network::IngressRuleSpec::default()
    };
    spec.load_balancer.as_mut().unwrap().ingress_rules = vec![rule];
    let both =
        ["6443 2001:db8:7::/48 office".to_owned(), format!("6443 {RANGE} Kubernetes API IPv6")];
    assert_eq!(
        rules(&made(&spec).cloud, "apiserver-lb"),
        both,
        "Nodes come by the egress-only gateway"
    );
    spec.load_balancer.as_mut().unwrap().scheme = Scheme::Internal;
    assert_eq!(rules(&made(&spec).cloud, "apiserver-lb"), both);
}

/// The problem of the VPC that a spec has in a world, if it has one.
fn problem(world: &mut World, spec: &Spec) -> Option<(Reason, String)> {
    let (reconciliation, _) = world.run_later(&present(spec));
    let mut problems = reconciliation.problems().into_iter().filter(|it| it.part == Part::Vpc);
    problems.next().map(|problem| (problem.reason, problem.message))
}

#[test]
fn ipv6_is_neither_added_to_a_vpc_nor_taken_away_and_its_network_is_kept_meanwhile() {
    let old = Spec { ipv6: false, ..dual_stack() };
    for (before, after, words) in
        [(old.clone(), dual_stack(), "without IPv6"), (dual_stack(), old, "with IPv6")]
    {
        let mut world = made(&before);
        let whole = inventory(&world.cloud);
        let (reason, message) = problem(&mut world, &after).unwrap();
        assert_eq!(reason, Reason::Immutable);
        assert!(message.starts_with("spec.network.vpc.ipv6: vpc-") && message.contains(words));
        assert!(world.writes.is_empty(), "{words}: {:#?}", world.writes);
        let table = world.cloud.tables.all().remove(0);
        let now = world.cloud.now;
        world.cloud.tables.edit(&table.id, now, |it| {
            it.routes.retain(|route| matches!(route.target, Target::Other(_)));
        });
        problem(&mut world, &after);
        assert_eq!(differences(&inventory(&world.cloud), &whole), Vec::<String>::new(), "{words}");
        assert_eq!(problem(&mut world, &before), None);
        goes(&mut world, &after);
    }
}

/// Somebody may have given the VPC and a subnet IPv6, with routes of their own.
#[test]
fn ipv6_of_others_in_a_vpc_of_ours_is_left_alone() {
    let spec = seed();
    let mut world = made(&spec);
    let now = world.cloud.now;
    let range: cidr::IpNet = RANGE.parse().unwrap();
    let vpc = world.cloud.vpcs.all().remove(0).id;
    world.cloud.vpcs.edit(&vpc, now, |it| it.ipv6 = Some(Ipv6Range::Associated(range)));
    let subnet = world.cloud.subnets.all().remove(0).id;
    let cidr = "2600:db8:0:100::/64".parse().unwrap();
    world.cloud.subnets.edit(&subnet, now, |it| it.ipv6 = Some(cidr));
    is_silent(&mut world, &spec);
    // The spec said so before the field had an effect.
    let (reason, message) = problem(&mut world, &Spec { ipv6: true, ..seed() }).unwrap();
    assert!(reason == Reason::Immutable && message.contains("without IPv6"), "{message}");
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    goes(&mut world, &spec);
}

/// As when AWS answers with an association that this program does not know.
#[test]
fn while_aws_shows_no_ipv6_cidr_of_a_dual_stack_vpc_nothing_is_changed() {
    let mut world = made(&dual_stack());
    let (now, vpc) = (world.cloud.now, world.cloud.vpcs.all().remove(0));
    world.cloud.vpcs.edit(&vpc.id, now, |it| it.ipv6 = None);
    world.writes.clear();
    for ipv6 in [true, false] {
        world.run_once_for(&present(&Spec { ipv6, ..dual_stack() }), 3600);
        assert!(world.writes.is_empty(), "{ipv6}: {:#?}", world.writes);
    }
    world.cloud.vpcs.edit(&vpc.id, now, |it| it.ipv6 = vpc.ipv6);
    is_silent(&mut world, &dual_stack());
    goes(&mut world, &dual_stack());
}

type Damage = (&'static str, fn(&mut Cloud));

const DAMAGES: [Damage; 5] = [
    ("the egress-only gateway is deleted", |cloud| {
        let id = cloud.egress_only.all().remove(0).id;
        cloud.egress_only.remove(&id, cloud.now);
    }),
    ("its tags are lost", |cloud| {
        let id = cloud.egress_only.all().remove(0).id;
        cloud.egress_only.edit(&id, cloud.now, |it| drop(it.tags.remove("Name")));
    }),
    ("routes for IPv6 are lost", |cloud| {
        for table in cloud.tables.all() {
            let is_other = |route: &aws_network::Route| route.destination != IPV6_ROUTE;
            cloud.tables.edit(&table.id, cloud.now, |it| it.routes.retain(is_other));
        }
    }),
    ("a subnet assigns no addresses", |cloud| {
        let id = cloud.subnets.all().remove(0).id;
        cloud.subnets.edit(&id, cloud.now, |it| it.assigns_ipv6 = false);
    }),
    ("the load balancer has IPv4 only", |cloud| {
        let arn = cloud.network.all().remove(0).arn;
        cloud.network.edit(&arn, cloud.now, |it| it.is_dualstack = false);
    }),
];

#[test]
fn changes_by_others_are_repaired() {
    let world = made(&dual_stack());
    let whole = inventory(&world.cloud);
    for (what, damage) in DAMAGES {
        let mut world = world.clone();
        world.cloud.advance(60);
        damage(&mut world.cloud);
        reach(&mut world, &dual_stack());
        assert_eq!(differences(&inventory(&world.cloud), &whole), Vec::<String>::new(), "{what}");
        is_silent(&mut world, &dual_stack());
    }
}

/// cluster-api-provider-aws#5684
#[test]
fn an_egress_only_gateway_counts_in_its_own_vpc_only() {
    let mut world = World::new(Nature::PROMPT, 4);
    let spec = dual_stack();
    let tag = world.cloud.cluster_tag.clone();
    let tags = Tags::from([(tag, "owned".to_owned())]);
    let elsewhere = InternetGateway {
        pending: false,
        id: "eigw-else".to_owned(),
        attached_to: Some("vpc-else".to_owned()),
        tags,
    };
    world.cloud.egress_only.put("eigw-else", 0, elsewhere);
    reach(&mut world, &spec);
    world.memory = Memory::default();
    is_silent(&mut world, &spec);
    assert_eq!(world.cloud.egress_only.all().len(), 2);
}

/// AWS allows no second one in a VPC. Another owner's counts as one without tags.
#[test]
fn an_egress_only_gateway_that_is_not_ours_is_used_and_stays() {
    let spec = dual_stack();
    let anothers = (spec.identity.owner_tag.clone(), "another".to_owned());
    for tags in [Tags::new(), Tags::from([anothers])] {
        let mut world = made(&spec);
        let (id, now) = (world.cloud.egress_only.all().remove(0).id, world.cloud.now);
        world.cloud.egress_only.edit(&id, now, |it| it.tags.clone_from(&tags));
        is_silent(&mut world, &spec);
        world.memory = Memory::default();
        is_silent(&mut world, &spec);
        for table in world.cloud.tables.all() {
            let is_other = |route: &aws_network::Route| route.destination != IPV6_ROUTE;
            world.cloud.tables.edit(&table.id, now, |it| it.routes.retain(is_other));
        }
        reach(&mut world, &spec);
        let makes = |it: &Planned| matches!(it.action, Action::CreateEgressOnlyGateway { .. });
        assert!(!world.writes.iter().any(makes), "{:#?}", world.writes);
        assert_eq!(exits(&world.cloud), [(false, "egress-only"), (true, "internet")]);
        let (reconciliation, rest) = world.run_once_for(&absent(&spec), 400);
        let problems = reconciliation.problems();
        let names_it = |it: &Problem| it.reason == Reason::InUse && it.message.contains(&id);
        assert!(rest.is_none() && problems.iter().any(names_it), "{problems:#?}");
        let found = world.cloud.egress_only.all();
        assert_eq!(found.iter().map(|it| &it.tags).collect::<Vec<_>>(), [&tags]);
        world.cloud.egress_only.remove(&id, world.cloud.now);
        goes(&mut world, &spec);
    }
}

#[test]
fn a_dual_stack_cluster_of_upstream_is_adopted_and_deleted_as_a_whole() {
    let mut world = made(&dual_stack());
    as_upstream_made_it(&mut world.cloud);
    world.memory = Memory::default();
    world.cloud.advance(1);
    let mut spec = dual_stack();
    let (_, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, world.writes.len()), (Rest::Stuck, 0));
    spec.identity.adopt = true;
    let mut ending = world.clone();
    reach(&mut world, &spec);
    spec.identity.adopt = false;
    is_silent(&mut world, &spec);
    assert_eq!(world.cloud.egress_only.ever(), 1);
    goes(&mut world, &spec);
    spec.identity.adopt = true;
    goes(&mut ending, &spec);
}

#[test]
fn a_vpc_of_the_user_is_used_with_the_ipv6_that_it_has() {
    let with = |kind: LoadBalancerKind| {
        let load_balancer = Some(aws_fixtures::load_balancer(kind));
        Spec { ipv6: true, load_balancer, ..in_theirs() }
    };
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    let spec = with(LoadBalancerKind::Network);
    let (reason, message) = problem(&mut world, &spec).unwrap();
    assert_eq!(reason, Reason::InvalidConfiguration);
    assert!(message.contains("vpc-theirs has no IPv6 CIDR"), "{message}");
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    let range: cidr::IpNet = RANGE.parse().unwrap();
    world.cloud.vpcs.edit("vpc-theirs", 0, |it| it.ipv6 = Some(Ipv6Range::Associated(range)));
    for (number, id) in ["subnet-f0000001", "subnet-f0000002", "subnet-f0000003", "subnet-f0000004"]
        .iter()
        .enumerate()
    {
        let cidr = format!("2600:db8:0:10{number}::/64").parse().unwrap();
        world.cloud.subnets.edit(id, 0, |it| it.ipv6 = Some(cidr));
    }
    let before = inventory(&world.cloud);
    reach(&mut world, &spec);
    assert!(world.cloud.network.all()[0].is_dualstack);
    assert!(world.cloud.target_groups.all()[0].is_ipv6);
    assert_eq!(rules(&world.cloud, "apiserver-lb"), ["6443 ::/0 Kubernetes API IPv6"]);
    assert_eq!(world.cloud.egress_only.all().len(), 0);
    is_silent(&mut world, &spec);
    let (_, rest) = world.run_later(&absent(&spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, before));
}

#[test]
fn one_more_read_keeps_a_dual_stack_cluster_and_none_is_added_to_others() {
    let reads = |spec: &Spec| {
        let mut world = made(spec);
        world.run_later(&present(spec));
        let kept = world.reads;
        world.run_later(&absent(spec));
        (kept, world.reads)
    };
    let (old, new) = (reads(&Spec { ipv6: false, ..dual_stack() }), reads(&dual_stack()));
    assert_eq!(new.0, old.0 + 1);
    assert!(new.1 > old.1);
}
