//! [`rows`]: two valid values and a refused one of each field of the spec of an AWSCluster.

use aws_network::Dialect;
use serde_json::{Value, json};

use super::super::{NEWER, OLDER};
use super::set;

/// Values of one field.
#[derive(Clone)]
pub(super) struct Row {
    /// As in the schema of the CRD, below `spec`.
    pub(super) path: String,
    /// Other fields that the field needs.
    needs: Vec<(String, Value)>,
    pub(super) one: Value,
    /// `null` where there is only one valid value.
    pub(super) other: Value,
    /// `null` where the CRD or nothing refuses a value.
    pub(super) refused: Value,
    /// Whether AWS has something else for one value than for the other.
    pub(super) acts: bool,
    /// Whether the VPC and the subnets of the start have IPv6.
    pub(super) is_dual_stack: bool,
}

/// A network load balancer instead of a classic one.
const NETWORK: (&str, &str) = ("controlPlaneLoadBalancer.loadBalancerType", "nlb");

impl Row {
    fn new(path: &str, acts: bool, [one, other, refused]: [Value; 3]) -> Self {
        let path = path.to_owned();
        Self { path, needs: Vec::new(), one, other, refused, acts, is_dual_stack: false }
    }

    fn needs(mut self, path: &str, value: Value) -> Self {
        self.needs.insert(0, (path.to_owned(), value));
        self
    }

    fn below(mut self, prefix: &str) -> Self {
        self.path = format!("{prefix}.{}", self.path);
        for (path, _) in &mut self.needs {
            *path = format!("{prefix}.{path}");
        }
        self
    }

    /// The words of the older dialect are tried with its defaults.
    pub(super) fn dialect(&self) -> Dialect {
        if self.path.starts_with("networkSpec") { OLDER } else { NEWER }
    }

    /// The spec to which the field is added.
    pub(super) fn start(&self) -> Value {
        let subnet = |name: &str, zone: &str, cidr: &str, public: bool| {
            json!({"id": name, "availabilityZone": format!("us-east-2{zone}"), "cidrBlock": cidr,
                "isPublic": public})
        };
        let mut network = json!({"vpc": {"cidrBlock": "10.66.0.0/24"}, "subnets": [
            subnet("public-a", "a", "10.66.0.0/27", true),
            subnet("private-a", "a", "10.66.0.32/27", false),
            subnet("public-b", "b", "10.66.0.64/27", true),
            subnet("private-b", "b", "10.66.0.96/27", false)]});
        if self.is_dual_stack {
            network["vpc"]["ipv6"] = json!({});
            for subnet in network["subnets"].as_array_mut().unwrap() {
                subnet["isIpv6"] = json!(true);
            }
        }
        let mut spec = json!({"region": "us-east-2", "bastion": {"enabled": true}});
        spec[if self.dialect() == OLDER { "networkSpec" } else { "network" }] = network;
        for (path, value) in &self.needs {
            set(&mut spec, path, value);
        }
        spec
    }
}

/// A field whose values make a difference on AWS.
fn acts<const N: usize>(path: &str, values: [Value; N]) -> Row {
    Row::new(path, true, filled(values))
}

/// A field whose values make no difference on AWS.
fn still<const N: usize>(path: &str, values: [Value; N]) -> Row {
    Row::new(path, false, filled(values))
}

/// A field whose values are all refused.
fn refused(path: &str, value: Value) -> Row {
    Row::new(path, false, [Value::Null, Value::Null, value])
}

fn filled<const N: usize>(values: [Value; N]) -> [Value; 3] {
    let mut values = values.into_iter();
    std::array::from_fn(|_| values.next().unwrap_or_default())
}

/// A rule, and with other ports another one.
fn rule(from: i32, to: i32) -> Value {
    json!({"description": "d", "protocol": "tcp", "fromPort": from, "toPort": to,
        "cidrBlocks": ["192.0.2.0/24"]})
}

/// A list of ingress rules, with what a rule allows between any two machines.
fn ports_of(list: &str) -> Vec<Row> {
    let field = |name: &str| format!("{list}[].{name}");
    let rows = [
        acts(&field("description"), [json!("a"), json!("b")]),
        acts(&field("protocol"), [json!("udp"), json!("icmp"), json!("")]),
        acts(&field("fromPort"), [json!(3), json!(4), json!(900)]),
        acts(&field("toPort"), [json!(30), json!(40), json!(0)]),
    ];
    let with_rule = rows.into_iter().map(|row| row.needs(list, json!([rule(2, 20)])));
    let all = acts(list, [json!([rule(2, 20)]), json!([rule(2, 20), rule(3, 9)])]);
    with_rule.chain([all]).collect()
}

