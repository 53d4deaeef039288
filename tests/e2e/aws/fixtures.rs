//! The cluster that everybody starts with: six subnets in three zones, a bastion, a classic load
//! balancer.

use std::collections::{BTreeMap, BTreeSet};

use aws_network::{
    BastionSpec, CniSpec, DEFAULT_OWNER_TAG, Desired, Dialect, Goal, HealthCheckSpec, Identity,
    LoadBalancerKind, LoadBalancerSpec, NatMode, Removal, Scheme, Spec, SubnetSpec, Tags,
    load_balancer_name,
};

pub(crate) const CLUSTER: &str = "testnetwork3";

pub(crate) fn identity() -> Identity {
    Identity {
        cluster: CLUSTER.to_owned(),
        owner_id: "5d9f0c8e-owner".to_owned(),
        owner_tag: DEFAULT_OWNER_TAG.to_owned(),
        adopt: false,
    }
}

pub(crate) fn load_balancer(kind: LoadBalancerKind) -> LoadBalancerSpec {
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
    }
}

/// A public and a private subnet in each zone.
fn subnets() -> Vec<SubnetSpec> {
    let places = [("a", 0, true), ("a", 32, false), ("b", 64, true)];
    let places = places.into_iter().chain([("b", 96, false), ("c", 128, true), ("c", 160, false)]);
    let subnet = |(zone, start, is_public)| SubnetSpec {
        id: None,
        cidr_block: Some(format!("10.66.0.{start}/27")),
        availability_zone: Some(format!("us-east-2{zone}")),
        is_public,
        tags: Tags::new(),
    };
    places.map(subnet).collect()
}

pub(crate) fn seed(nat_mode: NatMode) -> Spec {
    Spec {
        identity: identity(),
        namespace: "default".to_owned(),
        dialect: Dialect::V1Alpha2,
        region: "us-east-2".to_owned(),
        zones: ["a", "b", "c"].map(|zone| format!("us-east-2{zone}")).to_vec(),
        api_port: 6443,
        additional_tags: Tags::new(),
        applied_tags: BTreeSet::new(),
        vpc_id: None,
        vpc_cidr: Some("10.66.0.0/24".to_owned()),
        subnets: subnets(),
        nat_mode,
        nat_zone: None,
        cni: CniSpec::AmazonVpc,
        control_plane_rules: Vec::new(),
        node_rules: Vec::new(),
        node_port_cidr_blocks: Vec::new(),
        group_overrides: BTreeMap::new(),
        keep_foreign_rules: false,
        prune_subnets: false,
        load_balancer: Some(load_balancer(LoadBalancerKind::Classic)),
        endpoint_published: false,
        allow_load_balancer_recreate: false,
        bastion: Some(BastionSpec { key: Some("guohao".to_owned()), ..BastionSpec::default() }),
    }
}

pub(crate) fn present(spec: &Spec) -> Goal {
    Goal::Present(Box::new(Desired::from_spec(spec).unwrap()))
}

pub(crate) fn absent(spec: &Spec) -> Goal {
    let cluster = &spec.identity.cluster;
    Goal::Absent(Removal {
        identity: spec.identity.clone(),
        vpc_id: spec.vpc_id.clone(),
        load_balancer_names: vec![
            load_balancer_name(cluster),
            load_balancer_name(&format!("{}-{cluster}", spec.namespace)),
        ],
        collects_external: true,
        deletes_free_interfaces: false,
    })
}
