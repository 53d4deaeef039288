use aws_network::{Memory, NatMode, NatPolicy, Record, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::api::Dialect;

fn options() -> AwsOptions {
    AwsOptions {
        concurrency: 1,
        deep_check_period: std::time::Duration::from_secs(3600),
        default_nat_mode: NatMode::Single,
        checks_dns: true,
        owner_tag_key: "owner".to_owned(),
        keep_foreign_rules: false,
        prune_subnets: false,
        endpoints: std::collections::BTreeMap::new(),
        contract: crate::contract::Contract::default(),
        mirror_ids: false,
        leak_scan_period: None,
        leak_scan_regions: BTreeSet::new(),
        plan_only: false,
        rates: aws::Rates::default(),
        idle_read_qps: 2.0,
    }
}

fn object(annotations: &Value, spec: &Value) -> Object<AwsCluster> {
    Object::read(json!({
        "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1", "annotations": annotations},
        "spec": spec,
    }))
    .unwrap()
}

fn cluster(annotations: &Value, network: &Value) -> Object<Cluster> {
    Object::read(json!({
        "metadata": {"name": "c", "namespace": "ns", "uid": "w", "resourceVersion": "1", "annotations": annotations},
        "spec": {"clusterNetwork": network},
    }))
    .unwrap()
}

fn wanted(
    object: &Object<AwsCluster>,
    cluster: &Object<Cluster>,
) -> Result<Wanted, Vec<SpecError>> {
    let owner = Owner { name: "c".to_owned(), dialect: Dialect::V1Alpha2, cluster: None };
    let of_default_subnets = vec!["us-east-2a".to_owned()];
    let zones = Zones { of_default_subnets, ..Zones::default() };
    present(object, &owner, cluster, zones, &options())
}

#[test]
fn the_port_the_plug_in_and_the_default_nat_mode_come_from_cluster_and_flags() {
    let plain = object(&json!({}), &json!({"region": "us-east-2"}));
    let port = cluster(
        &json!({"cluster.k8s.io/network-cni": "AmazonVPC"}),
        &json!({"apiServerPort": 443}),
    );
    let read = wanted(&plain, &port).unwrap();
    assert_eq!(read.api_port, 443);
    assert_eq!(read.desired.load_balancer.as_ref().unwrap().port, 443);
    assert_eq!(read.desired.nat, NatPolicy::Single(None));
    let everything = |wanted: &Wanted| {
        let rules = wanted.desired.groups.rules.values().flatten();
        rules.filter(|rule| rule.protocol == "-1").flat_map(|rule| rule.sources.clone()).count()
    };
    assert!(everything(&read) > 0, "Pods of the VPC reach everything");
    let calico = wanted(&plain, &cluster(&json!({}), &Value::Null)).unwrap();
    assert_eq!((calico.api_port, everything(&calico)), (6443, 0));
    let errors =
        wanted(&plain, &cluster(&json!({}), &json!({"apiServerPort": 70000}))).unwrap_err();
    assert!(errors[0].to_string().contains("70000 is not a port"), "{errors:?}");
}

#[test]
fn the_port_that_was_published_stays_whatever_the_cluster_says_later() {
    let spec = json!({"region": "us-east-2", "controlPlaneEndpoint": {"host": "h", "port": 6443}});
    let published = object(&json!({}), &spec);
    let changed = cluster(&json!({}), &json!({"apiServerPort": 8443}));
    let read = wanted(&published, &changed).unwrap();
    assert_eq!((read.api_port, read.desired.load_balancer.unwrap().port), (6443, 6443));
    let given =
        "spec.clusterNetwork.apiServerPort of the Cluster (the published endpoint has port 6443)";
    assert_eq!(read.unsupported, [given]);
    for network in [json!({"apiServerPort": 6443}), Value::Null] {
        let read = wanted(&published, &cluster(&json!({}), &network)).unwrap();
        assert_eq!((read.api_port, read.unsupported.len()), (6443, 0));
    }
}

