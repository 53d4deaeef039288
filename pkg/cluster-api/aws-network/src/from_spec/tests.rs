use super::*;
use crate::desired::{RuleSource, RuleTemplate};
use crate::identity::{Identity, Tags};
use crate::load_balancers::{HealthCheck, Scheme};
use crate::rule::Role;
use crate::spec::{
    BastionSpec, CniSpec, Dialect, HealthCheckSpec, IngressRuleSpec, LoadBalancerKind,
    LoadBalancerSpec,
};

mod balancers;

fn subnet(zone: &str, cidr: &str, is_public: bool) -> SubnetSpec {
    SubnetSpec {
        cidr_block: Some(cidr.to_owned()),
        availability_zone: Some(format!("us-east-2{zone}")),
        is_public,
        ..SubnetSpec::default()
    }
}

fn spec() -> Spec {
    Spec {
        identity: Identity {
            cluster: "c".to_owned(),
            owner_id: "owner".to_owned(),
            owner_tag: crate::DEFAULT_OWNER_TAG.to_owned(),
            adopt: false,
        },
        namespace: "default".to_owned(),
        dialect: Dialect::V1Beta2,
        region: "us-east-2".to_owned(),
        known_zones: Vec::new(),
        zones: vec!["us-east-2a".to_owned()],
        api_port: 443,
        additional_tags: Tags::new(),
        applied_tags: BTreeSet::new(),
        vpc_id: None,
        vpc_cidr: None,
        ipv6: false,
        secondary_cidrs: Vec::new(),
        subnets: vec![subnet("a", "10.0.0.0/24", true), subnet("a", "10.0.1.0/24", false)],
        nat_mode: NatMode::PerZone,
        nat_zone: None,
        cni: CniSpec::Calico,
        control_plane_rules: Vec::new(),
        node_rules: Vec::new(),
        node_port_cidr_blocks: Vec::new(),
        group_overrides: std::collections::BTreeMap::new(),
        keep_foreign_rules: false,
        prune_subnets: false,
        load_balancer: Some(LoadBalancerSpec {
            kind: LoadBalancerKind::Classic,
            name: None,
            scheme: Scheme::InternetFacing,
            subnets: Vec::new(),
            cross_zone: false,
            health_check: HealthCheckSpec::default(),
            additional_groups: Vec::new(),
            ingress_rules: Vec::new(),
            preserve_client_ip: false,
            ipv6_targets: None,
            listeners: Vec::new(),
        }),
        secondary_load_balancer: None,
        endpoint_published: false,
        allow_load_balancer_recreate: false,
        bastion: None,
    }
}

fn balancer(spec: &mut Spec) -> &mut LoadBalancerSpec {
    spec.load_balancer.as_mut().unwrap()
}

fn errors(change: impl FnOnce(&mut Spec)) -> Vec<String> {
    let mut spec = spec();
    change(&mut spec);
    Desired::from_spec(&spec).map(|_| ()).unwrap_err().iter().map(ToString::to_string).collect()
}

fn desired(change: impl FnOnce(&mut Spec)) -> Desired {
    let mut spec = spec();
    change(&mut spec);
    Desired::from_spec(&spec).unwrap()
}

fn rule(description: &str, source: &str) -> IngressRuleSpec {
    IngressRuleSpec {
        description: description.to_owned(),
        protocol: "tcp".to_owned(),
        from_port: 1,
        to_port: 2,
        cidr_blocks: vec![source.to_owned()],
        ..IngressRuleSpec::default()
    }
}

/// A change that makes a spec wrong, the path of what is said about it, and a part of that.
type Case = (fn(&mut Spec), &'static str, &'static str);

