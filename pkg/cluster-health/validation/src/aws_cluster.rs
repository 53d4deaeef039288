//! Rules of Cluster API's AWSCluster, in both of its dialects: what the rules in its schema say.

use super::field::Field;
use super::findings::Findings;
use super::formats::{IMMUTABLE, cidr};
use super::subject::Subject;

/// Names of the network in v1beta2 and in v1alpha2.
const DIALECTS: [&str; 2] = ["network", "networkSpec"];
/// The load balancers of the API server.
const BALANCERS: [&str; 2] = ["controlPlaneLoadBalancer", "secondaryControlPlaneLoadBalancer"];
/// Masks that AWS takes for a VPC.
const VPC_MASKS: std::ops::RangeInclusive<u8> = 16..=28;
const TAG_KEY_CHARS: usize = 128;

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
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
    for name in BALANCERS.map(|balancer| spec.at(&[balancer, "name"])) {
        if name.text().is_some_and(|text| !is_balancer_name(text)) {
            let why = "is made of letters, digits and hyphens, none of them at its ends";
            findings.invalid(&name, why);
        }
    }
    if let Some(old) = subject.old_spec() {
        changes(&spec, &old, findings);
    }
}

/// The rules for traffic, wherever they stand.
fn rules<'a>(spec: &Field<'a>) -> impl Iterator<Item = Field<'a>> + use<'a> {
    let of_balancers = BALANCERS.map(|balancer| spec.at(&[balancer, "ingressRules"]));
    let of_networks = DIALECTS.into_iter().flat_map(|dialect| {
        ["additionalControlPlaneIngressRules", "additionalNodeIngressRules"]
            .map(|name| spec.at(&[dialect, name]))
    });
    let lists: Vec<Field<'a>> = of_networks.chain(of_balancers).collect();
    lists.into_iter().flat_map(|list| list.items())
}

fn tags(at: &Field<'_>, findings: &mut Findings) {
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

fn network(network: &Field<'_>, findings: &mut Findings) {
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

fn sources(rule: &Field<'_>, findings: &mut Findings) {
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

fn changes(spec: &Field<'_>, old: &Field<'_>, findings: &mut Findings) {
    let region = spec.field("region");
    if old.field("region").word().is_some() && region.value() != old.field("region").value() {
        findings.invalid(&region, "the region does not change: make another AWSCluster");
    }
    let vpc = |spec: &Field<'_>| {
        let ids = DIALECTS.map(|dialect| spec.at(&[dialect, "vpc", "id"]).word());
        ids.into_iter().flatten().next().map(str::to_owned)
    };
    if vpc(old).is_some_and(|id| vpc(spec) != Some(id)) {
        findings.invalid(spec, "the id of the VPC does not change once it is set");
    }
    if !old.field("identityRef").is_absent() && spec.field("identityRef").is_absent() {
        findings.invalid(spec, "spec.identityRef is not removed once it is set");
    }
    let (now, before) = (spec.field("controlPlaneEndpoint"), old.field("controlPlaneEndpoint"));
    if before.field("host").word().is_some() && now.value() != before.value() {
        findings.invalid(&now, IMMUTABLE);
    }
    let of = |spec: &Field<'_>, name: &str| {
        spec.at(&["controlPlaneLoadBalancer", name]).text().unwrap_or_default().to_owned()
    };
    let meant = |spec: &Field<'_>, name: &str| match (name, &*of(spec, name)) {
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