#[test]
fn the_identity_on_aws_is_that_of_the_annotation_and_before_there_is_one_the_uid() {
    let plain = object(&json!({}), &json!({}));
    let held = object(
        &json!({"aws.cluster.x-k8s.io/owner-id": "first", "aws.cluster.x-k8s.io/adopt": "true"}),
        &json!({}),
    );
    let who = |object| {
        let identity = identity(object, "c", &options());
        (identity.owner_id, identity.owner_tag, identity.adopt)
    };
    assert_eq!(who(&plain), ("u".to_owned(), "owner".to_owned(), false));
    assert_eq!(who(&held), ("first".to_owned(), "owner".to_owned(), true));
}

#[test]
fn a_removal_needs_nothing_of_a_spec_and_knows_every_name_that_a_load_balancer_may_have() {
    let broken = json!({"network": {"vpc": {"id": ""}, "subnets": [{"cidrBlock": "no CIDR"}]}});
    let removal = absent(&object(&json!({}), &broken), "c", &options());
    assert_eq!(removal.load_balancer_names, ["c-apiserver", "ns-c-apiserver"]);
    assert_eq!(removal.vpc_id, None);
    assert_eq!(removal.service_resources, ServiceResources::GoWithOurVpc);
    assert!(!removal.deletes_free_interfaces);
    let given = object(
        &json!({"aws.cluster.x-k8s.io/external-resource-gc": "false",
            "aws.cluster.x-k8s.io/force-delete-enis": "true"}),
        &json!({"networkSpec": {"vpc": {"id": "vpc-1"}}, "controlPlaneLoadBalancer": {"name": "own"}}),
    );
    let removal = absent(&given, "c", &options());
    assert_eq!(removal.load_balancer_names[0], "own");
    assert_eq!(removal.vpc_id.as_deref(), Some("vpc-1"));
    assert!(removal.deletes_free_interfaces);
    assert_eq!(removal.service_resources, ServiceResources::Stay);
    let given = object(
        &json!({"aws.cluster.x-k8s.io/external-resource-gc": "true"}),
        &json!({"network": {"securityGroupOverrides": {"node": "sg-1"}},
            "controlPlaneLoadBalancer": {"additionalSecurityGroups": ["sg-2"]},
            "secondaryControlPlaneLoadBalancer": {"name": "second", "additionalSecurityGroups": ["sg-3"]}}),
    );
    let removal = absent(&given, "c", &options());
    assert_eq!(removal.service_resources, ServiceResources::Go);
    assert_eq!(Vec::from_iter(&removal.named_groups), ["sg-1", "sg-2", "sg-3"]);
    assert_eq!(removal.load_balancer_names[0], "second");
}

#[test]
fn tags_that_were_applied_are_retired_when_the_spec_does_not_name_them_any_more() {
    let noted = json!({"aws.cluster.x-k8s.io/last-applied-tags": "a\nb"});
    let object =
        object(&noted, &json!({"region": "us-east-2", "additionalTags": {"b": "1", "c": "2"}}));
    let read = wanted(&object, &cluster(&json!({}), &Value::Null)).unwrap();
    assert_eq!(read.desired.retired_tags, BTreeSet::from(["a".to_owned()]));
}

#[test]
fn whether_a_name_has_to_resolve_is_said_by_the_spec_and_else_by_the_flag() {
    let checks = |spec: Value| checks_dns(&object(&json!({}), &spec), &options());
    assert!(checks(json!({})));
    assert!(checks(json!({"controlPlaneLoadBalancer": {"dnsResolutionCheck": "Enabled"}})));
    assert!(!checks(json!({"controlPlaneLoadBalancer": {"dnsResolutionCheck": "None"}})));
}

#[test]
fn a_load_balancer_that_exists_is_named_while_the_spec_disables_it() {
    let disabled = json!({"region": "us-east-2", "controlPlaneLoadBalancer": {"loadBalancerType": "disabled"}});
    let mut object = object(&json!({}), &disabled);
    let cluster = cluster(&json!({}), &Value::Null);
    let read = wanted(&object, &cluster).unwrap();
    assert_eq!((read.desired.load_balancer, read.unsupported.len()), (None, 0));
    let mut memory = Memory::default();
    let record = Record { since: Timestamp(1), id: Some("c-apiserver".to_owned()), attempt: 0 };
    memory.records.insert(LogicalId::LoadBalancer, record);
    stored_memory::write(&memory, &mut object.status);
    let read = wanted(&object, &cluster).unwrap();
    let given = "spec.controlPlaneLoadBalancer.loadBalancerType: load balancer c-apiserver was created: \
                 it stays as it is until the AWSCluster is deleted; set the earlier type again";
    assert_eq!((read.desired.load_balancer, read.unsupported), (None, vec![given.to_owned()]));
}

