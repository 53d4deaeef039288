//! Refusals by the API server without a webhook: each rule with an accepted and a refused value.

use serde_json::{Value, json};
use tests::kubectl::Kubectl;

use crate::scene::{AWS_CLUSTERS, aws_cluster, hub};

/// A spec with more fields.
fn spec(more: Value) -> Value {
    let mut spec = json!({"region": "us-east-2"});
    let Value::Object(more) = more else { panic!("fields") };
    spec.as_object_mut().unwrap().extend(more);
    spec
}

/// Rows of (field, accepted value, refused value, words of the refusal), each with a new object.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_aws_cluster_that_breaks_a_rule_is_refused_with_the_reason() {
    let kubectl = hub().await;
    let tags = |tags: Value| json!({"additionalTags": tags});
    let vpc = |cidr: &str| json!({"network": {"vpc": {"cidrBlock": cidr}}});
    let subnets = |subnet: Value| json!({"networkSpec": {"subnets": [subnet]}});
    let nat = |nat: Value| json!({"network": {"natGateways": nat}});
    let lb = |field: &str, value: &str| json!({"controlPlaneLoadBalancer": {field: value}});
    let rule = |more: Value| {
        let mut rule = json!({"description": "", "protocol": "tcp", "fromPort": 1, "toPort": 1});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"controlPlaneLoadBalancer": {"ingressRules": [rule]}})
    };
    let long = "x".repeat(129);
    let name = "n".repeat(33);
    let rows = [
        (json!({"network": {}}), json!({"network": {}, "networkSpec": {}}), "not both"),
        (json!({}), json!({"region": ""}), "spec.region"),
        (json!({}), json!({"region": null}), "spec.region"),
        (tags(json!({"a b_.:/=+-@é": ""})), tags(json!({"a": "b#"})), "a tag is made of letters"),
        (tags(json!({"awsome": "x"})), tags(json!({"AWS:x": "x"})), "does not begin with aws:"),
        (tags(json!({"a": "x"})), tags(json!({(&*long): "x"})), "1 to 128 characters"),
        (vpc("10.0.0.0/28"), vpc("10.0.0.0/29"), "/16 to /28"),
        (vpc("10.0.0.0/16"), vpc("10.0.0.0/15"), "/16 to /28"),
        (vpc("10.0.0.0/16"), vpc("10.0.0.0"), "cidrBlock"),
        (
            subnets(json!({"cidrBlock": "10.0.0.0/24"})),
            subnets(json!({"cidrBlock": "10.0.0.300/24"})),
            "cidrBlock",
        ),
        (
            subnets(json!({"id": "subnet-f0000001"})),
            subnets(json!({"isPublic": true})),
            "a subnet needs",
        ),
        (nat(json!({"mode": "None"})), nat(json!({"mode": "Many"})), "mode"),
        (nat(json!({"mode": "Regional"})), nat(json!({"mode": "regional"})), "mode"),
        (
            nat(json!({"mode": "Single", "availabilityZone": "us-east-2a"})),
            nat(json!({"mode": "PerAZ", "availabilityZone": "us-east-2a"})),
            "is for the mode Single",
        ),
        (lb("scheme", "Internet-facing"), lb("scheme", "public"), "scheme"),
        (lb("loadBalancerType", "disabled"), lb("loadBalancerType", "gwlb"), "loadBalancerType"),
        (lb("name", &name[1..]), lb("name", &name), "name"),
        (lb("name", "a-b"), lb("name", "-ab"), "name"),
        (
            rule(json!({"cidrBlocks": ["10.0.0.0/8"], "sourceSecurityGroupIds": []})),
            rule(json!({"cidrBlocks": ["10.0.0.0/8"], "sourceSecurityGroupIds": ["sg-1"]})),
            "CIDRs or security groups, not both",
        ),
        (
            json!({"bastion": {"allowedCIDRBlocks": ["10.0.0.0/8"]}}),
            json!({"bastion": {"allowedCIDRBlocks": ["office"]}}),
            "allowedCIDRBlocks",
        ),
    ];
    for (at, (taken, refused, words)) in rows.into_iter().enumerate() {
        let version = ["v1alpha2", "v1beta2"][at % 2];
        kubectl.create(&aws_cluster(version, &format!("row-{at}"), &spec(taken)));
        let said = kubectl.create_refused(&aws_cluster(version, "refused", &spec(refused.clone())));
        assert!(said.contains(words), "{refused}: {said}");
    }
}

