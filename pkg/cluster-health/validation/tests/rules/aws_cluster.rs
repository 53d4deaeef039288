//! AWSClusters.

use serde_json::{Value, json};

use crate::objects::aws;
use crate::row::{Row, all_hold, row};

pub(crate) fn rows() -> Vec<Row> {
    [fields(), networks(), traffic(), changes()].into_iter().flatten().collect()
}

#[test]
fn an_aws_cluster_is_judged_by_its_schema_and_the_rules_in_it() {
    all_hold(rows());
}

fn fields() -> Vec<Row> {
    let whole = |edits: Value| row("aws-fields-are-whole", aws, edits);
    let tags = |tags: Value| row("tags-are-awss", aws, json!({"spec.additionalTags": tags}));
    let says = "spec.additionalTags: Invalid: Invalid value: \"object\": ";
    let key =
        format!("{says}the key of a tag has 1 to 128 characters and does not begin with aws:");
    let text = format!("{says}a tag is made of letters, digits, spaces and _.:/=+-@");
    let long = "a".repeat(65);
    vec![
        whole(json!({})),
        whole(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha2"})),
        whole(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1"})),
        whole(json!({"spec.region": null})).says(&["spec.region: Required: Required value: the region of AWS"]),
        whole(json!({"spec.region": ""})).says(&["spec.region: Invalid: Invalid value: \"\": should be at least 1 chars long"]),
        whole(json!({"spec.region": long})).says(&["spec.region: TooLong: Too long: may not be more than 64 bytes"]),
        whole(json!({"spec.identityRef": {"kind": "k"}})).says(&["spec.identityRef.name: Required: Required value: needed are kind, name"]),
        whole(json!({"spec.controlPlaneEndpoint": {"host": "h", "port": 65_536}})).says(&["spec.controlPlaneEndpoint.port: Invalid: Invalid value: 65536: must be between 0 and 65535, inclusive"]),
        whole(json!({"spec.controlPlaneLoadBalancer": {"scheme": "private"}})).says(&["spec.controlPlaneLoadBalancer.scheme: NotSupported: Unsupported value: \"private\": supported values: \"Internet-facing\", \"internet-facing\", \"internal\""]),
        whole(json!({"spec.controlPlaneLoadBalancer": {"name": "-a"}})).says(&["spec.controlPlaneLoadBalancer.name: Invalid: Invalid value: \"-a\": is made of letters, digits and hyphens, none of them at its ends"]),
        whole(json!({"spec.secondaryControlPlaneLoadBalancer": {"name": "-a"}})).says(&["spec.secondaryControlPlaneLoadBalancer.name: Invalid: Invalid value: \"-a\": is made of letters, digits and hyphens, none of them at its ends"]),
        whole(json!({"spec.controlPlaneLoadBalancer": {"additionalListeners": [{"port": 22}, {"port": 80}, {"port": 22}]}})).says(&["spec.controlPlaneLoadBalancer.additionalListeners[2]: Duplicate: Duplicate value: \"object\""]),
        whole(json!({"spec.bastion": {"allowedCIDRBlocks": ["x"]}})).says(&["spec.bastion.allowedCIDRBlocks[0]: TypeInvalid: Invalid value: \"string\": spec.bastion.allowedCIDRBlocks[0] in body must be of type cidr (such as 10.0.0.0/16): \"string\""]),
        tags(json!({"team": "a b", "example.com/x": "y@z"})),
        tags(json!({"AWS:x": "y"})).says(&[&key]),
        tags(json!({"": "y"})).says(&[&key]),
        tags(json!({"a": "<b>"})).says(&[&text]),
    ]
}

fn networks() -> Vec<Row> {
    let dialect = |edits: Value| row("one-dialect-of-a-network", aws, edits);
    let made = |edits: Value| row("networks-can-be-made", aws, edits);
    let vpc = |range: &str| made(json!({"spec.network.vpc.cidrBlock": range}));
    let subnet = "spec.network.subnets[0]: Invalid: Invalid value: \"object\": a subnet needs the cidrBlock of a new one or the id of one that exists";
    let mask = |range: &str| {
        format!(
            "spec.network.vpc.cidrBlock: Invalid: Invalid value: \"{range}\": the mask of a VPC is /16 to /28"
        )
    };
    vec![
        dialect(json!({"spec.network": null, "spec.networkSpec": {"vpc": {"cidrBlock": "10.0.0.0/16"}}})),
        dialect(json!({"spec.networkSpec": {}})).says(&["spec: Invalid: Invalid value: \"object\": set spec.network or spec.networkSpec, not both"]),
        vpc("10.0.0.0/28"),
        vpc("10.0.0.0/15").says(&[&mask("10.0.0.0/15")]),
        vpc("10.0.0.0/29").says(&[&mask("10.0.0.0/29")]),
        vpc("10.0.0.0").says(&["spec.network.vpc.cidrBlock: TypeInvalid: Invalid value: \"string\": spec.network.vpc.cidrBlock in body must be of type cidr (such as 10.0.0.0/16): \"string\""]),
        made(json!({"spec.network.subnets": [{"id": "subnet-1"}]})),
        made(json!({"spec.network.subnets": [{"isPublic": true}]})).says(&[subnet]),
        made(json!({"spec.network.natGateways": {"availabilityZone": "a"}})),
        made(json!({"spec.network.natGateways": {"mode": "Regional"}})),
        made(json!({"spec.network.natGateways": {"mode": "Regional", "availabilityZone": "a"}})).says(&["spec.network.natGateways: Invalid: Invalid value: \"object\": availabilityZone is for the mode Single"]),
        made(json!({"spec.network.natGateways": {"mode": "PerAZ", "availabilityZone": "a"}})).says(&["spec.network.natGateways: Invalid: Invalid value: \"object\": availabilityZone is for the mode Single"]),
    ]
}

fn traffic() -> Vec<Row> {
    let at = |rule: Value| {
        row(
            "sources-are-of-one-kind",
            aws,
            json!({"spec.network.additionalNodeIngressRules": [rule]}),
        )
    };
    let rule = |more: Value| {
        let mut rule = json!({"protocol": "tcp", "fromPort": 1, "toPort": 2});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rule
    };
    let place = "spec.network.additionalNodeIngressRules[0]";
    let both = format!(
        "{place}: Invalid: Invalid value: \"object\": the sources of a rule are CIDRs or security groups, not both"
    );
    vec![
        at(rule(json!({"cidrBlocks": ["10.0.0.0/8"]}))),
        at(rule(json!({"cidrBlocks": [], "sourceSecurityGroupIds": ["sg"]}))),
        at(rule(json!({"ipv6CidrBlocks": ["fd00::/8"], "sourceSecurityGroupRoles": ["node"]})))
            .says(&[&both]),
        at(json!({"protocol": "tcp", "toPort": 2})).says(&[&format!(
            "{place}.fromPort: Required: Required value: needed are protocol, fromPort, toPort"
        )]),
    ]
}

fn changes() -> Vec<Row> {
    let at = |now: Value, was: Value| row("what-aws-made-stays", aws, now).was(was);
    let balancer =
        |field: &str, value: &str| json!({"spec.controlPlaneLoadBalancer": {field: value}});
    let fixed = |field: &str, shown: &str| {
        format!(
            "spec.controlPlaneLoadBalancer.{field}: Invalid: Invalid value: \"{shown}\": field is immutable"
        )
    };
    let vpc = |id: &str| json!({"spec.network.vpc.id": id});
    let endpoint = |host: &str| json!({"spec.controlPlaneEndpoint": {"host": host, "port": 6443}});
    let identity =
        |name: &str| json!({"spec.identityRef": {"kind": "AWSClusterRoleIdentity", "name": name}});
    let gone = "spec: Invalid: Invalid value: \"object\": the id of the VPC does not change once it is set";
    vec![
        at(json!({"spec.sshKeyName": "k"}), json!({})),
        at(vpc("vpc-1"), json!({})),
        at(json!({}), endpoint("")),
        at(balancer("scheme", "internet-facing"), balancer("scheme", "Internet-facing")),
        at(json!({"spec.region": "eu-west-1"}), json!({})).says(&["spec.region: Invalid: Invalid value: \"eu-west-1\": the region does not change: make another AWSCluster"]),
        at(vpc("vpc-2"), vpc("vpc-1")).says(&[gone]),
        at(json!({}), vpc("vpc-1")).says(&[gone]),
        at(endpoint("b"), endpoint("a")).says(&["spec.controlPlaneEndpoint: Invalid: Invalid value: \"object\": field is immutable"]),
        at(identity("other"), identity("one")),
        at(json!({}), identity("one")).says(&["spec: Invalid: Invalid value: \"object\": spec.identityRef is not removed once it is set"]),
        at(balancer("name", "b"), balancer("name", "a")).says(&[&fixed("name", "b")]),
        at(balancer("scheme", "internal"), json!({})).says(&[&fixed("scheme", "internal")]),
        at(balancer("loadBalancerType", "classic"), balancer("loadBalancerType", "nlb")).says(&[&fixed("loadBalancerType", "classic")]),
    ]
}