const WRONG: [Case; 24] = [
    (
        |spec| spec.secondary_cidrs = vec!["10.0.0.0/16".to_owned()],
        "spec.network.vpc.secondaryCidrBlocks[0].ipv4CidrBlock",
        "10.0.0.0/16 overlaps 10.0.0.0/16 of the VPC",
    ),
    (
        |spec| {
            spec.secondary_cidrs = vec!["10.1.0.0/16".to_owned()];
            spec.subnets[0] = subnet("a", "10.2.0.0/24", true);
        },
        "subnets[0].cidrBlock",
        "10.2.0.0/24 is not inside",
    ),
    (
        |spec| {
            (spec.ipv6, spec.subnets[0].ipv6_cidr_block) = (true, Some("fd00::/56".to_owned()));
        },
        "subnets[0].ipv6CidrBlock",
        "fd00::/56 is not an IPv6 CIDR of /64",
    ),
    (
        |spec| {
            spec.ipv6 = true;
            let same = Some("2600:db8::/64".to_owned());
            spec.subnets.iter_mut().for_each(|subnet| subnet.ipv6_cidr_block = same.clone());
        },
        "subnets[1].ipv6CidrBlock",
        "overlaps 2600:db8::/64 of",
    ),
    (|spec| spec.vpc_cidr = Some("10.0.0.0".to_owned()), "spec.network.vpc.cidrBlock", "10.0.0.0"),
    (
        |spec| spec.vpc_cidr = Some("10.0.0.0/8".to_owned()),
        "spec.network.vpc.cidrBlock",
        "/16 to /28",
    ),
    (|spec| spec.vpc_cidr = Some("fd00::/64".to_owned()), "spec.network.vpc.cidrBlock", "IPv4"),
    (
        |spec| spec.vpc_cidr = Some("10.9.0.0/16".to_owned()),
        "subnets[0].cidrBlock",
        "not inside the VPC's 10.9.0.0/16",
    ),
    (
        |spec| spec.subnets[1] = subnet("a", "10.0.0.128/25", false),
        "subnets[1].cidrBlock",
        "overlaps 10.0.0.0/24 of",
    ),
    (
        |spec| spec.subnets[0] = subnet("a", "10.0.0.0/29", true),
        "subnets[0].cidrBlock",
        "/16 to /28",
    ),
    (
        |spec| spec.subnets[0].availability_zone = Some("eu-west-1a".to_owned()),
        "subnets[0].availabilityZone",
        "region",
    ),
    (
        |spec| spec.subnets[0].availability_zone = None,
        "subnets[0].availabilityZone",
        "needs a zone",
    ),
    (|spec| spec.subnets[0].cidr_block = None, "subnets[0]", "neither cidrBlock nor id"),
    (
        |spec| {
            spec.subnets.remove(0);
        },
        "spec.network.natGateways",
        "needs a public subnet",
    ),
    (
        |spec| {
            (spec.nat_mode, spec.nat_zone) = (NatMode::Single, Some("us-east-2b".to_owned()));
        },
        "natGateways.availabilityZone",
        "\"us-east-2b\" has no public subnet",
    ),
    (
        |spec| drop(spec.additional_tags.insert("aws:x".to_owned(), String::new())),
        "spec.additionalTags",
        "reserved",
    ),
    (
        |spec| drop(spec.additional_tags.insert("a*b".to_owned(), String::new())),
        "spec.additionalTags",
        "only letters",
    ),
    (
        |spec| drop(spec.additional_tags.insert("k".repeat(129), String::new())),
        "spec.additionalTags",
        "128",
    ),
    (
        |spec| drop(spec.subnets[1].tags.insert("k".to_owned(), "v".repeat(257))),
        "subnets[1].tags",
        "256",
    ),
    (
        |spec| balancer(spec).name = Some("-edge".to_owned()),
        "controlPlaneLoadBalancer.name",
        "inner hyphens",
    ),
    (|spec| balancer(spec).name = Some("n".repeat(33)), "controlPlaneLoadBalancer.name", "1 to 32"),
    (
        |spec| balancer(spec).health_check.protocol = Some("UDP".to_owned()),
        "healthCheckProtocol",
        "not one of TCP",
    ),
    (
        |spec| balancer(spec).health_check.timeout = Some(5),
        "healthCheck",
        "be less than the interval",
    ),
    (
        |spec| {
            spec.node_rules = vec![IngressRuleSpec { cidr_blocks: Vec::new(), ..rule("", "") }];
        },
        "NodeIngressRules[0]",
        "no source",
    ),
];