#[test]
fn what_is_not_built_is_refused_before_the_first_write_and_only_reported_later() {
    let spec = json!({"region": "us-east-2", "network": {"vpc": {"ipamPool": {"id": "p"}}}});
    let mut object = object(&json!({}), &spec);
    let errors = wanted(&object, &cluster(&json!({}), &Value::Null)).unwrap_err();
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["cannot use spec.network.vpc.ipamPool: not supported yet"]);
    object.status.pending_creates.insert("vpc".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    let read = wanted(&object, &cluster(&json!({}), &Value::Null)).unwrap();
    assert_eq!(read.unsupported, ["spec.network.vpc.ipamPool"]);
}

/// Earlier releases only reported these fields.
#[test]
fn what_contradicts_aws_about_edge_zones_stops_no_cluster_that_was_begun() {
    let far = |more: Value| {
        let mut subnet = json!({"cidrBlock": "10.0.1.0/24", "availabilityZone": "us-east-2-lcl-1a", "isPublic": true});
        subnet.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        subnet
    };
    let near =
        json!({"cidrBlock": "10.0.2.0/24", "availabilityZone": "us-east-2a", "isPublic": true});
    let single = json!({"mode": "Single", "availabilityZone": "us-east-2-lcl-1a"});
    let unknown = json!({"subnets": [near, far(json!({"zoneType": "moon-zone"}))]});
    let spec = json!({"region": "us-east-2", "network": unknown});
    let errors =
        wanted(&object(&json!({}), &spec), &cluster(&json!({}), &Value::Null)).unwrap_err();
    assert!(
        errors[0].to_string().contains("\"moon-zone\" is not availability-zone or"),
        "{errors:?}"
    );
    for (network, count) in [
        (json!({"subnets": [near, far(json!({"zoneType": "wavelength-zone"}))]}), 1),
        (unknown, 1),
        (
            json!({"subnets": [far(json!({})), {"zoneType": "local-zone", "cidrBlock": "10.0.2.0/24",
            "availabilityZone": "us-east-2a", "isPublic": true, "parentZoneName": "us-east-2b"}]}),
            2,
        ),
        (json!({"vpc": {"ipv6": {}}, "subnets": [near, far(json!({"isIpv6": true}))]}), 1),
        (json!({"natGateways": single, "subnets": [near, far(json!({}))]}), 1),
        // The NAT gateway and the load balancer have no place either.
        (json!({"subnets": [far(json!({}))]}), 3),
    ] {
        let mut object = object(&json!({}), &json!({"region": "us-east-2", "network": network}));
        let errors = wanted(&object, &cluster(&json!({}), &Value::Null)).unwrap_err();
        assert_eq!(errors.len(), count, "{network}: {errors:?}");
        object.status.pending_creates.insert("vpc".to_owned(), "2026-01-01T00:00:00Z".to_owned());
        let read = wanted(&object, &cluster(&json!({}), &Value::Null)).unwrap();
        assert_eq!(read.unsupported.len(), count, "{network}: {:?}", read.unsupported);
    }
}

#[test]
fn a_zone_in_the_status_that_this_release_does_not_know_is_left_out() {
    let known = json!({"name": "us-east-2a", "zoneType": "availability-zone"});
    let zones = json!([{"name": "moon", "zoneType": "moon-zone"}, known, 7]);
    let object: Object<AwsCluster> = Object::read(json!({
        "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "spec": {"region": "us-east-2"}, "status": {"resources": {"knownZones": zones}},
    }))
    .unwrap();
    let read = object.status.resources.unwrap().known_zones;
    assert_eq!(serde_json::to_value(read).unwrap(), json!([known]));
}
