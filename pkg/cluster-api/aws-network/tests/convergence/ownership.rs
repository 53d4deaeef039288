//! The table of who a resource belongs to: what a build, a look at what is built, and a deletion do
//! to it. `owned.rs` checks each write of these and all other scenes.

use std::collections::BTreeMap;

use aws_fixtures::{absent, identity, load_balancer, present, seed};
use aws_network::{
    Action, Desired, ElbAction, ElbV2Action, Goal, LoadBalancerKind, Memory, NetworkListener, Part,
    Planned, ROLE_TAG, Reason, Reconciliation, Removal, Rest, Role, SecurityGroup,
    ServiceResources, Spec, Tags, TargetGroup,
};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::adoption::{adopting, as_upstream_made_it, upstreams};
use crate::driver::World;
use crate::foreign::{in_theirs, theirs};
use crate::listeners::add_listener_of_others;

fn tags<const N: usize>(pairs: [(&str, &str); N]) -> Tags {
    Tags::from(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

fn group(cloud: &mut Cloud, id: &str, vpc: &str, name: &str, tags: Tags) {
    let (id, vpc, name) = (id.to_owned(), vpc.to_owned(), name.to_owned());
    let found = SecurityGroup { id: id.clone(), vpc, name, rules: Vec::new(), tags };
    cloud.groups.put(&id, cloud.now, found);
}

/// The spec with the ids that upstream has written into it.
fn with_ids(spec: Spec, cloud: &Cloud) -> Spec {
    let mut spec = Spec { vpc_id: Some(cloud.vpcs.all().remove(0).id), ..spec };
    for subnet in &mut spec.subnets {
        let all = cloud.subnets.all();
        let of = |text: &str| subnet.cidr_block.as_deref() == Some(text);
        subnet.id = all.into_iter().find(|it| of(&it.cidr.to_string())).map(|it| it.id);
    }
    spec
}

fn ids_of_others(reconciliation: &Reconciliation) -> Vec<&str> {
    reconciliation.plan().others.iter().map(|other| other.id.as_str()).collect()
}

fn conflict(reconciliation: &Reconciliation, part: Part) -> String {
    let problems = reconciliation.problems();
    let found = problems.iter().find(|problem| problem.part == part);
    let found = found.unwrap_or_else(|| panic!("no problem of {part:?}: {problems:#?}"));
    assert_eq!(found.reason, Reason::OwnershipConflict, "{found:?}");
    found.message.clone()
}

/// An id in a spec is no ownership: upstream writes the id of its VPC there.
#[test]
fn what_upstream_made_is_not_written_and_not_deleted_and_is_named_when_it_is_left() {
    for has_ids in [false, true] {
        let mut world = upstreams();
        let spec = if has_ids { with_ids(seed(), &world.cloud) } else { seed() };
        let before = inventory(&world.cloud);
        let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
        assert_eq!(rest, Rest::Stuck, "ids: {has_ids}");
        assert!(conflict(&reconciliation, Part::Vpc).contains("adopt=true"));
        assert!(world.writes.is_empty(), "ids: {has_ids}: {:#?}", world.writes);
        let (reconciliation, rest) = world.run_later(&absent(&spec));
        assert_eq!(
            rest,
            Rest::Reached,
            "all that is ours is gone: {:#?}",
            reconciliation.problems()
        );
        assert!(world.writes.is_empty(), "ids: {has_ids}: {:#?}", world.writes);
        assert_eq!(inventory(&world.cloud), before);
        let left = ids_of_others(&reconciliation);
        let all = 1 + 6 + 1 + 3 + 3 + 6 + 5 + 1 + 1;
        assert_eq!(left.len(), all, "VPC, subnets, gateways, addresses …: {left:?}");
        assert!(reconciliation.plan().others.iter().all(|other| other.owner_id.is_none()));
    }
}

#[test]
fn what_is_adopted_ends_with_the_cluster_whether_it_was_built_before_or_not() {
    for has_ids in [false, true] {
        for is_kept_first in [false, true] {
            let mut world = upstreams();
            let spec = if has_ids { with_ids(adopting(), &world.cloud) } else { adopting() };
            if is_kept_first {
                let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
                assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
            }
            let (reconciliation, rest) = world.run_later(&absent(&spec));
            assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
            assert_eq!(ids_of_others(&reconciliation), [""; 0]);
            if !is_kept_first {
                // The shipped policy allows to delete only what has an owner id.
                let marks = |write: &Planned| matches!(write.action, Action::CreateTags { .. });
                assert!(marks(&world.writes[0]) && !world.writes[1..].iter().any(marks));
            }
        }
    }
}

/// rule:adoption-begins-with-the-owner-id
#[test]
fn an_adoption_that_also_changes_something_sets_the_owner_id_first() {
    let mut world = upstreams();
    let mut spec = adopting();
    spec.nat_mode = aws_network::NatMode::Single;
    spec.load_balancer.as_mut().unwrap().cross_zone = true;
    let (_, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    let owner_tag = identity().owner_tag;
    let marks = |write: &Planned| match &write.action {
        Action::CreateTags { tags, .. } | Action::Elb(ElbAction::AddTags { tags, .. }) => {
            tags.contains_key(&owner_tag)
        }
        _ => false,
    };
    let first_other = world.writes.iter().position(|write| !marks(write)).unwrap();
    let last_mark = world.writes.iter().rposition(marks).unwrap();
    assert!(last_mark < first_other, "{:#?}", world.writes);
}

/// An adoption whose annotation was removed while it went on has marked some resources only.
#[test]
fn an_adoption_that_was_broken_off_makes_no_second_nat_gateway_and_no_address() {
    let whole = adopting();
    let ours = identity();
    for unmarked in ["nats", "subnets", "tables"] {
        let mut world = upstreams();
        let (_, rest) = world.run(&present(&whole), &mut |_| None);
        assert_eq!(rest, Rest::Reached);
        let (now, take) = (world.cloud.now, |tags: &mut Tags| drop(tags.remove(&ours.owner_tag)));
        match unmarked {
            "nats" => {
                for nat in world.cloud.nats.all() {
                    world.cloud.nats.edit(&nat.id, now, |it| take(&mut it.tags));
                }
            }
            "subnets" => {
                for subnet in world.cloud.subnets.all() {
                    world.cloud.subnets.edit(&subnet.id, now, |it| take(&mut it.tags));
                }
            }
            _ => {
                for table in world.cloud.tables.all() {
                    world.cloud.tables.edit(&table.id, now, |it| take(&mut it.tags));
                }
            }
        }
        (world.memory, world.writes) = (Memory::default(), Vec::new());
        world.cloud.advance(1800);
        let (reconciliation, _) = world.run_once_for(&present(&seed()), 600);
        assert!(world.writes.is_empty(), "{unmarked}: {:#?}", world.writes);
        let part = match unmarked {
            "nats" => Part::NatGateways,
            "subnets" => Part::Subnets,
            _ => Part::RouteTables,
        };
        conflict(&reconciliation, part);
    }
}

/// A network load balancer as upstream makes it, with an additional listener.
fn upstreams_network() -> (World, Spec) {
    let mut spec = seed();
    spec.load_balancer = Some(load_balancer(LoadBalancerKind::Network));
    let mut world = World::new(Nature::PROMPT, 9);
    world.run(&present(&spec), &mut |_| None);
    let now = world.cloud.now;
    let api = world.cloud.target_groups.all().remove(0);
    world
        .cloud
        .target_groups
        .edit(&api.arn, now, |it| "apiserver-target-1".clone_into(&mut it.name));
    let arn = "arn:tg-additional".to_owned();
    let extra = TargetGroup { arn: arn.clone(), name: "additional-listener-1".to_owned(), ..api };
    world.cloud.target_groups.put(&arn, now, extra);
    let balancer = world.cloud.network.all().remove(0).arn;
    let listener = NetworkListener {
        arn: "arn:listener-extra".to_owned(),
        port: 9345,
        target_group: arn,
        tags: Tags::new(),
    };
    world.cloud.network.edit(&balancer, now, |it| it.listeners.push(listener));
    as_upstream_made_it(&mut world.cloud);
    world.cloud.advance(1);
    world.memory = Memory::default();
    world.writes.clear();
    (world, spec)
}

/// rule:settings-of-others-stay
#[test]
fn an_adopted_network_load_balancer_keeps_its_listeners_and_target_groups() {
    let (mut world, mut spec) = upstreams_network();
    spec.identity.adopt = true;
    let shape = |cloud: &Cloud| {
        let groups: Vec<_> = cloud.target_groups.all().into_iter().map(|it| it.name).collect();
        (cloud.network.all().remove(0).listeners, groups)
    };
    let before = shape(&world.cloud);
    let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    for write in &world.writes {
        let is_tag = matches!(
            write.action,
            Action::CreateTags { .. } | Action::ElbV2(ElbV2Action::AddTags { .. })
        );
        assert!(is_tag, "{write:?}");
    }
    assert_eq!(shape(&world.cloud), before);
    // Without the annotation it is ours by its tags, all of it.
    spec.identity.adopt = false;
    world.run_later(&present(&spec));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let (_, rest) = world.run_later(&absent(&spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

/// rule:settings-of-others-stay
#[test]
fn listeners_of_others_stay_and_one_on_our_port_is_a_conflict() {
    let mut spec = seed();
    spec.load_balancer = Some(load_balancer(LoadBalancerKind::Network));
    let mut world = World::new(Nature::PROMPT, 9);
    world.run(&present(&spec), &mut |_| None);
    let mut elsewhere = world.clone();
    add_listener_of_others(&mut world, 8443);
    add_listener_of_others(&mut elsewhere, 9999);
    let (now, balancer) = (world.cloud.now, world.cloud.network.all().remove(0));
    let (_, rest) = world.run_later(&present(&spec));
    assert_eq!((rest, world.writes), (Rest::Reached, Vec::new()));

    elsewhere.cloud.network.edit(&balancer.arn, now, |it| {
        "arn:tg-theirs".clone_into(&mut it.listeners[0].target_group);
    });
    let (reconciliation, rest) = elsewhere.run_later(&present(&spec));
    assert_eq!((rest, &elsewhere.writes), (Rest::Stuck, &Vec::new()));
    assert!(conflict(&reconciliation, Part::LoadBalancer).contains("arn:tg-theirs"));
}

/// rule:settings-of-others-stay
#[test]
fn a_listener_of_a_classic_load_balancer_that_leads_elsewhere_stays() {
    let mut world = World::new(Nature::PROMPT, 9);
    world.run(&present(&seed()), &mut |_| None);
    let listener = aws_network::ClassicListener { port: 9345, instance_port: 9345, tcp: true };
    let now = world.cloud.now;
    world.cloud.classic.edit("testnetwork3-apiserver", now, |it| it.listeners.push(listener));
    let (_, rest) = world.run_later(&present(&seed()));
    assert_eq!((rest, world.writes), (Rest::Reached, Vec::new()));
}

#[test]
fn a_group_that_the_spec_names_stays_whatever_its_tags() {
    let ours = identity();
    let marked = ours.base_tags("node");
    let upstreams = Tags::from([(ours.cluster_tag(), "owned".to_owned())]);
    for its_tags in [Tags::new(), upstreams, marked] {
        let mut spec = in_theirs();
        spec.group_overrides = BTreeMap::from([(Role::Node, "sg-named".to_owned())]);
        for adopt in [false, true] {
            spec.identity.adopt = adopt;
            let mut world = World::new(Nature::PROMPT, 2);
            theirs(&mut world.cloud);
            group(&mut world.cloud, "sg-named", "vpc-theirs", "nodes", its_tags.clone());
            let before = inventory(&world.cloud);
            let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
            assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
            let (reconciliation, rest) = world.run_later(&absent(&spec));
            assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, before));
            assert_eq!(ids_of_others(&reconciliation), [""; 0]);
        }
    }
}

#[test]
fn groups_of_the_spec_need_a_vpc_of_the_user() {
    let mut spec = seed();
    spec.group_overrides = BTreeMap::from([(Role::Node, "sg-named".to_owned())]);
    let errors = Desired::from_spec(&spec).unwrap_err();
    let wanted = "cannot use spec.network.securityGroupOverrides: requires an unmanaged \
                  spec.network.vpc.id";
    assert_eq!(errors[0].to_string(), wanted);
    // One that is named and ours, since its id was mirrored.
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&seed()), &mut |_| None);
    spec.vpc_id = Some(world.cloud.vpcs.all().remove(0).id);
    let (reconciliation, _) = world.run_later(&present(&spec));
    let problems = reconciliation.problems();
    let of_groups = problems.iter().find(|problem| problem.part == Part::SecurityGroups).unwrap();
    assert_eq!(of_groups.reason, Reason::InvalidConfiguration);
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
}

/// Two clusters of one name in a VPC of the user: the second finds its names taken.
#[test]
fn a_group_name_that_is_taken_in_the_vpc_of_a_user_is_a_conflict_that_names_group_and_owner() {
    let mut other = in_theirs();
    other.identity.owner_id = "another".to_owned();
    other.load_balancer = None;
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    world.run(&present(&other), &mut |_| None);
    let before = inventory(&world.cloud);
    world.memory = Memory::default();
    let mut spec = in_theirs();
    spec.identity.adopt = true;
    let (reconciliation, _) = world.run_later(&present(&spec));
    let message = conflict(&reconciliation, Part::SecurityGroups);
    let named = world.cloud.groups.all().into_iter().any(|it| message.contains(&it.id));
    assert!(named && message.contains("owner-id another"), "{message}");
    let (reconciliation, rest) = world.run_later(&absent(&spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, before));
    assert!(
        reconciliation.plan().others.iter().all(|it| it.owner_id.as_deref() == Some("another"))
    );
    assert_eq!(
        reconciliation.plan().others.len(),
        4,
        "its groups: {:?}",
        reconciliation.plan().others
    );
}

#[test]
fn a_network_of_eks_is_not_adopted_neither_to_keep_nor_to_delete_it() {
    let its_role = tags([
        (ROLE_TAG, "node-eks-additional"),
        ("sigs.k8s.io/cluster-api-provider-aws/cluster/testnetwork3", "owned"),
    ]);
    let eks = tags([
        ("aws:eks:cluster-name", "testnetwork3"),
        ("kubernetes.io/cluster/testnetwork3", "owned"),
    ]);
    for its_tags in [its_role, eks] {
        let mut world = upstreams();
        let vpc = world.cloud.vpcs.all().remove(0).id;
        group(&mut world.cloud, "sg-eks", &vpc, "k8s-elb-or-eks-cluster-sg", its_tags);
        let before = inventory(&world.cloud);
        let (reconciliation, rest) = world.run(&present(&adopting()), &mut |_| None);
        assert_eq!(rest, Rest::Stuck);
        let message = conflict(&reconciliation, Part::Vpc);
        assert!(message.starts_with(&format!("{vpc} belongs to an EKS cluster")), "{message}");
        let (reconciliation, rest) = world.run_later(&absent(&adopting()));
        assert_eq!(rest, Rest::Reached);
        assert!(world.writes.is_empty(), "{:#?}", world.writes);
        assert!(ids_of_others(&reconciliation).contains(&vpc.as_str()));
        assert_eq!(inventory(&world.cloud), before);
    }
}

fn with_services(spec: &Spec, service_resources: ServiceResources) -> Goal {
    let Goal::Absent(removal) = absent(spec) else { panic!() };
    Goal::Absent(Removal { service_resources, ..removal })
}

/// In a VPC of the user other clusters may have made them, so the user has to say so.
#[test]
fn resources_of_services_in_the_vpc_of_a_user_go_only_when_the_user_says_so() {
    let owned = ("kubernetes.io/cluster/testnetwork3", "owned");
    let service = ("kubernetes.io/service-name", "default/web");
    let spec = in_theirs();
    for (services, goes) in [
        (ServiceResources::GoWithOurVpc, false),
        (ServiceResources::Go, true),
        (ServiceResources::Stay, false),
    ] {
        let mut world = World::new(Nature::PROMPT, 2);
        theirs(&mut world.cloud);
        world.run(&present(&spec), &mut |_| None);
        let mut balancer = world.cloud.classic.all().remove(0);
        for (name, its_tags) in [("service", tags([owned, service])), ("user", tags([owned]))] {
            name.clone_into(&mut balancer.name);
            balancer.groups.clear();
            balancer.tags = Some(its_tags);
            world.cloud.classic.put(name, world.cloud.now, balancer.clone());
        }
        group(&mut world.cloud, "sg-service", "vpc-theirs", "k8s-elb-a1", tags([owned]));
        group(&mut world.cloud, "sg-user", "vpc-theirs", "database", tags([owned]));
        let eks = tags([owned, ("aws:eks:cluster-name", "testnetwork3")]);
        group(&mut world.cloud, "sg-eks", "vpc-theirs", "k8s-elb-eks", eks);
        world.run_once_for(&with_services(&spec, services), 600);
        let balancers: Vec<_> = world.cloud.classic.all().into_iter().map(|it| it.name).collect();
        let groups: Vec<_> = world.cloud.groups.all().into_iter().map(|it| it.id).collect();
        let (wanted, wanted_groups): (&[&str], &[&str]) = if goes {
            (&["user"], &["sg-eks", "sg-user"])
        } else {
            (&["service", "user"], &["sg-eks", "sg-service", "sg-user"])
        };
        assert_eq!(
            (balancers, groups),
            (
                wanted.iter().map(|it| (*it).to_owned()).collect(),
                wanted_groups.iter().map(|it| (*it).to_owned()).collect()
            ),
            "{services:?}"
        );
    }
}

#[test]
fn what_a_vanished_owner_has_left_is_named_with_its_owner_id() {
    let mut other = seed();
    other.identity.owner_id = "vanished".to_owned();
    other.load_balancer = None;
    let mut spec = seed();
    spec.load_balancer = None;
    let mut world = World::new(Nature::PROMPT, 2);
    world.run(&present(&other), &mut |_| None);
    let theirs = inventory(&world.cloud);
    world.memory = Memory::default();
    world.run(&present(&spec), &mut |_| None);
    let (reconciliation, rest) = world.run_later(&absent(&spec));
    assert_eq!(rest, Rest::Reached);
    assert_eq!(differences(&inventory(&world.cloud), &theirs), Vec::<String>::new());
    assert!(
        reconciliation.plan().others.iter().all(|it| it.owner_id.as_deref() == Some("vanished"))
    );
    assert!(reconciliation.plan().others.len() > 20);
}
