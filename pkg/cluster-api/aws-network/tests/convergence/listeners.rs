//! Additional listeners of a network load balancer: each has a target group of its own, and comes,
//! changes and goes with the spec.

use aws_fixtures::{absent, load_balancer, present, seed};
use aws_network::{
    Action, ElbV2Action, HealthCheckSpec, ListenerSpec, LoadBalancerKind, LogicalId, Memory,
    NetworkListener, Part, Rest, Role, Spec, Tags, TargetAttributes,
};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::adoption::as_upstream_made_it;
use crate::driver::{Fault, World};

/// A cluster with a network load balancer that listens on these ports as well.
pub(crate) fn with_ports(ports: &[u16]) -> Spec {
    let mut balancer = load_balancer(LoadBalancerKind::Network);
    balancer.listeners =
        ports.iter().map(|port| ListenerSpec { port: *port, ..ListenerSpec::default() }).collect();
    Spec { load_balancer: Some(balancer), ..seed() }
}

fn made(spec: &Spec) -> World {
    let mut world = World::new(Nature::PROMPT, 9);
    let (reconciliation, rest) = world.run(&present(spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    world
}

/// The port of each listener, and the name of the target group that it leads to.
fn listeners(cloud: &Cloud) -> Vec<(u16, String)> {
    let balancer = cloud.network.all().remove(0);
    let name = |arn: &str| cloud.target_groups.get(arn).unwrap().name.clone();
    let mut all: Vec<_> =
        balancer.listeners.iter().map(|it| (it.port, name(&it.target_group))).collect();
    all.sort();
    all
}

fn ports(cloud: &Cloud) -> Vec<u16> {
    listeners(cloud).into_iter().map(|(port, _)| port).collect()
}

/// The ports that the group of this role opens, and the descriptions.
fn rules(cloud: &Cloud, role: Role) -> Vec<(i32, String, String)> {
    let name = format!("-{role}");
    let groups = cloud.groups.all();
    let group = groups.iter().find(|group| group.name.ends_with(&name)).unwrap();
    let mut rules: Vec<_> = group
        .rules
        .iter()
        .map(|rule| {
            let source = match &rule.key.source {
                aws_network::Source::Cidr(cidr) => cidr.to_string(),
                other => format!("{other:?}"),
            };
            (rule.key.from_port, source, rule.description.clone())
        })
        .collect();
    rules.sort();
    rules
}

#[test]
fn an_additional_listener_has_its_own_target_group_and_rule() {
    let mut spec = with_ports(&[8443, 9345]);
    let wanted = HealthCheckSpec {
        protocol: Some("HTTP".to_owned()),
        interval: Some(30),
        ..HealthCheckSpec::default()
    };
    let balancer = spec.load_balancer.as_mut().unwrap();
    (balancer.listeners[1].health_check, balancer.listeners[1].check_port) = (wanted, Some(9000));
    let mut world = made(&spec);
    let found = listeners(&world.cloud);
    assert_eq!(found.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [6443, 8443, 9345]);
    assert_eq!(found[0].1, "default-testnetwork3-apiserver");
    for (_, name) in &found[1..] {
        assert!(name.len() == 32 && name.ends_with("-k8s"), "{name}");
    }
    let check = |name: &str| {
        let groups = world.cloud.target_groups.all();
        groups.into_iter().find(|group| group.name == name).unwrap().health_check.to_string()
    };
    let rest = "healthy threshold 2, unhealthy threshold 6";
    assert_eq!(check(&found[1].1), format!("TCP:8443 every 5 s, timeout 4 s, {rest}"));
    assert_eq!(check(&found[2].1), format!("HTTP:9000/ every 30 s, timeout 4 s, {rest}"));
    let rule = |port: i32, rest: &str| {
        let text = format!("Allow NLB traffic to the control plane instances on port {port}.");
        (port, "10.66.0.0/24".to_owned(), if rest.is_empty() { text } else { rest.to_owned() })
    };
    let expected = [
        rule(6443, "Allow NLB traffic to the control plane instances."),
        rule(8443, ""),
        rule(9345, ""),
    ];
    assert_eq!(rules(&world.cloud, Role::Lb), expected);
    assert_eq!(rules(&world.cloud, Role::ApiServerLb).len(), 1, "other ports by ingressRules only");
    for _ in 0..3 {
        world.run_later(&present(&spec));
        assert!(world.writes.is_empty(), "{:#?}", world.writes);
    }
    let (_, rest) = world.run_later(&absent(&spec));
    assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()));
}

