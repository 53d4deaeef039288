//! Whether a call is refused, given what was read for it.

use std::collections::BTreeSet;

use super::super::call::Call;
use super::super::elements::Element;

/// Protocols whose rules have ports.
const WITH_PORTS: [&str; 8] = ["tcp", "udp", "icmp", "icmpv6", "6", "17", "1", "58"];

/// Whether what was read names the value of a parameter.
pub(super) fn named(call: &Call, parameter: &str, found: &[Element]) -> bool {
    found.iter().any(|it| it.names(call.parameter(parameter)))
}

pub(super) fn found(call: &Call, found: &[Element]) -> bool {
    named(call, "VpcId", found)
}

pub(super) fn of_another_table(call: &Call, found: &[Element]) -> bool {
    let mut tables = found[0].set("routeTableSet").iter();
    tables.any(|it| it.text_of("routeTableId") != call.parameter("RouteTableId"))
}

/// A rule by what AWS tells rules apart: protocol, ports and source.
type Key = [String; 4];

fn key(protocol: &str, from: &str, to: &str, source: &str) -> Key {
    let has_ports = WITH_PORTS.contains(&protocol);
    let port = |port: &str| if has_ports { port.to_owned() } else { String::new() };
    [protocol.to_owned(), port(from), port(to), source.to_owned()]
}

pub(super) fn a_known_rule(call: &Call, found: &[Element]) -> bool {
    let mut known = BTreeSet::new();
    for rule in found[0].set("ipPermissions") {
        for source in ["cidrIp", "cidrIpv6", "groupId", "prefixListId"] {
            let ports = (rule.text_of("fromPort"), rule.text_of("toPort"));
            let key = |source| key(rule.text_of("ipProtocol"), ports.0, ports.1, source);
            known.extend(rule.texts(source).map(key));
        }
    }
    let sources = call.parameters.iter().filter(|(name, _)| {
        let last = name.rsplit('.').next().unwrap_or_default();
        name.starts_with("IpPermissions.")
            && ["CidrIp", "CidrIpv6", "GroupId", "PrefixListId"].contains(&last)
    });
    let mut asked = sources.map(|(name, source)| {
        let place = name.split('.').nth(1).unwrap_or_default();
        let of = |part: &str| call.parameter(&format!("IpPermissions.{place}.{part}"));
        key(of("IpProtocol"), of("FromPort"), of("ToPort"), source)
    });
    asked.any(|key| known.contains(&key))
}

/// Internet gateways, then the subnet: a public one needs a gateway in its VPC.
pub(super) fn without_gateway(call: &Call, found: &[Element]) -> bool {
    let is_internal = call.parameter("Scheme") == "internal";
    let is_private = call.parameter("ConnectivityType") == "private";
    let vpc = found[1].texts("vpcId").next();
    !is_internal && !is_private && vpc.is_some_and(|vpc| !found[0].names(vpc))
}

pub(super) fn to_unready_nat(call: &Call, found: &[Element]) -> bool {
    let id = call.parameter("NatGatewayId");
    let nat = found[0].whose("natGatewayId", id);
    !id.is_empty() && nat.is_none_or(|nat| nat.text_of("state") != "available")
}

pub(super) fn to_a_gateway_elsewhere(call: &Call, found: &[Element]) -> bool {
    let vpc = found[1].set("routeTableSet").first().map(|table| table.text_of("vpcId"));
    let is_there = found[0].names(call.parameter("GatewayId"));
    call.parameter("GatewayId").starts_with("igw-")
        && is_there
        && vpc.is_some_and(|vpc| !found[0].names(vpc))
}

pub(super) fn a_wrong_key(call: &Call, _: &[Element]) -> bool {
    let keys = call.parameters.iter().filter(|(name, _)| name.ends_with(".Key"));
    keys.map(|(_, key)| key).any(|key| key.starts_with("aws:") || key.chars().count() > 128)
}

pub(super) fn of_two_attributes(call: &Call, _: &[Element]) -> bool {
    call.parameters.keys().filter(|name| name.ends_with(".Value")).count() > 1
}

pub(super) fn of_no_image(call: &Call, found: &[Element]) -> bool {
    !named(call, "ImageId", found)
}

pub(super) fn of_no_nat(call: &Call, found: &[Element]) -> bool {
    found[0].whose("natGatewayId", call.parameter("NatGatewayId")).is_none()
}

pub(super) fn with_subnets(_: &Call, found: &[Element]) -> bool {
    found[0].texts("subnetId").next().is_some()
}

/// What uses groups, then all groups. A rule of the group itself goes with it.
pub(super) fn of_a_used_group(call: &Call, found: &[Element]) -> bool {
    let id = call.parameter("GroupId");
    let (groups, users) = found.split_last().expect("groups are read last");
    let mut others =
        groups.set("securityGroupInfo").iter().filter(|it| it.text_of("groupId") != id);
    named(call, "GroupId", users) || others.any(|it| it.names(id))
}

/// Gateways of four kinds, then the groups of the VPC. moto itself looks for subnets and route tables.
pub(super) fn of_a_used_vpc(call: &Call, found: &[Element]) -> bool {
    let (groups, users) = found.split_last().expect("groups are read last");
    let mut names = groups.set("securityGroupInfo").iter().map(|it| it.text_of("groupName"));
    named(call, "VpcId", users) || names.any(|name| name != "default")
}

/// NAT gateways, then the address.
pub(super) fn of_a_used_address(call: &Call, found: &[Element]) -> bool {
    named(call, "AllocationId", &found[..1]) || found[1].texts("associationId").next().is_some()
}

pub(super) fn of_no_balancer(call: &Call, found: &[Element]) -> bool {
    let is_name = |name: &&String| {
        *name == "LoadBalancerName" || name.starts_with("LoadBalancerNames.member.")
    };
    let mut names = call.parameters.keys().filter(is_name);
    names.any(|name| found[0].whose("LoadBalancerName", call.parameter(name)).is_none())
}

pub(super) fn of_a_wrong_name(call: &Call, _: &[Element]) -> bool {
    let name = call.parameter("LoadBalancerName");
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let has_edge = name.starts_with('-') || name.ends_with('-');
    name.is_empty() || name.len() > 32 || has_edge || !name.chars().all(is_usual)
}

pub(super) fn without_subnet(call: &Call, _: &[Element]) -> bool {
    call.parameter("Subnets.member.1").is_empty()
        && call.parameter("AvailabilityZones.member.1").is_empty()
}

pub(super) fn of_a_taken_name(call: &Call, found: &[Element]) -> bool {
    found[0].whose("LoadBalancerName", call.parameter("Name")).is_some()
}

pub(super) fn to_a_group_of_another(call: &Call, found: &[Element]) -> bool {
    let group = call.parameter("DefaultActions.member.1.TargetGroupArn");
    let Some(group) = found[0].whose("TargetGroupArn", group) else { return false };
    let mut balancers = group.set("LoadBalancerArns").iter();
    balancers.any(|it| it.text() != call.parameter("LoadBalancerArn"))
}

pub(super) fn of_one_without_groups(call: &Call, found: &[Element]) -> bool {
    let balancer = found[0].whose("LoadBalancerArn", call.parameter("LoadBalancerArn"));
    balancer.is_some_and(|it| it.set("SecurityGroups").is_empty())
}