#[test]
fn what_is_wrong_with_a_spec_is_said_with_its_path() {
    for (change, path, problem) in WRONG {
        let errors = errors(change);
        let is_it = |text: &String| text.contains(path) && text.contains(problem);
        assert!(errors.iter().any(is_it), "{path}: {problem} is not in {errors:?}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let errors = errors(|spec| {
        spec.vpc_cidr = Some("x".to_owned());
        spec.node_port_cidr_blocks = vec!["y".to_owned()];
        spec.node_rules = vec![IngressRuleSpec {
            from_port: 9,
            protocol: String::new(),
            source_roles: vec![Role::Node],
            ..rule("", "10.0.0.0/8")
        }];
    });
    assert_eq!(errors.len(), 5, "{errors:#?}");
}

#[test]
fn an_internet_facing_load_balancer_needs_a_public_subnet_and_an_internal_one_does_not() {
    let private_only = |spec: &mut Spec| {
        spec.subnets.remove(0);
        spec.nat_mode = NatMode::None;
    };
    assert_eq!(errors(private_only).len(), 1);
    desired(|spec| {
        private_only(spec);
        balancer(spec).scheme = Scheme::Internal;
    });
}

#[test]
fn a_vpc_that_exists_needs_no_sizes_and_no_nat_gateways() {
    let desired = desired(|spec| {
        spec.vpc_id = Some("vpc-1".to_owned());
        spec.subnets =
            vec![SubnetSpec { id: Some("subnet-f0000001".to_owned()), ..SubnetSpec::default() }];
    });
    assert_eq!(desired.subnets[0].id.as_deref(), Some("subnet-f0000001"));
    assert_eq!(desired.subnets[0].cidr, None);
}

#[test]
fn an_id_that_is_none_is_the_name_of_a_new_subnet() {
    for (text, id, name) in [
        ("front", None, Some("front")),
        ("subnet-zone-2", None, Some("subnet-zone-2")),
        ("subnet-", None, Some("subnet-")),
        ("subnet-0a1b2c3d", Some("subnet-0a1b2c3d"), None),
        ("subnet-0a1b2c3d4e5f67890", Some("subnet-0a1b2c3d4e5f67890"), None),
        ("subnet-a", None, Some("subnet-a")),
        ("subnet-1", None, Some("subnet-1")),
        ("subnet-0A1B2C3D", None, Some("subnet-0A1B2C3D")),
        ("subnet-0a1b2c3d4", None, Some("subnet-0a1b2c3d4")),
    ] {
        let desired = desired(|spec| spec.subnets[0].id = Some(text.to_owned()));
        let subnet = &desired.subnets[0];
        assert_eq!((subnet.id.as_deref(), subnet.name.as_deref()), (id, name), "{text}");
    }
}

#[test]
fn a_spec_without_subnets_gets_the_default_ones() {
    assert_eq!(desired(|spec| spec.subnets.clear()).subnets.len(), 2);
    assert_eq!(
        errors(|spec| {
            spec.subnets.clear();
            spec.vpc_cidr = Some("10.0.0.0/28".to_owned());
        })
        .len(),
        1,
        "what lies in subnets that cannot be chosen is not judged"
    );
}

#[test]
fn health_checks_have_the_defaults_of_their_dialect_and_kind() {
    let check = |protocol: &str, path: Option<&str>, numbers: [u32; 4]| HealthCheck {
        protocol: protocol.to_owned(),
        port: 6443,
        path: path.map(str::to_owned),
        interval: numbers[0],
        timeout: numbers[1],
        healthy: numbers[2],
        unhealthy: numbers[3],
    };
    let of = |change: fn(&mut Spec)| desired(change).load_balancer.unwrap().health_check;
    assert_eq!(of(|spec| spec.dialect = Dialect::V1Alpha2), check("SSL", None, [10, 5, 5, 3]));
    assert_eq!(of(|_| {}), check("TCP", None, [5, 4, 2, 6]));
    assert_eq!(
        of(|spec| {
            spec.dialect = Dialect::V1Alpha2;
            balancer(spec).kind = LoadBalancerKind::Network;
        }),
        check("TCP", None, [5, 4, 2, 6])
    );
    assert_eq!(
        of(|spec| {
            balancer(spec).health_check.protocol = Some("https".to_owned());
            balancer(spec).health_check.interval = Some(30);
        }),
        check("HTTPS", Some("/readyz"), [30, 4, 2, 6])
    );
}

