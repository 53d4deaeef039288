//! Changes by somebody else are repaired, and nothing else is written.

use aws_fixtures::{load_balancer, present, seed};
use aws_network::{
    Action, ClassicAttributes, DEFAULT_ROUTE, InstanceState, LoadBalancerKind, NatState, ROLE_TAG,
    Reason, Rest, Route, Rule, Source, Spec, Subnet, Target,
};
use cloud_double::{Cloud, Nature, differences, inventory};

use crate::driver::World;

pub(crate) type Damage = (&'static str, usize, fn(&mut Cloud));

fn first<T>(all: Vec<T>) -> T {
    all.into_iter().next().unwrap()
}

fn table_of(cloud: &Cloud, kind: &str) -> String {
    let all = cloud.tables.all();
    all.iter().find(|table| table.tags["Name"].contains(kind)).unwrap().id.clone()
}

/// A change by somebody else, and the number of writes that repair it.
pub(crate) const DAMAGES: [Damage; 21] = [
    ("names of instances are switched off", 1, |cloud| {
        let id = first(cloud.vpcs.all()).id;
        cloud.vpcs.edit(&id, cloud.now, |vpc| vpc.dns_hostnames = Some(false));
    }),
    ("name resolution is switched off", 2, |cloud| {
        let id = first(cloud.vpcs.all()).id;
        cloud.vpcs.edit(&id, cloud.now, |vpc| {
            (vpc.dns_support, vpc.dns_hostnames) = (Some(false), Some(false));
        });
    }),
    ("a tag is lost", 1, |cloud| {
        let public = |subnet: &Subnet| subnet.map_public_ip;
        let id = first(cloud.subnets.all().into_iter().filter(public).collect()).id;
        cloud
            .subnets
            .edit(&id, cloud.now, |subnet| drop(subnet.tags.remove("kubernetes.io/role/elb")));
    }),
    ("all of a VPC's tags are lost", 1, |cloud| {
        let id = first(cloud.vpcs.all()).id;
        cloud.vpcs.edit(&id, cloud.now, |vpc| vpc.tags.clear());
    }),
    ("a public subnet gives no addresses", 1, |cloud| {
        let id = first(cloud.subnets.all()).id;
        cloud.subnets.edit(&id, cloud.now, |subnet| subnet.map_public_ip = !subnet.map_public_ip);
    }),
    ("the internet gateway is detached", 1, |cloud| {
        let id = first(cloud.gateways.all()).id;
        cloud.gateways.edit(&id, cloud.now, |gateway| gateway.attached_to = None);
    }),
    ("a route is lost", 1, |cloud| {
        let id = table_of(cloud, "-rt-private-");
        cloud.tables.edit(&id, cloud.now, |table| {
            table.routes.retain(|route| route.destination != DEFAULT_ROUTE);
        });
    }),
    ("a route leads into a black hole", 1, |cloud| {
        let id = table_of(cloud, "-rt-public-");
        cloud.tables.edit(&id, cloud.now, |table| {
            table.routes.iter_mut().filter(|route| route.destination == DEFAULT_ROUTE).for_each(
                |route| {
                    route.blackhole = true;
                },
            );
        });
    }),
    ("a private subnet leads to the internet gateway", 1, |cloud| {
        let (id, gateway) = (table_of(cloud, "-rt-private-"), first(cloud.gateways.all()).id);
        cloud.tables.edit(&id, cloud.now, |table| {
            table.routes.retain(|route| route.destination != DEFAULT_ROUTE);
            let target = Target::InternetGateway(gateway);
            table.routes.push(Route {
                destination: DEFAULT_ROUTE.to_owned(),
                target,
                blackhole: false,
            });
        });
    }),
    ("a table is unused", 1, |cloud| {
        let id = table_of(cloud, "-rt-private-");
        cloud.tables.edit(&id, cloud.now, |table| table.associations.clear());
    }),
    ("two subnets have swapped tables", 2, |cloud| {
        let all = cloud.tables.all();
        let (left, right) = (all[0].clone(), all[1].clone());
        cloud
            .tables
            .edit(&left.id, cloud.now, |table| table.associations.clone_from(&right.associations));
        cloud
            .tables
            .edit(&right.id, cloud.now, |table| table.associations.clone_from(&left.associations));
    }),
    ("a NAT gateway is gone", 2, |cloud| {
        let nat = first(cloud.nats.all());
        cloud.nats.edit(&nat.id, cloud.now, |nat| nat.state = NatState::Deleted);
        cloud.addresses.edit(&nat.allocations[0], cloud.now, |address| address.association = None);
    }),
    ("a rule is lost", 1, |cloud| {
        let id =
            first(cloud.groups.all().into_iter().filter(|group| !group.rules.is_empty()).collect())
                .id;
        cloud.groups.edit(&id, cloud.now, |group| drop(group.rules.pop()));
    }),
    ("a rule of others is added", 1, |cloud| {
        let all = cloud.groups.all();
        let id = all.iter().find(|group| group.name.ends_with("-node")).unwrap().id.clone();
        let everybody = Source::Cidr(cidr::parse("0.0.0.0/0").unwrap());
        cloud.groups.edit(&id, cloud.now, |group| {
            group.rules.push(Rule::new("-1", (-1, -1), everybody, "open"));
        });
    }),
    ("a private subnet is deleted, and its table is left", 2, |cloud| {
        let private = |subnet: &Subnet| !subnet.map_public_ip;
        let id = first(cloud.subnets.all().into_iter().filter(private).collect()).id;
        cloud.subnets.remove(&id, cloud.now);
        for table in cloud.tables.all() {
            cloud.tables.edit(&table.id, cloud.now, |table| {
                table.associations.retain(|it| it.subnet.as_ref() != Some(&id));
            });
        }
    }),
    ("a rule is described otherwise", 1, |cloud| {
        let id =
            first(cloud.groups.all().into_iter().filter(|group| !group.rules.is_empty()).collect())
                .id;
        cloud
            .groups
            .edit(&id, cloud.now, |group| "else".clone_into(&mut group.rules[0].description));
    }),
    ("the bastion is terminated", 1, |cloud| {
        let id = first(cloud.instances.all()).id;
        cloud.instances.edit(&id, cloud.now, |instance| instance.state = InstanceState::Terminated);
    }),
    ("the bastion has lost its role", 1, |cloud| {
        let id = first(cloud.instances.all()).id;
        cloud.instances.edit(&id, cloud.now, |instance| drop(instance.tags.remove(ROLE_TAG)));
    }),
    ("idle connections are cut early", 1, |cloud| {
        cloud.classic.edit("testnetwork3-apiserver", cloud.now, |found| {
            found.attributes = Some(ClassicAttributes { idle_timeout: 60, cross_zone: true });
        });
    }),
    ("the load balancer has lost all that a crash can cost it", 4, |cloud| {
        cloud.classic.edit("testnetwork3-apiserver", cloud.now, |found| {
            "TCP".clone_into(&mut found.health_check.protocol);
            found.listeners.clear();
            found.groups.clear();
            found.subnets.pop();
        });
    }),
    ("the load balancer listens elsewhere", 2, |cloud| {
        cloud.classic.edit("testnetwork3-apiserver", cloud.now, |found| {
            found.listeners.iter_mut().for_each(|listener| listener.instance_port = 80);
        });
    }),
];

#[test]
fn each_damage_is_put_right_with_as_many_writes_as_it_takes() {
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&seed()), &mut |_| None);
    let wanted = inventory(&world.cloud);
    for (what, writes, damage) in DAMAGES {
        let mut world = world.clone();
        damage(&mut world.cloud);
        assert_ne!(inventory(&world.cloud), wanted, "{what}: that is no damage");
        world.cloud.advance(3600); // the deep check is due
        let (_, rest) = world.run_later(&present(&seed()));
        assert_eq!(rest, Rest::Reached, "{what}");
        assert_eq!(differences(&inventory(&world.cloud), &wanted), Vec::<String>::new(), "{what}");
        assert_eq!(world.writes.len(), writes, "{what}: {:#?}", world.writes);
        world.run_later(&present(&seed()));
        assert!(world.writes.is_empty(), "{what}: {:#?}", world.writes);
    }
}

