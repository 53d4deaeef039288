//! VPCs with several CIDRs.

use aws_fixtures::{dual_stack, load_balancer, present, seed, subnet};
use aws_network::{
    Action, Ipv6Range, LoadBalancerKind, Memory, Part, Planned, Rest, Spec, SubnetSpec,
};
use cloud_double::{Nature, inventory};

use crate::driver::World;
use crate::dual_stack::{RANGE, conditions_of, goes, is_silent, made, reach, rules};
use crate::foreign::{in_theirs, theirs};

const NLB_RULE: &str = "Allow NLB traffic to the control plane instances.";

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
        world.cloud.subnets.edit("subnet-f0000001", 0, |it| it.ipv6 = Some(cidr.parse().unwrap()));
        let load_balancer = Some(aws_fixtures::load_balancer(LoadBalancerKind::Network));
        reach(&mut world, &Spec { ipv6: true, load_balancer, ..in_theirs() });
        rules(&world.cloud, "lb")
    };
    assert_eq!(world(true), [format!("6443 {first} {NLB_RULE}")]);
    assert_eq!(world(false), [format!("6443 {used} {NLB_RULE}")]);
}

/// A cluster with a second CIDR and a subnet in it.
pub(crate) fn with_secondary() -> Spec {
    let mut spec = Spec { secondary_cidrs: vec!["10.67.0.0/24".to_owned()], ..seed() };
    spec.subnets.push(subnet("a", "10.67.0.0/27", false));
    spec.load_balancer = Some(load_balancer(LoadBalancerKind::Network));
    spec
}

#[test]
fn a_secondary_cidr_is_associated_before_its_subnets_and_never_taken_away() {
    let spec = with_secondary();
    let mut world = World::new(Nature { slow: 60, ..Nature::PROMPT }, 4);
    reach(&mut world, &spec);
    let associates = |it: &Planned| matches!(it.action, Action::AssociateCidr { .. });
    assert_eq!(world.writes.iter().filter(|it| associates(it)).count(), 1);
    let names = inventory(&world.cloud);
    assert!(names.contains(&"cidr 10.67.0.0/24 associated true".to_owned()), "{names:#?}");
    let all = world.cloud.groups.all();
    let group = all.iter().find(|it| it.name == "testnetwork3-lb").unwrap();
    let sources: Vec<_> = group.rules.iter().map(|rule| format!("{:?}", rule.key.source)).collect();
    assert_eq!(
        sources,
        ["Cidr(10.66.0.0/24)", "Cidr(10.67.0.0/24)"],
        "load balancers lie there too"
    );
    let (reconciliation, _) = world.run_later(&present(&spec));
    let found = conditions_of(&reconciliation, &present(&spec));
    assert!(found.contains(&(Part::SecondaryCidrs, true)), "{found:?}");
    is_silent(&mut world, &spec);
    let mut without = spec.clone();
    (without.secondary_cidrs, without.prune_subnets) = (Vec::new(), true);
    without.subnets.pop();
    reach(&mut world, &without);
    assert!(inventory(&world.cloud).contains(&"cidr 10.67.0.0/24 associated true".to_owned()));
    goes(&mut world, &without);
}

/// Its subnets are still there.
#[test]
fn a_secondary_cidr_that_leaves_the_spec_keeps_its_rule_for_the_load_balancer() {
    let mut world = made(&with_secondary());
    let without = Spec { secondary_cidrs: Vec::new(), ..with_secondary() };
    let named = Spec { vpc_id: Some(world.cloud.vpcs.all().remove(0).id), ..without };
    is_silent(&mut world, &named);
}

#[test]
fn a_secondary_cidr_that_aws_failed_to_associate_or_that_overlaps_is_reported_and_not_tried_again()
{
    let cidr = "10.67.0.0/24".parse().unwrap();
    let spec = Spec { secondary_cidrs: vec!["10.67.0.0/24".to_owned()], ..seed() };
    let mut world = made(&seed());
    let id = world.cloud.vpcs.all().remove(0).id;
    let failed = aws_network::SecondaryCidr { cidr, associated: false, failed: true };
    world.cloud.vpcs.edit(&id, world.cloud.now, |vpc| vpc.secondary.push(failed));
    let (reconciliation, _) = world.run_later(&present(&spec));
    let message = &reconciliation.problems()[0].message;
    assert!(message.starts_with("AWS could not associate 10.67.0.0/24"), "{message}");
    assert_eq!(world.writes, []);
    let inside =
        Spec { secondary_cidrs: vec!["10.66.0.0/16".to_owned()], vpc_id: Some(id), ..seed() };
    let (reconciliation, _) = world.run_later(&present(&inside));
    let message = &reconciliation.problems()[0].message;
    assert!(message.contains("10.66.0.0/16 overlaps with 10.66.0.0/24"), "{message}");
    assert_eq!(world.writes, []);
}

#[test]
fn a_secondary_cidr_is_added_to_a_vpc_of_ours_and_demanded_of_a_vpc_of_the_user() {
    let mut world = made(&seed());
    reach(&mut world, &with_secondary());
    is_silent(&mut world, &with_secondary());
    goes(&mut world, &with_secondary());
    let spec = Spec { secondary_cidrs: vec!["10.67.0.0/24".to_owned()], ..in_theirs() };
    let mut world = World::new(Nature::PROMPT, 2);
    theirs(&mut world.cloud);
    let (reconciliation, rest) = world.run_later(&present(&spec));
    let problems = reconciliation.problems();
    assert_eq!((rest, problems[0].part), (Rest::Stuck, Part::SecondaryCidrs), "{problems:#?}");
    assert!(problems[0].message.contains("vpc-theirs does not have 10.67.0.0/24"));
}