/// A list of ingress rules with sources.
fn rules_of(list: &str) -> Vec<Row> {
    let field = |name: &str| format!("{list}[].{name}");
    let of_group = || {
        let mut rule = rule(2, 20);
        set(&mut rule, "cidrBlocks", &Value::Null);
        rule["sourceSecurityGroupRoles"] = json!(["node"]);
        json!([rule])
    };
    let mut rows = ports_of(list);
    for (name, one, other) in [
        ("cidrBlocks", json!(["10.2.0.0/16"]), json!(["10.2.0.0/16", "10.3.0.0/16"])),
        ("ipv6CidrBlocks", json!(["fd00::/8"]), json!(["fc00::/8"])),
    ] {
        let row = acts(&field(name), [one, other, json!(["x"])]);
        rows.push(row.needs(list, json!([rule(2, 20)])));
    }
    let nat = acts(&field("natGatewaysIPsSource"), [json!(true), json!(false)]);
    rows.push(nat.needs(list, json!([rule(2, 20)])));
    for row in [
        acts(&field("sourceSecurityGroupIds"), [json!(["sg-one"]), json!(["sg-two"])]),
        acts(
            &field("sourceSecurityGroupRoles"),
            [json!(["bastion"]), json!(["controlplane", "node"]), json!(["other"])],
        ),
    ] {
        rows.push(row.needs(list, of_group()));
    }
    rows
}

fn vpc() -> Vec<Row> {
    let cidrs = |all: &[&str]| all.iter().map(|it| json!({"ipv4CidrBlock": it})).collect::<Value>();
    vec![
        // The tests of `aws-network` play clusters in VPCs of others.
        refused("vpc.id", json!("vpc-theirs")),
        acts("vpc.cidrBlock", [json!("10.67.0.0/20"), json!("10.68.0.0/20"), json!("10.0.0.0/8")])
            .needs("subnets", Value::Null),
        still("vpc.internetGatewayId", [json!("igw-1"), json!("igw-2")]),
        still("vpc.carrierGatewayId", [json!("cagw-1"), json!("cagw-2")]),
        still("vpc.tags", [json!({"a": "b"}), json!({"a": "c"})]),
        acts(
            "vpc.secondaryCidrBlocks",
            [
                cidrs(&["10.9.0.0/24"]),
                cidrs(&["10.9.0.0/24", "10.8.0.0/24"]),
                cidrs(&["10.66.0.0/16"]),
            ],
        ),
        refused("vpc.ipamPool", json!({"id": "pool"})),
        refused("vpc.ipv6", json!({"cidrBlock": "fd00::/56"})),
        refused("vpc.elasticIpPool", json!({"publicIpv4Pool": "ipv4pool-ec2-1"})),
        still("vpc.availabilityZoneUsageLimit", [json!(3), Value::Null, json!(2)]),
        still("vpc.availabilityZoneSelection", [json!("Ordered"), Value::Null, json!("Random")]),
        still("vpc.subnetSchema", [json!("PreferPrivate"), Value::Null, json!("PreferPublic")]),
        still("vpc.emptyRoutesDefaultVPCSecurityGroup", [json!(false), Value::Null, json!(true)]),
        still(
            "vpc.privateDnsHostnameTypeOnLaunch",
            [json!("ip-name"), Value::Null, json!("resource-name")],
        ),
    ]
}

fn subnets() -> Vec<Row> {
    let more = |cidr: &str| json!({"availabilityZone": "us-east-2a", "cidrBlock": cidr});
    let two = |last: Value| {
        let public = json!({"availabilityZone": "us-east-2a", "cidrBlock": "10.66.0.0/27", "isPublic": true});
        json!([public, last])
    };
    vec![
        acts(
            "subnets",
            [two(more("10.66.0.128/27")), two(more("10.66.0.160/27")), two(more("10.9.0.0/24"))],
        )
        .needs("subnets", json!([two(Value::Null)[0]])),
        acts("subnets[].id", [json!("one"), json!("two"), json!("subnet-f0000000")]),
        still("subnets[].resourceID", [json!("subnet-f0000008"), json!("subnet-f0000009")]),
        acts(
            "subnets[].cidrBlock",
            [json!("10.66.0.128/27"), json!("10.66.0.160/27"), json!("10.9.0.0/24")],
        ),
        acts(
            "subnets[].availabilityZone",
            [json!("us-east-2c"), json!("us-east-2b"), json!("eu-west-1a")],
        )
        .needs("natGateways", json!({"mode": "None"})),
        acts("subnets[].isPublic", [json!(false), json!(true)])
            .needs("natGateways", json!({"mode": "None"})),
        acts("subnets[].tags", [json!({"a": "b"}), json!({"a": "c"}), json!({"aws:a": "b"})]),
        still("subnets[].natGatewayId", [json!("nat-1"), json!("nat-2")]),
        still("subnets[].routeTableId", [json!("rtb-1"), json!("rtb-2")]),
        refused("subnets[].ipv6CidrBlock", json!("fd00::/64")),
        still("subnets[].isIpv6", [json!(false), Value::Null, json!(true)]),
        still("subnets[].zoneType", [json!("availability-zone"), Value::Null, json!("local-zone")]),
        refused("subnets[].parentZoneName", json!("us-east-2a")),
    ]
}