#[test]
fn tags_and_routes_of_others_stay() {
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&seed()), &mut |_| None);
    let (vpc, table) = (first(world.cloud.vpcs.all()).id, table_of(&world.cloud, "-rt-private-"));
    world
        .cloud
        .vpcs
        .edit(&vpc, 1_000_001, |vpc| drop(vpc.tags.insert("team".to_owned(), "blue".to_owned())));
    world.cloud.tables.edit(&table, 1_000_001, |table| {
        let (destination, target) = ("172.16.0.0/12".to_owned(), Target::Other("pcx-1".to_owned()));
        table.routes.push(Route { destination, target, blackhole: false });
    });
    let before = inventory(&world.cloud);
    world.run_later(&present(&seed()));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
    assert_eq!(differences(&inventory(&world.cloud), &before), Vec::<String>::new());
}

#[test]
fn a_tag_that_the_spec_no_longer_has_is_removed_from_everything_with_two_calls() {
    let mut spec = seed();
    spec.additional_tags.insert("team".to_owned(), "blue".to_owned());
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&spec), &mut |_| None);
    let mut after = seed();
    after.applied_tags.insert("team".to_owned());
    world.cloud.advance(3600);
    world.run_later(&present(&after));
    assert_eq!(
        world.writes.len(),
        2,
        "one call of EC2 and one of the load balancers: {:#?}",
        world.writes
    );
    assert!(!inventory(&world.cloud).iter().any(|line| line.contains("team=blue")));
}

