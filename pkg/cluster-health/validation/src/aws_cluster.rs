//! Rules of Cluster API's AWSCluster, in both of its dialects: what its schema and the rules in it
//! say.
//! `limits.rs` has the limits of its fields beyond their types.

use super::findings::Findings;
use super::formats::{IMMUTABLE, cidr};
use super::place::Place;
use super::shape;
use super::shape::Limit;
use super::shape::Limit::{Cidr, Keys, Longest, Shortest, Values, Words};
use super::shapes::aws_cluster as shapes;
use super::subject::Subject;

/// Names of the network in v1beta2 and in v1alpha2.
const DIALECTS: [&str; 2] = ["network", "networkSpec"];
/// Masks that AWS takes for a VPC.
const VPC_MASKS: std::ops::RangeInclusive<u8> = 16..=28;
const TAG_KEY_CHARS: usize = 128;

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    if spec.is_absent() {
        return findings.required(&spec, "what the cluster has on AWS");
    }
    for network in DIALECTS.map(|dialect| spec.field(dialect)) {
        shape::check(&network, shapes::NETWORK, findings);
    }
    for rule in rules(&spec) {
        shape::check(&rule, shapes::RULE, findings);
    }
    required(&spec, findings);
    shape::check_limit(&subject.root(), CLUSTER, findings);
    tags(&spec.field("additionalTags"), findings);
    if DIALECTS.iter().all(|dialect| !spec.field(dialect).is_absent()) {
        findings.invalid(&spec, "set spec.network or spec.networkSpec, not both");
    }
    for dialect in DIALECTS {
        network(&spec.field(dialect), findings);
    }
    for rule in rules(&spec) {
        sources(&rule, findings);
    }
    let name = spec.at(&["controlPlaneLoadBalancer", "name"]);
    if name.text().is_some_and(|text| !is_balancer_name(text)) {
        findings.invalid(&name, "is made of letters, digits and hyphens, none of them at its ends");
    }
    if let Some(old) = subject.old_spec() {
        changes(&spec, &old, findings);
    }
}

fn required(spec: &Place<'_>, findings: &mut Findings) {
    let mut whole = |at: &Place<'_>, names: &[&str]| {
        for field in names.iter().map(|name| at.field(name)).filter(Place::is_absent) {
            if !at.is_absent() {
                findings.required(&field, &needs(names));
            }
        }
    };
    whole(spec, &["region"]);
    whole(&spec.field("identityRef"), &["kind", "name"]);
    whole(&spec.field("controlPlaneEndpoint"), &["host", "port"]);
    for dialect in DIALECTS {
        for rule in spec.at(&[dialect, "cni", "cniIngressRules"]).items() {
            whole(&rule, &["description", "protocol", "fromPort", "toPort"]);
        }
    }
    for rule in rules(spec) {
        whole(&rule, &["protocol", "fromPort", "toPort"]);
    }
}

/// Rules about fields that depend on each other.
fn needs(names: &[&str]) -> String {
    match names {
        [one] => format!("the {one} of AWS"),
        _ => format!("needed are {}", names.join(", ")),
    }
}

/// The rules for traffic, wherever they stand.
fn rules<'a>(spec: &Place<'a>) -> impl Iterator<Item = Place<'a>> + use<'a> {
    let balancer = spec.at(&["controlPlaneLoadBalancer", "ingressRules"]);
    let of_networks = DIALECTS.into_iter().flat_map(|dialect| {
        ["additionalControlPlaneIngressRules", "additionalNodeIngressRules"]
            .map(|name| spec.at(&[dialect, name]))
    });
    let lists: Vec<Place<'a>> = of_networks.chain([balancer]).collect();
    lists.into_iter().flat_map(|list| list.items())
}

fn tags(at: &Place<'_>, findings: &mut Findings) {
    let Some(tags) = at.value().as_object() else { return };
    let is_key = |key: &String| {
        (1..=TAG_KEY_CHARS).contains(&key.chars().count())
            && !key.to_lowercase().starts_with("aws:")
    };
    if !tags.keys().all(is_key) {
        let why = "the key of a tag has 1 to 128 characters and does not begin with aws:";
        findings.invalid(at, why);
    }
    let is_text = |text: &str| text.chars().all(is_tag_char);
    if !tags.iter().all(|(key, value)| is_text(key) && value.as_str().is_none_or(is_text)) {
        findings.invalid(at, "a tag is made of letters, digits, spaces and _.:/=+-@");
    }
}

