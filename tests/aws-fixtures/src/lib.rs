//! Clusters as the tests of `aws-network` on a model of AWS, and those of `aws` on moto, want them.
//! Crates name it under `[dev-dependencies]` only.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use aws_network::{
    BastionSpec, CniSpec, DEFAULT_OWNER_TAG, Desired, Dialect, Goal, HealthCheckSpec, Identity,
    ListenerSpec, LoadBalancerKind, LoadBalancerSpec, NatMode, Removal, Scheme, ServiceResources,
    Spec, SubnetSpec, Tags, Zone, ZoneType, default_load_balancer_name,
};

/// The name of the cluster that everybody starts with.
pub const CLUSTER: &str = "testnetwork3";

/// The local zone of `us-east-2` in tests, after the name of the region.
pub const LOCAL: &str = "-lcl-1a";

/// The wavelength zone of `us-east-2` in tests, after the name of the region.
pub const WAVELENGTH: &str = "-wl1-cmh-wlz-1";

/// The identity of the cluster.
pub fn identity() -> Identity {
    Identity {
        cluster: CLUSTER.to_owned(),
        owner_id: "5d9f0c8e-owner".to_owned(),
        owner_tag: DEFAULT_OWNER_TAG.to_owned(),
        adopt: false,
    }
}

/// A subnet in a zone of `us-east-2`.
pub fn subnet(zone: &str, cidr: &str, is_public: bool) -> SubnetSpec {
    SubnetSpec {
        id: None,
        cidr_block: Some(cidr.to_owned()),
        availability_zone: Some(format!("us-east-2{zone}")),
        is_public,
        ..SubnetSpec::default()
    }
}

/// A load balancer with only its kind set.
pub fn load_balancer(kind: LoadBalancerKind) -> LoadBalancerSpec {
    LoadBalancerSpec {
        kind,
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
    }
}

/// A secondary load balancer, internal and with an additional listener.
pub fn second_load_balancer() -> LoadBalancerSpec {
    LoadBalancerSpec {
        name: Some("second".to_owned()),
        scheme: Scheme::Internal,
        listeners: vec![ListenerSpec { port: 8443, ..ListenerSpec::default() }],
        ..load_balancer(LoadBalancerKind::Network)
    }
}

/// Six subnets in three zones, a bastion, a classic load balancer.
pub fn seed() -> Spec {
    Spec {
        identity: identity(),
        namespace: "default".to_owned(),
        dialect: Dialect::V1Alpha2,
        region: "us-east-2".to_owned(),
        zones: ["a", "b", "c"].map(|zone| format!("us-east-2{zone}")).to_vec(),
        known_zones: Vec::new(),
        api_port: 6443,
        additional_tags: Tags::new(),
        applied_tags: BTreeSet::new(),
        vpc_id: None,
        vpc_cidr: Some("10.66.0.0/24".to_owned()),
        ipv6: false,
        secondary_cidrs: Vec::new(),
        subnets: vec![
            subnet("a", "10.66.0.0/27", true),
            subnet("a", "10.66.0.32/27", false),
            subnet("b", "10.66.0.64/27", true),
            subnet("b", "10.66.0.96/27", false),
            subnet("c", "10.66.0.128/27", true),
            subnet("c", "10.66.0.160/27", false),
        ],
        nat_mode: NatMode::PerZone,
        nat_zone: None,
        cni: CniSpec::AmazonVpc,
        control_plane_rules: Vec::new(),
        node_rules: Vec::new(),
        node_port_cidr_blocks: Vec::new(),
        group_overrides: BTreeMap::new(),
        keep_foreign_rules: false,
        prune_subnets: false,
        load_balancer: Some(load_balancer(LoadBalancerKind::Classic)),
        secondary_load_balancer: None,
        endpoint_published: false,
        allow_load_balancer_recreate: false,
        bastion: Some(BastionSpec { key: Some("guohao".to_owned()), ..BastionSpec::default() }),
    }
}

/// The cluster with this policy for its NAT gateways.
pub fn with_nats(nat_mode: NatMode) -> Spec {
    Spec { nat_mode, ..seed() }
}

/// The cluster with IPv6 in each subnet, and a network load balancer.
pub fn dual_stack() -> Spec {
    let mut spec = Spec { ipv6: true, ..seed() };
    spec.subnets.iter_mut().for_each(|subnet| subnet.is_ipv6 = true);
    spec.load_balancer = Some(load_balancer(LoadBalancerKind::Network));
    spec
}

/// Public and private subnets in a local zone and in a wavelength zone besides those of the cluster.
pub fn edge() -> Spec {
    let zone = |name: &str, zone_type, parent: &str| Zone {
        name: format!("us-east-2{name}"),
        zone_type,
        parent: Some(format!("us-east-2{parent}")),
    };
    let known_zones = vec![
        zone(LOCAL, ZoneType::LocalZone, "b"),
        zone(WAVELENGTH, ZoneType::WavelengthZone, "c"),
    ];
    let mut spec = Spec { known_zones, ..seed() };
    spec.subnets.extend([
        subnet(LOCAL, "10.66.0.192/28", true),
        subnet(LOCAL, "10.66.0.208/28", false),
        subnet(WAVELENGTH, "10.66.0.224/28", true),
        subnet(WAVELENGTH, "10.66.0.240/28", false),
    ]);
    spec
}

/// The goal that the cluster exists as its spec says.
///
/// # Panics
/// The spec cannot be followed.
pub fn present(spec: &Spec) -> Goal {
    Goal::Present(Box::new(Desired::from_spec(spec).unwrap()))
}

/// Nothing of it shall be left.
pub fn absent(spec: &Spec) -> Goal {
    let cluster = &spec.identity.cluster;
    Goal::Absent(Removal {
        identity: spec.identity.clone(),
        vpc_id: spec.vpc_id.clone(),
        load_balancer_names: vec![
            default_load_balancer_name(LoadBalancerKind::Classic, &spec.namespace, cluster),
            default_load_balancer_name(LoadBalancerKind::Network, &spec.namespace, cluster),
        ],
        named_groups: spec.group_overrides.values().cloned().collect(),
        service_resources: ServiceResources::GoWithOurVpc,
        deletes_free_interfaces: false,
    })
}

/// The inventory of the cluster with so many NAT gateways: how many lines begin with each
/// word.
pub fn counts(nat_gateways: usize) -> [(&'static str, usize); 9] {
    [
        ("vpc", 1),
        ("subnet", 6),
        ("igw", 1),
        ("eip", nat_gateways),
        ("nat", nat_gateways),
        ("table", 6),
        ("group", 5),
        ("instance", 1),
        ("elb", 1),
    ]
}

/// Counts the lines of an inventory by their first word.
pub fn counted(lines: &[String]) -> [(&'static str, usize); 9] {
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    counts(0).map(|(kind, _)| (kind, count(kind)))
}