#[test]
fn names_of_load_balancers_are_those_of_upstream_for_their_kind() {
    let name = |kind| desired(|spec| balancer(spec).kind = kind).load_balancer.unwrap().name;
    assert_eq!(name(LoadBalancerKind::Classic), "c-apiserver");
    assert_eq!(name(LoadBalancerKind::Network), "default-c-apiserver");
    let given = desired(|spec| balancer(spec).name = Some("mine".to_owned()));
    assert_eq!(given.load_balancer.unwrap().name, "mine");
}

fn descriptions(desired: &Desired, role: Role) -> Vec<String> {
    let one = |rule: &RuleTemplate| {
        format!("{} {} {}-{}", rule.description, rule.protocol, rule.ports.0, rule.ports.1)
    };
    desired.groups.rules.get(&role).map(|rules| rules.iter().map(one).collect()).unwrap_or_default()
}

#[test]
fn groups_open_what_kubernetes_and_the_network_plug_in_need() {
    let plain = desired(|_| {});
    assert_eq!(
        descriptions(&plain, Role::ControlPlane),
        [
            "Kubernetes API tcp 6443-6443",
            "etcd tcp 2379-2379",
            "etcd peer tcp 2380-2380",
            "bgp (calico) tcp 179-179",
            "IP-in-IP (calico) 4 -1--1",
        ]
    );
    assert_eq!(
        descriptions(&plain, Role::Node),
        [
            "Node Port Services tcp 30000-32767",
            "Kubelet API tcp 10250-10250",
            "bgp (calico) tcp 179-179",
            "IP-in-IP (calico) 4 -1--1",
        ]
    );
    assert_eq!(descriptions(&plain, Role::ApiServerLb), ["Kubernetes API tcp 443-443"]);
    assert!(descriptions(&plain, Role::Lb).is_empty());
    assert!(!plain.groups.rules.contains_key(&Role::Bastion));
    let with = desired(|spec| {
        spec.bastion = Some(BastionSpec::default());
        spec.cni = CniSpec::AmazonVpc;
        balancer(spec).kind = LoadBalancerKind::Network;
        spec.control_plane_rules = vec![rule("more", "10.0.0.0/8")];
    });
    assert_eq!(descriptions(&with, Role::Bastion), ["SSH tcp 22-22"]);
    assert_eq!(
        descriptions(&with, Role::ControlPlane)[..],
        [
            "SSH tcp 22-22",
            "Kubernetes API tcp 6443-6443",
            "etcd tcp 2379-2379",
            "etcd peer tcp 2380-2380",
            "pods (amazon-vpc) -1 -1--1",
            "more tcp 1-2",
        ]
    );
    let arrives = ["Allow NLB traffic to the control plane instances. tcp 6443-6443"];
    assert_eq!(descriptions(&with, Role::Lb), arrives, "where it arrives");
}

#[test]
fn who_limits_access_to_the_api_server_keeps_it_for_the_cluster_itself() {
    let sources = |scheme| {
        let desired = desired(|spec| {
            balancer(spec).scheme = scheme;
            balancer(spec).ingress_rules = vec![rule("office", "192.0.2.0/24")];
        });
        let rules = desired.groups.rules[&Role::ApiServerLb].clone();
        rules.into_iter().flat_map(|rule| rule.sources).collect::<Vec<_>>()
    };
    let office = RuleSource::Cidr(cidr::parse("192.0.2.0/24").unwrap());
    let inside = [RuleSource::NatAddresses, RuleSource::VpcIpv6, office.clone()];
    assert_eq!(sources(Scheme::InternetFacing), inside);
    assert_eq!(sources(Scheme::Internal), [RuleSource::Vpc, office]);
}

#[test]
fn tags_that_the_spec_has_again_are_not_retired() {
    let desired = desired(|spec| {
        spec.applied_tags = ["old", "kept"].map(str::to_owned).into();
        spec.additional_tags.insert("kept".to_owned(), "1".to_owned());
    });
    assert_eq!(desired.retired_tags, BTreeSet::from(["old".to_owned()]));
}