fn network() -> Vec<Row> {
    let mut rows = vpc();
    rows.extend(subnets());
    rows.extend(ports_of("cni.cniIngressRules"));
    rows.extend(rules_of("additionalControlPlaneIngressRules"));
    rows.extend(rules_of("additionalNodeIngressRules"));
    rows.extend([
        acts("natGateways.mode", [json!("Single"), json!("None"), json!("Many")]),
        acts(
            "natGateways.availabilityZone",
            [json!("us-east-2b"), json!("us-east-2a"), json!("us-east-2z")],
        )
        .needs("natGateways", json!({"mode": "Single"})),
        acts(
            "securityGroupOverrides",
            [json!({"node": "sg-one"}), json!({"node": "sg-two"}), json!({"x": "sg-one"})],
        )
        .needs("subnets", json!([{"id": "subnet-f0000001"}, {"id": "subnet-f0000002"}]))
        .needs("vpc", json!({"id": "vpc-theirs"})),
        acts(
            "nodePortIngressRuleCidrBlocks",
            [json!(["10.2.0.0/16"]), json!(["10.3.0.0/16"]), json!(["x"])],
        ),
    ]);
    rows
}

/// The fields of a health check; `refused` is a protocol that is not one of this place.
fn health_check(protocol: &str, check: &str, refused: &str) -> Vec<Row> {
    let field = |name: &str| format!("{check}.{name}");
    vec![
        acts(protocol, [json!("HTTP"), json!("HTTPS"), json!(refused)]),
        acts(&field("path"), [json!("/a"), json!("/b")]).needs(protocol, json!("HTTPS")),
        acts(&field("intervalSeconds"), [json!(20), json!(30), json!(2)]),
        acts(&field("timeoutSeconds"), [json!(2), json!(3), json!(100)]),
        acts(&field("thresholdCount"), [json!(3), json!(4)]),
        acts(&field("unhealthyThresholdCount"), [json!(3), json!(4)]),
    ]
}

fn listeners() -> Vec<Row> {
    let list = "additionalListeners";
    let field = |name: &str| format!("{list}[].{name}");
    let protocol = field("healthCheck.protocol");
    let mut rows = health_check(&protocol, &field("healthCheck"), "SSL");
    rows.extend([
        acts(&field("port"), [json!(8443), json!(9443), json!(6443)]),
        still(&field("protocol"), [json!("TCP"), Value::Null, json!("UDP")]),
        still(&field("targetGroupIPType"), [json!("ipv4"), Value::Null, json!("ipv6")]),
        acts(&field("healthCheck.port"), [json!("8080"), json!("8081"), json!("x")]),
    ]);
    let with_listener = rows.into_iter().map(|row| row.needs(list, json!([{"port": 7443}])));
    let two = json!([{"port": 7443}, {"port": 8443}]);
    let all = acts(list, [json!([{"port": 7443}]), two, json!([{"port": 7443}, {"port": 7443}])]);
    with_listener.chain([all]).collect()
}

/// The fields that both load balancers have, apart from their names and schemes.
fn load_balancer() -> Vec<Row> {
    let mut rows = health_check("healthCheckProtocol", "healthCheck", "UDP");
    rows.extend(rules_of("ingressRules"));
    rows.extend([
        acts("crossZoneLoadBalancing", [json!(true), json!(false)]),
        acts("subnets", [json!(["private-a"]), json!(["private-b"]), json!(["none"])]),
        acts("additionalSecurityGroups", [json!(["sg-one"]), json!(["sg-two"])]),
        still("dnsResolutionCheck", [json!("None"), json!("Enabled")]),
        still("targetGroupIPType", [json!("ipv4"), Value::Null, json!("ipv6")]),
        still("disableHostsRewrite", [json!(true), json!(false)]),
    ]);
    rows
}

/// The fields that only network load balancers have.
fn network_load_balancer() -> Vec<Row> {
    let preserve = acts("preserveClientIP", [json!(true), json!(false)]);
    listeners().into_iter().chain([preserve]).collect()
}

