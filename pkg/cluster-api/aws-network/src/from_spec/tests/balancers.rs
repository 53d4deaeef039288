//! A cluster with two load balancers.

use super::{balancer, desired, rule, spec};
use crate::desired::RuleSource;
use crate::load_balancers::Scheme;
use crate::rule::Role;
use crate::spec::{
    Dialect, IngressRuleSpec, ListenerSpec, LoadBalancerKind, LoadBalancerSpec, NatMode,
};

fn second(scheme: Scheme) -> Box<LoadBalancerSpec> {
    Box::new(LoadBalancerSpec {
        kind: LoadBalancerKind::Network,
        name: Some("second".to_owned()),
        scheme,
        ..spec().load_balancer.unwrap()
    })
}

#[test]
fn the_ingress_rules_of_both_load_balancers_go_to_the_group_of_both() {
    let of = |rules: [Vec<IngressRuleSpec>; 2]| {
        let [first, second_rules] = rules;
        let desired = desired(|spec| {
            balancer(spec).ingress_rules = first;
            let second = second(Scheme::Internal);
            spec.secondary_load_balancer =
                Some(Box::new(LoadBalancerSpec { ingress_rules: second_rules, ..*second }));
        });
        let rules = desired.groups.rules[&Role::ApiServerLb].clone();
        rules.into_iter().map(|rule| (rule.description, rule.sources)).collect::<Vec<_>>()
    };
    let cidr = |text: &str| RuleSource::Cidr(cidr::parse(text).unwrap());
    let api = |sources: Vec<RuleSource>| ("Kubernetes API".to_owned(), sources);
    assert_eq!(of([Vec::new(), Vec::new()]), [api(vec![RuleSource::Everybody])]);
    let inside = api(vec![RuleSource::NatAddresses, RuleSource::VpcIpv6, RuleSource::Vpc]);
    let office = || vec![rule("office", "192.0.2.0/24")];
    let of_office = ("office".to_owned(), vec![cidr("192.0.2.0/24")]);
    assert_eq!(of([office(), Vec::new()]), [inside.clone(), of_office.clone()]);
    let nats =
        IngressRuleSpec { cidr_blocks: Vec::new(), from_nat_gateways: true, ..rule("nats", "") };
    let without = IngressRuleSpec { cidr_blocks: Vec::new(), ..rule("own", "") };
    assert_eq!(
        of([office(), vec![nats, without]]),
        [
            inside,
            of_office,
            ("nats".to_owned(), vec![RuleSource::NatAddresses]),
            ("own".to_owned(), vec![RuleSource::Role(Role::ControlPlane)]),
        ]
    );
}

#[test]
fn the_group_of_instances_opens_the_ports_of_both_network_load_balancers() {
    let desired = desired(|spec| {
        let mut second = second(Scheme::Internal);
        second.listeners = vec![ListenerSpec { port: 8443, ..ListenerSpec::default() }];
        second.preserve_client_ip = true;
        balancer(spec).kind = LoadBalancerKind::Network;
        spec.secondary_load_balancer = Some(second);
    });
    let rules = desired.groups.rules[&Role::Lb].iter();
    let ports: Vec<_> = rules.map(|rule| (rule.ports.0, rule.sources.clone())).collect();
    let everybody = || vec![RuleSource::Everybody];
    let expected = [(6443, vec![RuleSource::Vpc]), (6443, everybody()), (8443, everybody())];
    assert_eq!(ports, expected);
}

/// Its name is not the endpoint, so that it may be replaced.
#[test]
fn a_secondary_load_balancer_has_the_defaults_of_a_network_load_balancer() {
    let desired = desired(|spec| {
        spec.dialect = Dialect::V1Alpha2;
        spec.endpoint_published = true;
        spec.secondary_load_balancer = Some(second(Scheme::Internal));
    });
    let found = desired.secondary_load_balancer.unwrap();
    assert_eq!((&*found.name, found.port, found.may_be_created), ("second", 443, true));
    assert_eq!((&*found.health_check.protocol, found.health_check.interval), ("TCP", 5));
    assert!(!desired.load_balancer.unwrap().may_be_created);
}

/// AWS has no security groups for network load balancers there.
#[test]
fn in_some_isolated_regions_only_a_classic_load_balancer_has_security_groups() {
    let takes = |region: &str, kind| {
        let desired = desired(|spec| {
            region.clone_into(&mut spec.region);
            spec.nat_mode = NatMode::None;
            for subnet in &mut spec.subnets {
                subnet.availability_zone = Some(format!("{region}a"));
            }
            balancer(spec).kind = kind;
        });
        desired.load_balancer.unwrap().takes_groups
    };
    for region in ["us-iso-east-1", "us-iso-west-1", "us-isob-east-1"] {
        assert!(takes(region, LoadBalancerKind::Classic), "{region}");
        assert!(!takes(region, LoadBalancerKind::Network), "{region}");
    }
    assert!(takes("us-east-2", LoadBalancerKind::Network));
}