fn is_tag_char(character: char) -> bool {
    character.is_alphabetic()
        || character.is_numeric()
        || character.is_whitespace() && !character.is_control()
        || "_.:/=+-@".contains(character)
}

fn network(network: &Place<'_>, findings: &mut Findings) {
    shape::check_limit(network, NETWORK, findings);
    let range = network.at(&["vpc", "cidrBlock"]);
    if range
        .text()
        .and_then(cidr)
        .is_some_and(|it| it.addr().is_ipv4() && !VPC_MASKS.contains(&it.prefix_len()))
    {
        findings.invalid(&range, "the mask of a VPC is /16 to /28");
    }
    for subnet in network.field("subnets").items() {
        let has = |name: &str| !subnet.field(name).is_absent();
        if subnet.value().is_object() && !has("id") && !has("cidrBlock") {
            let why = "a subnet needs the cidrBlock of a new one or the id of one that exists";
            findings.invalid(&subnet, why);
        }
    }
    let gateways = network.field("natGateways");
    let is_single = gateways.field("mode").text().is_none_or(|mode| mode == "Single");
    if !gateways.field("availabilityZone").is_absent() && !is_single {
        findings.invalid(&gateways, "availabilityZone is for the mode Single");
    }
}

fn sources(rule: &Place<'_>, findings: &mut Findings) {
    shape::check_limit(rule, RULE, findings);
    let any = |names: [&str; 2]| names.iter().any(|name| rule.field(name).items().next().is_some());
    if any(["cidrBlocks", "ipv6CidrBlocks"])
        && any(["sourceSecurityGroupIds", "sourceSecurityGroupRoles"])
    {
        findings.invalid(rule, "the sources of a rule are CIDRs or security groups, not both");
    }
}

fn is_balancer_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn changes(spec: &Place<'_>, old: &Place<'_>, findings: &mut Findings) {
    let region = spec.field("region");
    if old.field("region").word().is_some() && region.value() != old.field("region").value() {
        findings.invalid(&region, "the region does not change: make another AWSCluster");
    }
    let vpc = |spec: &Place<'_>| {
        let ids = DIALECTS.map(|dialect| spec.at(&[dialect, "vpc", "id"]).word());
        ids.into_iter().flatten().next().map(str::to_owned)
    };
    if vpc(old).is_some_and(|id| vpc(spec) != Some(id)) {
        findings.invalid(spec, "the id of the VPC does not change once it is set");
    }
    let (now, before) = (spec.field("controlPlaneEndpoint"), old.field("controlPlaneEndpoint"));
    if before.field("host").word().is_some() && now.value() != before.value() {
        findings.invalid(&now, IMMUTABLE);
    }
    let of = |spec: &Place<'_>, name: &str| {
        spec.at(&["controlPlaneLoadBalancer", name]).text().unwrap_or_default().to_owned()
    };
    let meant = |spec: &Place<'_>, name: &str| match (name, &*of(spec, name)) {
        ("name", text) => text.to_owned(),
        ("scheme", "internal") | ("loadBalancerType", "nlb" | "disabled") => of(spec, name),
        _ => String::new(),
    };
    for name in ["name", "scheme", "loadBalancerType"] {
        if meant(spec, name) != meant(old, name) {
            findings.invalid(&spec.at(&["controlPlaneLoadBalancer", name]), IMMUTABLE);
        }
    }
}