fn load_balancers() -> Vec<Row> {
    let (first, second) = ("controlPlaneLoadBalancer", "secondaryControlPlaneLoadBalancer");
    let word =
        |words: [&str; 3]| words.map(|it| if it.is_empty() { Value::Null } else { it.into() });
    let mut rows: Vec<_> = load_balancer().into_iter().map(|row| row.below(first)).collect();
    let network = network_load_balancer().into_iter().map(|row| row.below(first));
    rows.extend(network.map(|row| row.needs(NETWORK.0, json!(NETWORK.1))));
    rows.extend([
        acts(&format!("{first}.name"), word(["one", "two", "-x"])),
        acts(&format!("{first}.scheme"), word(["internal", "internet-facing", "x"])),
        acts(&format!("{first}.loadBalancerType"), word(["nlb", "disabled", "alb"])),
    ]);
    let of_second = [
        acts("name", word(["two", "three", "-x"])),
        still("scheme", word(["internal", "", "internet-facing"])),
        still("loadBalancerType", word(["nlb", "", "classic"])),
    ];
    let all = load_balancer().into_iter().chain(network_load_balancer()).chain(of_second);
    rows.extend(all.map(|row| row.below(second).needs(second, json!({"name": "one"}))));
    rows
}

/// Fields that have other values with IPv6, or that need a VPC of others, which has IPv4 only.
const NOT_OF_DUAL_STACK: [&str; 5] =
    ["vpc.ipv6", "isIpv6", "ipv6CidrBlock", "targetGroupIPType", "securityGroupOverrides"];

/// The rows on a cluster with IPv6.
fn dual_stack(rows: &[Row]) -> Vec<Row> {
    let is_other = |row: &&Row| NOT_OF_DUAL_STACK.iter().any(|it| row.path.ends_with(it));
    let same = rows.iter().filter(|row| row.dialect() == NEWER && !is_other(row)).cloned();
    let (first, second) = ("controlPlaneLoadBalancer", "secondaryControlPlaneLoadBalancer");
    let sources = || [json!(["fd00::/8"]), json!(["fc00::/8", "10.2.0.0/16"])];
    let types =
        |prefix: &str| acts("targetGroupIPType", [json!("ipv4"), json!("ipv6")]).below(prefix);
    let listener = format!("{first}.additionalListeners[]");
    let block = |number: u8| json!(format!("2600:db8:0:1{number:02}::/64"));
    let own = [
        acts("network.subnets[].ipv6CidrBlock", [block(5), block(6), json!("fd00::/64")]),
        acts("network.subnets[].isIpv6", [json!(false), json!(true)]),
        acts("network.nodePortIngressRuleCidrBlocks", sources()),
        acts("bastion.allowedCIDRBlocks", sources()),
        types(first).needs(NETWORK.0, json!(NETWORK.1)),
        types(second).needs(second, json!({"name": "one"})),
        types(&listener)
            .needs(&format!("{first}.additionalListeners"), json!([{"port": 7443}]))
            .needs(NETWORK.0, json!(NETWORK.1)),
    ];
    same.chain(own).map(|row| Row { is_dual_stack: true, ..row }).collect()
}

/// Each field, with values.
pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<_> = network().into_iter().map(|row| row.below("network")).collect();
    rows.extend(network().into_iter().map(|row| row.below("networkSpec")));
    rows.extend(load_balancers());
    let identity = json!({"kind": "AWSClusterStaticIdentity", "name": "one"});
    let endpoint = json!({"host": "api.example.org", "port": 6443});
    rows.extend([
        // A region does not change, by a rule of the CRD.
        refused("region", json!("US East")),
        still("partition", [json!("aws"), Value::Null, json!("aws-cn")]),
        acts("sshKeyName", [json!("one"), json!("two")]),
        acts(
            "additionalTags",
            [json!({"team": "a", "x": "y"}), json!({"team": "b"}), json!({"aws:a": "b"})],
        ),
        still("imageLookupFormat", [json!("a"), json!("b")]),
        still("imageLookupOrg", [json!("a"), json!("b")]),
        still("imageLookupBaseOS", [json!("a"), json!("b")]),
        refused("s3Bucket", json!({"name": "bucket"})),
        acts("bastion.enabled", [json!(false), json!(true)]),
        acts(
            "bastion.allowedCIDRBlocks",
            [json!(["10.2.0.0/16"]), json!(["10.3.0.0/16"]), json!(["x"])],
        ),
        acts("bastion.disableIngressRules", [json!(true), json!(false)]),
        acts("bastion.instanceType", [json!("t3.small"), json!("m5.large")]),
        acts("bastion.ami", [json!("ami-1"), json!("ami-2")]),
        still("identityRef.kind", [json!("AWSClusterRoleIdentity"), Value::Null, json!("Other")])
            .needs("identityRef", identity.clone()),
        still("identityRef.name", [json!("two"), json!("three")]).needs("identityRef", identity),
        still("controlPlaneEndpoint.host", [json!("api.example.com"), json!("10.0.0.1")])
            .needs("controlPlaneEndpoint", endpoint.clone()),
        acts("controlPlaneEndpoint.port", [json!(443), json!(8443)])
            .needs("controlPlaneEndpoint", endpoint),
    ]);
    rows.extend(dual_stack(&rows));
    rows
}
