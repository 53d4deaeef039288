//! [`EXCEPTIONS`]: fields that a cluster which exists cannot follow.

/// How a reason ends if the controller reports the field.
pub(super) const REPORTED: &str = "; it is reported";
/// Why subnets that the spec does not name any more stay.
const SURPLUS: &str = "an advice names it, and it is deleted only with --prune-subnets";
const LAUNCHED: &str = "a bastion stays as it was launched until the spec disables it";
const PUBLISHED: &str = "clients know the name of the load balancer; it is reported";
const ADDRESS_TYPE: &str = "the address type of a target group is fixed; it is reported";
const COVERED: &str =
    "addresses of NAT gateways stay where everybody is allowed, as upstream has them";
/// Why a refused listener has an effect.
const LISTENERS: &str = "the load balancer follows the other listeners of the list";

/// Path of the field, steps after which the cluster is not as a fresh one, and the reason.
pub(super) const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("network.vpc.cidrBlock", &["set", "change"], "the CIDR of a VPC is fixed; it is reported"),
    ("network.vpc.secondaryCidrBlocks", &["revert"], "a CIDR of a VPC is never taken away"),
    ("network.subnets", &["change", "revert"], SURPLUS),
    ("network.subnets[].cidrBlock", &["set", "change", "revert"], SURPLUS),
    (
        "network.subnets[].availabilityZone",
        &["set", "change"],
        "the zone of a subnet is fixed; it is reported",
    ),
    ("network.subnets[].isPublic", &["set"], "the role of a subnet is fixed; it is reported"),
    (
        "network.subnets[].tags",
        &["revert"],
        "which tags a subnet got from the spec is not recorded",
    ),
    (
        "network.subnets[].ipv6CidrBlock",
        &["set", "change"],
        "the IPv6 CIDR of a subnet is fixed; it is reported",
    ),
    (
        "network.subnets[].isIpv6",
        &["set"],
        "a subnet keeps its IPv6 CIDR, as one that others have given it",
    ),
    (
        "network.securityGroupOverrides",
        &["set", "change"],
        "instances may use the group that was made before",
    ),
    ("controlPlaneLoadBalancer.name", &["set", "change"], PUBLISHED),
    ("controlPlaneLoadBalancer.ingressRules", &["revert"], COVERED),
    ("secondaryControlPlaneLoadBalancer.ingressRules", &["revert"], COVERED),
    ("controlPlaneLoadBalancer.scheme", &["set"], PUBLISHED),
    ("controlPlaneLoadBalancer.loadBalancerType", &["set", "change"], PUBLISHED),
    (
        "controlPlaneLoadBalancer.loadBalancerType",
        &["revert"],
        "a rule for network load balancers stays in the group lb",
    ),
    ("controlPlaneLoadBalancer.targetGroupIPType", &["set"], ADDRESS_TYPE),
    ("controlPlaneLoadBalancer.additionalListeners[].targetGroupIPType", &["set"], ADDRESS_TYPE),
    ("secondaryControlPlaneLoadBalancer.targetGroupIPType", &["set"], ADDRESS_TYPE),
    ("controlPlaneLoadBalancer.additionalListeners", &["refuse"], LISTENERS),
    ("controlPlaneLoadBalancer.additionalListeners[].port", &["refuse"], LISTENERS),
    ("controlPlaneLoadBalancer.additionalListeners[].protocol", &["refuse"], LISTENERS),
    (
        "secondaryControlPlaneLoadBalancer.name",
        &["set", "change", "revert"],
        "clients may use the name",
    ),
    ("secondaryControlPlaneLoadBalancer.additionalListeners", &["refuse"], LISTENERS),
    ("secondaryControlPlaneLoadBalancer.additionalListeners[].port", &["refuse"], LISTENERS),
    ("secondaryControlPlaneLoadBalancer.additionalListeners[].protocol", &["refuse"], LISTENERS),
    ("sshKeyName", &["set", "change"], LAUNCHED),
    ("bastion.instanceType", &["set", "change"], LAUNCHED),
    ("bastion.ami", &["set", "change"], LAUNCHED),
];