/// All but those of networks and of rules for traffic.
pub(crate) const CLUSTER: &[(&str, Limit)] = &[
    ("spec.region", Longest(64)),
    ("spec.region", Shortest(1)),
    ("spec.sshKeyName", Longest(255)),
    ("spec.additionalTags", Keys(50)),
    ("spec.additionalTags", Values(256)),
    ("spec.partition", Longest(64)),
    ("spec.imageLookupFormat", Longest(1024)),
    ("spec.imageLookupOrg", Longest(1024)),
    ("spec.imageLookupBaseOS", Longest(1024)),
    ("spec.controlPlaneLoadBalancer.name", Longest(32)),
    ("spec.controlPlaneLoadBalancer.targetGroupIPType", Longest(16)),
    (
        "spec.controlPlaneLoadBalancer.scheme",
        Words(&["Internet-facing", "internet-facing", "internal"]),
    ),
    (
        "spec.controlPlaneLoadBalancer.loadBalancerType",
        Words(&["classic", "elb", "alb", "nlb", "disabled"]),
    ),
    ("spec.controlPlaneLoadBalancer.subnets[]", Longest(256)),
    (
        "spec.controlPlaneLoadBalancer.healthCheckProtocol",
        Words(&["TCP", "SSL", "HTTP", "HTTPS", "TLS", "UDP"]),
    ),
    ("spec.controlPlaneLoadBalancer.healthCheck.path", Longest(1024)),
    ("spec.controlPlaneLoadBalancer.additionalSecurityGroups[]", Longest(64)),
    ("spec.controlPlaneLoadBalancer.dnsResolutionCheck", Words(&["None", "Enabled"])),
    ("spec.bastion.allowedCIDRBlocks[]", Longest(43)),
    ("spec.bastion.allowedCIDRBlocks[]", Cidr),
    ("spec.bastion.instanceType", Longest(64)),
    ("spec.bastion.ami", Longest(64)),
    ("spec.identityRef.kind", Longest(63)),
    ("spec.identityRef.name", Longest(253)),
    ("spec.controlPlaneEndpoint.host", Longest(512)),
];

/// Limits of a network, without its rules.
pub(crate) const NETWORK: &[(&str, Limit)] = &[
    ("vpc.id", Longest(64)),
    ("vpc.cidrBlock", Longest(18)),
    ("vpc.cidrBlock", Cidr),
    ("vpc.internetGatewayId", Longest(256)),
    ("vpc.carrierGatewayId", Longest(256)),
    ("vpc.tags", Keys(50)),
    ("vpc.tags", Values(256)),
    ("vpc.availabilityZoneSelection", Longest(64)),
    ("vpc.subnetSchema", Longest(64)),
    ("vpc.privateDnsHostnameTypeOnLaunch", Longest(64)),
    ("subnets[].id", Longest(256)),
    ("subnets[].resourceID", Longest(256)),
    ("subnets[].cidrBlock", Longest(43)),
    ("subnets[].cidrBlock", Cidr),
    ("subnets[].availabilityZone", Longest(64)),
    ("subnets[].tags", Keys(50)),
    ("subnets[].tags", Values(256)),
    ("subnets[].natGatewayId", Longest(256)),
    ("subnets[].routeTableId", Longest(256)),
    ("subnets[].ipv6CidrBlock", Longest(43)),
    ("subnets[].zoneType", Longest(64)),
    ("subnets[].parentZoneName", Longest(64)),
    ("natGateways.mode", Words(&["PerAZ", "Single", "None"])),
    ("natGateways.availabilityZone", Longest(64)),
    ("cni.cniIngressRules[].description", Longest(255)),
    ("cni.cniIngressRules[].protocol", Longest(16)),
    ("securityGroupOverrides", Keys(8)),
    ("securityGroupOverrides", Values(64)),
    ("nodePortIngressRuleCidrBlocks[]", Longest(43)),
    ("nodePortIngressRuleCidrBlocks[]", Cidr),
];

/// Limits of a rule for traffic.
pub(crate) const RULE: &[(&str, Limit)] = &[
    ("description", Longest(255)),
    ("protocol", Longest(16)),
    ("cidrBlocks[]", Longest(43)),
    ("cidrBlocks[]", Cidr),
    ("ipv6CidrBlocks[]", Longest(43)),
    ("ipv6CidrBlocks[]", Cidr),
    ("sourceSecurityGroupIds[]", Longest(64)),
    (
        "sourceSecurityGroupRoles[]",
        Words(&["bastion", "node", "controlplane", "apiserver-lb", "lb"]),
    ),
];
