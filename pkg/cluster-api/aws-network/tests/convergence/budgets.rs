//! The cluster that everybody starts with: how many calls it takes, and what it leads to.

use aws_fixtures::{absent, counted, counts, present, seed};
use aws_network::{Action, NatMode, Rest};
use cloud_double::{Nature, inventory};

use crate::driver::World;

#[test]
fn the_cluster_is_made_with_58_calls_kept_with_9_and_deleted_with_50() {
    for (mode, nats, create) in
        [(NatMode::PerZone, 3, 58), (NatMode::Single, 1, 54), (NatMode::None, 0, 48)]
    {
        let mut spec = seed();
        spec.nat_mode = mode;
        let mut world = World::new(Nature::PROMPT, 1);
        let (_, rest) = world.run(&present(&spec), &mut |_| None);
        let made = world.reads + world.writes.len();
        assert_eq!(rest, Rest::Reached);
        assert!(made <= create, "{mode:?}: {made} calls, {:#?}", world.writes);
        let lines = inventory(&world.cloud);
        assert_eq!(counted(&lines), counts(nats), "{mode:?}: {lines:#?}");

        world.run_later(&present(&spec));
        let kept = world.reads;
        assert!(world.writes.is_empty(), "{mode:?}: {:#?}", world.writes);
        assert!(kept <= 9, "{mode:?}: {kept} reads");
        world.run_later(&present(&spec));
        world.run_later(&present(&spec));
        assert!(world.reads <= 13, "{mode:?}: {} reads of a deep check", world.reads);
        assert!(world.writes.is_empty(), "{mode:?}: {:#?}", world.writes);

        let (_, rest) = world.run_later(&absent(&spec));
        let deleted = world.reads + world.writes.len();
        assert_eq!(rest, Rest::Reached);
        assert_eq!(inventory(&world.cloud), Vec::<String>::new());
        assert!(
            deleted <= 50,
            "{mode:?}: {deleted} calls, {} reads, {:#?}",
            world.reads,
            world.writes
        );
        println!("{mode:?}: create {made}, no-op {kept}, delete {deleted}");
    }
}

#[test]
fn everything_has_its_tags_rules_routes_and_attributes() {
    let mut world = World::new(Nature::PROMPT, 1);
    world.run(&present(&seed()), &mut |_| None);
    let lines = inventory(&world.cloud);
    let ours = "Name={name},aws.cluster.x-k8s.io/owner-id=5d9f0c8e-owner";
    let cluster = "sigs.k8s.io/cluster-api-provider-aws/cluster/testnetwork3=owned";
    let has = |text: String| assert!(lines.contains(&text), "{text}\nis not in {lines:#?}");
    let name = |name: &str| ours.replace("{name}", name);
    let role = |role: &str| format!("sigs.k8s.io/cluster-api-provider-aws/role={role}");
    has(format!(
        "vpc 10.66.0.0/24 dns (true, true) {},{cluster},{}",
        name("testnetwork3-vpc"),
        role("common")
    ));
    has(format!(
        "subnet 10.66.0.96/27 us-east-2b maps false {},kubernetes.io/cluster/testnetwork3=shared,\
         kubernetes.io/role/internal-elb=1,{cluster},{}",
        name("testnetwork3-subnet-private-us-east-2b"),
        role("private")
    ));
    has(format!(
        "subnet 10.66.0.0/27 us-east-2a maps true {},kubernetes.io/cluster/testnetwork3=shared,\
         kubernetes.io/role/elb=1,{cluster},{}",
        name("testnetwork3-subnet-public-us-east-2a"),
        role("public")
    ));
    has(format!(
        "table of [Some(\"10.66.0.160/27\")] routes [\"0.0.0.0/0 to nat us-east-2c\", \"10.66.0.0/24 to local\"] \
         {},aws.cluster.x-k8s.io/route-table-subnet=10.66.0.160/27,{cluster},{}",
        name("testnetwork3-rt-private-us-east-2c"),
        role("common")
    ));
    has(format!(
        "nat Available in 10.66.0.64/27 with [\"eip us-east-2b\"] \
         Name=testnetwork3-nat,aws.cluster.x-k8s.io/nat-az=us-east-2b,aws.cluster.x-k8s.io/owner-id=5d9f0c8e-owner,\
         {cluster},{}",
        role("common")
    ));
    let elb = lines.iter().find(|line| line.starts_with("elb testnetwork3-apiserver")).unwrap();
    for part in [
        "port: 6443, instance_port: 6443, tcp: true",
        "protocol: \"SSL\", port: 6443, path: None, interval: 10, timeout: 5, healthy: 5, unhealthy: 3",
        "idle_timeout: 600, cross_zone: false",
        "in [\"10.66.0.0/27\", \"10.66.0.128/27\", \"10.66.0.64/27\"] with [\"testnetwork3-apiserver-lb\"]",
    ] {
        assert!(elb.contains(part), "{part} is not in {elb}");
    }
}

#[test]
fn groups_have_exactly_the_rules_of_the_network_plug_in_and_of_kubernetes() {
    let mut world = World::new(Nature::PROMPT, 1);
    world.run(&present(&seed()), &mut |_| None);
    let rules = |group: &str| {
        let all = world.cloud.groups.all();
        all.iter().find(|found| found.name == format!("testnetwork3-{group}")).unwrap().rules.len()
    };
    // SSH; the API from three groups; etcd and its peers; all from two groups.
    assert_eq!(rules("controlplane"), 1 + 3 + 2 + 2);
    // SSH; node ports; kubelet from two groups; all from two groups.
    assert_eq!(rules("node"), 1 + 1 + 2 + 2);
    assert_eq!((rules("bastion"), rules("apiserver-lb"), rules("lb")), (1, 1, 0));
}

#[test]
fn nothing_is_written_before_what_it_needs_is_there() {
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 7);
    let (_, rest) = world.run(&present(&seed()), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    let place = |is_it: fn(&Action) -> bool| {
        world.writes.iter().position(|write| is_it(&write.action)).unwrap()
    };
    let balancer = place(|action| matches!(action, Action::Elb(_)));
    let last_route =
        world.writes.iter().rposition(|write| matches!(write.action, Action::CreateRoute { .. }));
    assert!(balancer < last_route.unwrap(), "the load balancer does not wait for NAT gateways");
    assert!(world.reads < 40, "{} reads while NAT gateways were made", world.reads);
}