/// Rows of (value before, allowed new value, refused new value, words of the refusal).
#[tokio::test(flavor = "multi_thread")]
async fn what_would_need_other_resources_does_not_change() {
    let kubectl = hub().await;
    let lb = |field: &str, value: &str| json!({"controlPlaneLoadBalancer": {field: value}});
    let vpc = |part: &str, id: &str| json!({part: {"vpc": {"id": id}}});
    let endpoint =
        |host: &str, port: u16| json!({"controlPlaneEndpoint": {"host": host, "port": port}});
    let rows = [
        (
            json!({}),
            json!({"sshKeyName": "k"}),
            json!({"region": "eu-west-1"}),
            "the region does not",
        ),
        (
            vpc("network", "vpc-1"),
            vpc("network", "vpc-1"),
            vpc("network", "vpc-2"),
            "id of the VPC",
        ),
        (json!({}), vpc("networkSpec", "vpc-1"), json!({"region": "x"}), "the region does not"),
        (
            vpc("networkSpec", "vpc-1"),
            json!({"sshKeyName": "k"}),
            json!({"networkSpec": {"vpc": {"id": null}}}),
            "id of the VPC",
        ),
        (endpoint("", 0), endpoint("a", 1), endpoint("b", 1), "controlPlaneEndpoint does not"),
        (endpoint("a", 1), endpoint("a", 1), endpoint("a", 2), "controlPlaneEndpoint does not"),
        (
            endpoint("a", 1),
            endpoint("a", 1),
            json!({"controlPlaneEndpoint": null}),
            "controlPlaneEndpoint does not",
        ),
        (
            lb("scheme", "Internet-facing"),
            lb("scheme", "internet-facing"),
            lb("scheme", "internal"),
            "the scheme of",
        ),
        (json!({}), lb("scheme", "internet-facing"), lb("scheme", "internal"), "the scheme of"),
        (
            json!({}),
            lb("loadBalancerType", "classic"),
            lb("loadBalancerType", "nlb"),
            "the type of",
        ),
        (lb("name", "a"), json!({"sshKeyName": "k"}), lb("name", "b"), "the name of"),
    ];
    for (at, (before, allowed, refused, words)) in rows.into_iter().enumerate() {
        let name = format!("row-{at}");
        kubectl.create(&aws_cluster("v1alpha2", &name, &spec(before)));
        let of = format!("{AWS_CLUSTERS} {name}");
        kubectl.patch(&of, "merge", &json!({"spec": allowed}));
        let said = patch_refused(&kubectl, &of, &json!({"spec": refused.clone()}));
        assert!(said.contains(words), "row {at}, {refused}: {said}");
    }
}

/// The network may be written in the other dialect, as long as the VPC is the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_may_move_to_the_other_dialect_with_its_vpc() {
    let kubectl = hub().await;
    let old = spec(json!({"networkSpec": {"vpc": {"id": "vpc-1"}}}));
    kubectl.create(&aws_cluster("v1alpha2", "moves", &old));
    let of = format!("{AWS_CLUSTERS} moves");
    let elsewhere = json!({"spec": {"networkSpec": null, "network": {"vpc": {"id": "vpc-2"}}}});
    assert!(patch_refused(&kubectl, &of, &elsewhere).contains("id of the VPC"));
    let same = json!({"spec": {"networkSpec": null, "network": {"vpc": {"id": "vpc-1"}}}});
    kubectl.patch(&of, "merge", &same);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_of_one_dialect() {
    let kubectl = hub().await;
    let cluster = |name: &str, reference: Value| {
        json!({"apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Cluster",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"infrastructureRef": reference}})
    };
    let both = json!({"apiVersion": "g/v1", "apiGroup": "g", "kind": "K", "name": "n"});
    let neither = json!({"kind": "K", "name": "n"});
    for reference in [both, neither] {
        let said = kubectl.create_refused(&cluster("refused", reference));
        assert!(
            said.contains("set apiVersion, as in v1alpha2, or apiGroup, as in v1beta2"),
            "{said}"
        );
    }
    kubectl.create(&cluster("old", json!({"apiVersion": "g/v1", "kind": "K", "name": "n"})));
    kubectl.create(&cluster("new", json!({"apiGroup": "g", "kind": "K", "name": "n"})));
}

fn patch_refused(kubectl: &Kubectl, of: &str, patch: &Value) -> String {
    // The arguments have no spaces in them.
    assert!(!patch.to_string().contains(' '), "{patch}");
    kubectl.refused(&format!("patch {of} --type=merge -p {patch}"))
}