fn changed(change: fn(&mut Spec)) -> Spec {
    let mut spec = seed();
    change(&mut spec);
    spec
}

type Change = (&'static str, fn(&mut Spec));

#[test]
fn a_change_of_the_spec_ends_as_if_it_had_always_been_so() {
    let changes: [Change; 5] = [
        ("another port", |spec| spec.api_port = 443),
        ("no bastion", |spec| spec.bastion = None),
        ("another network plug-in", |spec| spec.cni = aws_network::CniSpec::Calico),
        ("more zones", |spec| spec.load_balancer.as_mut().unwrap().cross_zone = true),
        ("fewer subnets", |spec| {
            spec.prune_subnets = true;
            spec.subnets.truncate(4);
        }),
    ];
    for (what, change) in changes {
        let after = changed(change);
        for kind in [LoadBalancerKind::Classic, LoadBalancerKind::Network] {
            let of_kind = |mut spec: Spec| {
                let cross_zone = spec.load_balancer.as_ref().unwrap().cross_zone;
                spec.load_balancer =
                    Some(aws_network::LoadBalancerSpec { cross_zone, ..load_balancer(kind) });
                spec
            };
            let mut world = World::new(Nature::PROMPT, 5);
            world.run(&present(&of_kind(seed())), &mut |_| None);
            world.cloud.advance(3600);
            let (reconciliation, rest) = world.run_later(&present(&of_kind(after.clone())));
            assert_eq!(
                rest,
                Rest::Reached,
                "{what} {kind:?}: {:#?} {:#?}",
                reconciliation.problems(),
                reconciliation.plan()
            );
            let mut fresh = World::new(Nature::PROMPT, 5);
            fresh.run(&present(&of_kind(after.clone())), &mut |_| None);
            assert_eq!(
                differences(&inventory(&world.cloud), &inventory(&fresh.cloud)),
                Vec::<String>::new(),
                "{what} {kind:?}"
            );
        }
    }
}

/// Default subnets of another CIDR are none of the VPC, whether they would lie in it or not.
#[test]
fn another_cidr_of_the_vpc_is_reported_and_changes_nothing() {
    let spec = changed(|spec| spec.subnets.clear());
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&spec), &mut |_| None);
    for other in [Some("10.67.0.0/20"), Some("10.66.0.0/25"), Some("10.66.0.192/26"), None] {
        let vpc_cidr = other.map(str::to_owned);
        let spec = Spec { vpc_cidr, prune_subnets: true, ..spec.clone() };
        let (reconciliation, rest) = world.run_later(&present(&spec));
        assert!(world.writes.is_empty(), "{other:?}: {:#?}", world.writes);
        let reasons: Vec<_> = reconciliation.problems().into_iter().map(|it| it.reason).collect();
        assert_eq!((rest, &*reasons), (Rest::Stuck, &[Reason::Immutable][..]), "{other:?}");
    }
}

