//! What the fields of an AWSCluster may hold: the limits of `config/crd`.

use crate::limit::Limit::{self, Cidr, Keys, Longest, Shortest, Values, Words};

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

/// Of a network, but for its rules.
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

/// Of a rule for traffic.
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