/// A target group that is created gets its attributes, and a choice of the user stays.
#[test]
fn attributes_of_unhealthy_targets_are_set_once() {
    let spec = with_ports(&[8443]);
    let mut world = made(&spec);
    let expected = TargetAttributes {
        preserve_client_ip: false,
        terminates_connections: false,
        draining_interval: 300,
    };
    let groups = world.cloud.target_groups.all();
    assert!(groups.iter().all(|group| group.attributes.as_ref() == Some(&expected)), "{groups:?}");
    let now = world.cloud.now;
    let chosen = TargetAttributes { draining_interval: 7, ..expected };
    for group in &groups {
        world.cloud.target_groups.edit(&group.arn, now, |it| it.attributes = Some(chosen.clone()));
    }
    world.cloud.advance(3600);
    world.run_later(&present(&spec));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    let mut preserving = spec;
    preserving.load_balancer.as_mut().unwrap().preserve_client_ip = true;
    world.cloud.advance(3600);
    world.run_later(&present(&preserving));
    let now_there = TargetAttributes { preserve_client_ip: true, ..chosen };
    let groups = world.cloud.target_groups.all();
    assert!(groups.iter().all(|group| group.attributes.as_ref() == Some(&now_there)), "{groups:?}");
}

/// Otherwise connections would be refused for a moment.
#[test]
fn clients_are_let_in_before_their_addresses_arrive_and_until_they_do_not() {
    let spec = with_ports(&[8443]);
    let mut preserving = spec.clone();
    preserving.load_balancer.as_mut().unwrap().preserve_client_ip = true;
    let mut world = made(&spec);
    world.cloud.advance(3600);
    world.run_later(&present(&preserving));
    let place = |world: &World, is_it: fn(&Action) -> bool| {
        world.writes.iter().position(|write| is_it(&write.action)).unwrap()
    };
    let sets: fn(&Action) -> bool =
        |it| matches!(it, Action::ElbV2(ElbV2Action::SetTargetAttributes { .. }));
    let opens: fn(&Action) -> bool = |it| matches!(it, Action::AuthorizeIngress { .. });
    let closes: fn(&Action) -> bool = |it| matches!(it, Action::RevokeIngress { .. });
    assert!(place(&world, opens) < place(&world, sets), "{:#?}", world.writes);
    let sources = |world: &World| -> Vec<String> {
        rules(&world.cloud, Role::Lb).into_iter().map(|(_, source, _)| source).collect()
    };
    assert_eq!(sources(&world), ["0.0.0.0/0", "0.0.0.0/0"]);
    world.cloud.advance(3600);
    world.run_later(&present(&spec));
    assert!(place(&world, sets) < place(&world, closes), "{:#?}", world.writes);
    assert_eq!(sources(&world), ["10.66.0.0/24", "10.66.0.0/24"]);
}

/// Attributes are read once an hour.
#[test]
fn rules_for_clients_stay_until_it_is_read_that_no_target_needs_them() {
    let spec = with_ports(&[]);
    let mut preserving = spec.clone();
    preserving.load_balancer.as_mut().unwrap().preserve_client_ip = true;
    let mut world = made(&preserving);
    // A rule of the user has a source of its own.
    let group = world.cloud.groups.all().into_iter().find(|it| it.name.ends_with("-lb")).unwrap();
    let mut of_user = group.rules[0].clone();
    of_user.key.source = aws_network::Source::Cidr("203.0.113.0/24".parse().unwrap());
    let now = world.cloud.now;
    world.cloud.groups.edit(&group.id, now, |it| it.rules.push(of_user.clone()));
    let sources = |world: &World| -> Vec<String> {
        rules(&world.cloud, Role::Lb).into_iter().map(|(_, source, _)| source).collect()
    };
    world.run_later(&present(&spec));
    assert_eq!(sources(&world), ["0.0.0.0/0", "10.66.0.0/24", "203.0.113.0/24"]);
    world.cloud.advance(3600);
    world.run_later(&present(&spec));
    assert_eq!(sources(&world), ["10.66.0.0/24", "203.0.113.0/24"]);
}

#[test]
fn listeners_come_change_and_go_live_with_a_fault_at_any_write() {
    let mut changed = with_ports(&[8443]);
    changed.load_balancer.as_mut().unwrap().listeners[0].health_check.interval = Some(60);
    let steps = [
        (with_ports(&[]), with_ports(&[8443, 9345])),
        (with_ports(&[8443]), changed),
        (with_ports(&[8443, 9345]), with_ports(&[9345])),
        (with_ports(&[8443]), with_ports(&[9345])),
        (with_ports(&[8443, 9345]), with_ports(&[])),
    ];
    let mut points = 0;
    for (from, to) in steps {
        let (start, wanted) = (made(&from), inventory(&made(&to).cloud));
        let mut whole = start.clone();
        whole.run_later(&present(&to));
        let ports_of = |spec: &Spec| {
            let listeners = &spec.load_balancer.as_ref().unwrap().listeners;
            listeners.iter().map(|it| it.port).collect::<Vec<_>>()
        };
        let what = format!("{:?} to {:?}", ports_of(&from), ports_of(&to));
        assert!(!whole.writes.is_empty(), "{what}");
        for point in 0..whole.writes.len() {
            for fault in Fault::ALL {
                let mut world = start.clone();
                let (reconciliation, rest) =
                    world.run(&present(&to), &mut |sent| (sent == point).then_some(fault));
                let what = format!("{what}, write {point}, {fault:?}");
                assert_eq!(rest, Rest::Reached, "{what}: {:#?}", reconciliation.problems());
                world.run_later(&present(&to));
                let differences = differences(&inventory(&world.cloud), &wanted);
                assert_eq!(differences, Vec::<String>::new(), "{what}");
                world.run_later(&present(&to));
                assert!(world.writes.is_empty(), "{what}: {:#?}", world.writes);
                let is_name = |it: &&LogicalId| matches!(it, LogicalId::NamedTargetGroup(_));
                let names = world.memory.records.keys().filter(is_name).count();
                assert_eq!(names, ports_of(&to).len(), "{what}: {:?}", world.memory.records);
                points += 1;
            }
        }
    }
    assert!(points > 5 * 12, "only {points} points were tried");
}

