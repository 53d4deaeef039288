//! VPCs with several CIDRs.

use aws_fixtures::{dual_stack, subnet};
use aws_network::{Ipv6Range, LoadBalancerKind, Memory, Spec, SubnetSpec};

use crate::cloud::Nature;
use crate::driver::World;
use crate::dual_stack::{RANGE, goes, is_silent, made, reach, rules};
use crate::foreign::{in_theirs, theirs};

#[test]
fn of_several_ipv6_cidrs_the_one_of_the_subnets_counts() {
    let first: cidr::IpNet = "2600:db8:0:0::/56".parse().unwrap();
    let others: cidr::IpNet = "2600:db8:0:200::/56".parse().unwrap();
    let used: cidr::IpNet = RANGE.parse().unwrap();
    let mut spec = Spec { vpc_cidr: Some("10.66.0.0/16".to_owned()), ..dual_stack() };
    let mut world = made(&spec);
    let (now, vpc) = (world.cloud.now, world.cloud.vpcs.all().remove(0).id);
    world.cloud.vpcs.edit(&vpc, now, |it| {
        it.ipv6 = Some(Ipv6Range::Associated(first));
        it.more_ipv6 = vec![used, others];
    });
    is_silent(&mut world, &spec);
    world.memory = Memory::default();
    is_silent(&mut world, &spec);
    spec.subnets.push(SubnetSpec { is_ipv6: true, ..subnet("a", "10.66.1.0/24", false) });
    reach(&mut world, &spec);
    let mut found = world.cloud.subnets.all().into_iter().filter_map(|it| it.ipv6);
    assert!(found.all(|block| used.contains(&block)));
    goes(&mut world, &spec);

    let world = |in_first: bool| {
        let mut world = World::new(Nature::PROMPT, 2);
        theirs(&mut world.cloud);
        world.cloud.vpcs.edit("vpc-theirs", 0, |it| {
            it.ipv6 = Some(Ipv6Range::Associated(first));
            it.more_ipv6 = vec![used];
        });
        let cidr = if in_first { "2600:db8:0:7::/64" } else { "2600:db8:0:107::/64" };
        world.cloud.subnets.edit("subnet-1", 0, |it| it.ipv6 = Some(cidr.parse().unwrap()));
        let load_balancer = Some(aws_fixtures::load_balancer(LoadBalancerKind::Network));
        reach(&mut world, &Spec { ipv6: true, load_balancer, ..in_theirs() });
        rules(&world.cloud, "lb")
    };
    assert_eq!(world(true), [format!("6443 {first} Kubernetes API IPv6")]);
    assert_eq!(world(false), [format!("6443 {used} Kubernetes API IPv6")]);
}