/// The routes of its subnet keep the NAT gateway of a zone that the spec has dropped.
#[test]
fn a_nat_gateway_of_a_dropped_zone_is_looked_at_every_ten_minutes() {
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&seed()), &mut |_| None);
    let fewer = changed(|spec| spec.subnets.truncate(4));
    world.reads = 0;
    world.run_once_for(&present(&fewer), 6 * 3600);
    assert_eq!(world.cloud.nats.all().len(), 3);
    assert!(world.reads < 200, "{} reads in 6 hours", world.reads);
}

#[test]
fn rules_are_added_before_others_are_taken_away() {
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&seed()), &mut |_| None);
    let narrow = changed(|spec| spec.node_port_cidr_blocks = vec!["192.0.2.0/24".to_owned()]);
    world.run_later(&present(&narrow));
    let kinds: Vec<_> = world
        .writes
        .iter()
        .map(|write| match &write.action {
            Action::AuthorizeIngress { rules, .. } => ("authorize", rules.len()),
            Action::RevokeIngress { rules, .. } => ("revoke", rules.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, [("authorize", 1), ("revoke", 1)]);
}

#[test]
fn rules_of_others_stay_when_the_user_says_so() {
    let keeping = changed(|spec| spec.keep_foreign_rules = true);
    let mut world = World::new(Nature::PROMPT, 5);
    world.run(&present(&keeping), &mut |_| None);
    let id = world.cloud.groups.all().remove(0).id;
    let source = Source::Cidr(cidr::parse("192.0.2.0/24").unwrap());
    let rule = Rule::new("udp", (53, 53), source, "DNS");
    world.cloud.groups.edit(&id, 1_000_001, |group| group.rules.push(rule));
    world.run_later(&present(&keeping));
    assert!(world.writes.is_empty(), "{:#?}", world.writes);
}

#[test]
fn who_is_let_in_by_rule_lets_in_the_nat_gateways_too() {
    let limited = changed(|spec| {
        let office = aws_network::IngressRuleSpec {
            protocol: "tcp".to_owned(),
            from_port: 6443,
            to_port: 6443,
            cidr_blocks: vec!["192.0.2.0/24".to_owned()],
            ..aws_network::IngressRuleSpec::default()
        };
        spec.load_balancer.as_mut().unwrap().ingress_rules = vec![office];
    });
    let mut world = World::new(Nature { slow: 30, ..Nature::PROMPT }, 5);
    world.run(&present(&limited), &mut |_| None);
    let groups = world.cloud.groups.all();
    let group = groups.iter().find(|group| group.name.ends_with("-apiserver-lb")).unwrap();
    for address in world.cloud.addresses.all() {
        let source = Source::Cidr(cidr::parse(&format!("{}/32", address.ip)).unwrap());
        assert!(
            group.rules.iter().any(|rule| rule.key.source == source),
            "{} is not let in",
            address.ip
        );
    }
    assert_eq!(group.rules.len(), 4);
}