/// A listener of others leads to a target group of theirs.
pub(crate) fn add_listener_of_others(world: &mut World, port: u16) {
    let now = world.cloud.now;
    let balancer = world.cloud.network.all().remove(0).arn;
    let mut theirs = world.cloud.target_groups.all().remove(0);
    "arn:tg-theirs".clone_into(&mut theirs.arn);
    "theirs".clone_into(&mut theirs.name);
    theirs.tags.clear();
    world.cloud.target_groups.put("arn:tg-theirs", now, theirs);
    world.cloud.network.edit(&balancer, now, |it| {
        let (arn, target_group) = ("arn:listener-theirs".to_owned(), "arn:tg-theirs".to_owned());
        it.listeners.push(NetworkListener { arn, port, target_group, tags: Tags::new() });
    });
}

/// rule:settings-of-others-stay
#[test]
fn a_listener_of_others_survives_each_change_and_is_a_conflict_on_a_port_of_the_spec() {
    let mut world = made(&with_ports(&[8443]));
    add_listener_of_others(&mut world, 9999);
    for wanted in [&[8443, 9345][..], &[9345], &[]] {
        let (_, rest) = world.run_later(&present(&with_ports(wanted)));
        assert_eq!(rest, Rest::Reached);
        assert_eq!(ports(&world.cloud), [&[6443][..], wanted, &[9999]].concat());
    }
    let (reconciliation, rest) = world.run_later(&present(&with_ports(&[8443, 9999])));
    assert_eq!(rest, Rest::Stuck);
    let problems = reconciliation.problems();
    let [problem] = &problems[..] else { panic!("{problems:#?}") };
    assert_eq!(problem.part, Part::LoadBalancer);
    assert!(problem.message.contains("port 9999") && problem.message.contains("arn:tg-theirs"));
    assert_eq!(ports(&world.cloud), [6443, 8443, 9999], "the others are made");
}

/// Another listener of ours, or upstream's, may have the port: it makes room.
#[test]
fn a_listener_that_leads_to_the_api_server_makes_room_for_an_additional_one() {
    let mut before = with_ports(&[]);
    before.api_port = 443;
    let mut world = made(&before);
    let (reconciliation, rest) = world.run_later(&present(&with_ports(&[443])));
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let wanted = inventory(&made(&with_ports(&[443])).cloud);
    assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new());
}

/// rule:settings-of-others-stay: a listener of upstream is ours from when the spec names it.
#[test]
fn an_adopted_listener_that_the_spec_names_keeps_its_target_group_and_goes_with_the_spec() {
    let mut spec = with_ports(&[9345]);
    let mut world = made(&spec);
    let now = world.cloud.now;
    for (number, group) in world.cloud.target_groups.all().into_iter().enumerate() {
        let name = format!("upstreams-{number}");
        world.cloud.target_groups.edit(&group.arn, now, |it| it.name = name);
    }
    let balancer = world.cloud.network.all().remove(0).arn;
    world.cloud.network.edit(&balancer, now, |it| {
        it.listeners.iter_mut().for_each(|listener| listener.tags.clear());
    });
    as_upstream_made_it(&mut world.cloud);
    world.cloud.advance(1);
    world.memory = Memory::default();
    world.writes.clear();
    let before = listeners(&world.cloud);
    spec.identity.adopt = true;
    let (reconciliation, rest) = world.run(&present(&spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
    let is_of_tags = |action: &Action| {
        matches!(action, Action::CreateTags { .. } | Action::ElbV2(ElbV2Action::AddTags { .. }))
    };
    assert!(world.writes.iter().all(|write| is_of_tags(&write.action)), "{:#?}", world.writes);
    assert_eq!(listeners(&world.cloud), before);
    let mut without = with_ports(&[]);
    without.identity.adopt = true;
    world.run_later(&present(&without));
    assert_eq!(ports(&world.cloud), [6443]);
    assert_eq!(world.cloud.target_groups.all().len(), 1);
}

/// The process dies in a create, and its status is lost.
#[test]
fn a_lost_status_leaves_nothing_of_a_cluster_with_additional_listeners() {
    let spec = with_ports(&[8443, 9345]);
    let writes = made(&spec).writes.len();
    for point in 0..writes {
        let mut world = World::new(Nature::PROMPT, 3);
        world.run_until_crash(&present(&spec), point);
        world.memory = Memory::default();
        let (_, rest) = world.run(&absent(&spec), &mut |_| None);
        assert_eq!((rest, inventory(&world.cloud)), (Rest::Reached, Vec::new()), "write {point}");
    }
}
