//! [`Part`] and [`Reason`]: the words in which a plan is reported, which are upstream's where it
//! has them.

/// A part of a cluster's network, each with a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The VPC.
    Vpc,
    /// The subnets.
    Subnets,
    /// The internet gateway.
    InternetGateway,
    /// NAT gateways and their elastic IPs.
    NatGateways,
    /// Route tables.
    RouteTables,
    /// Security groups.
    SecurityGroups,
    /// The bastion, which nothing waits for.
    Bastion,
    /// The load balancer of the API server.
    LoadBalancer,
    /// The removal of everything.
    Deletion,
}

impl Part {
    /// The parts that a cluster is made of.
    pub const OF_A_CLUSTER: [Self; 8] = [
        Self::Vpc,
        Self::Subnets,
        Self::InternetGateway,
        Self::NatGateways,
        Self::RouteTables,
        Self::SecurityGroups,
        Self::Bastion,
        Self::LoadBalancer,
    ];

    /// The type of its condition.
    pub fn condition(self) -> &'static str {
        match self {
            Self::Vpc => "VpcReady",
            Self::Subnets => "SubnetsReady",
            Self::InternetGateway => "InternetGatewayReady",
            Self::NatGateways => "NatGatewaysReady",
            Self::RouteTables => "RouteTablesReady",
            Self::SecurityGroups => "ClusterSecurityGroupsReady",
            Self::Bastion => "BastionHostReady",
            Self::LoadBalancer => "LoadBalancerReady",
            Self::Deletion => "Deleting",
        }
    }

    /// Whether the cluster is ready only with it.
    pub fn is_mandatory(self) -> bool {
        self != Self::Bastion
    }
}

/// Why something does not go on, or is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Two VPCs are ours and both are in use.
    DuplicateVpc,
    /// What we need has a name, a CIDR or an attachment that somebody else holds.
    OwnershipConflict,
    /// What the spec names does not exist.
    NotFound,
    /// What exists is not what the spec says, and cannot be changed.
    Immutable,
    /// The spec cannot be followed here.
    InvalidConfiguration,
    /// A zone has private subnets and no public one.
    NoNatForZone,
    /// All private subnets depend on one zone.
    NatSingleZone,
    /// A NAT gateway could not be made; another is tried.
    NatGatewayFailed,
    /// An owned subnet is not in the spec.
    SurplusSubnet,
    /// The load balancer is gone and clients know its name.
    LoadBalancerMissing,
    /// The load balancer could not be made, and AWS will not repair it.
    LoadBalancerFailed,
    /// The load balancer was made without security groups, and AWS adds none later.
    NoSecurityGroups,
    /// No image for the bastion was found.
    ImageNotFound,
    /// Something is still used by what we may not delete.
    InUse,
    /// AWS refuses more of something.
    QuotaExceeded,
    /// AWS refuses the call to these credentials.
    PermissionDenied,
    /// AWS refuses all calls, for the local clock is off.
    ClockSkew,
    /// AWS asks for fewer calls.
    Throttled,
    /// AWS failed, or its answer was lost.
    Unavailable,
    /// AWS refuses the call for another reason.
    Refused,
}

impl Reason {
    /// The word in conditions and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateVpc => "DuplicateVpc",
            Self::OwnershipConflict => "OwnershipConflict",
            Self::NotFound => "NotFound",
            Self::Immutable => "Immutable",
            Self::InvalidConfiguration => "InvalidConfiguration",
            Self::NoNatForZone => "NoNatForZone",
            Self::NatSingleZone => "NatSingleZone",
            Self::NatGatewayFailed => "NatGatewayFailed",
            Self::SurplusSubnet => "SurplusSubnet",
            Self::LoadBalancerMissing => "LoadBalancerMissing",
            Self::LoadBalancerFailed => "LoadBalancerFailed",
            Self::NoSecurityGroups => "NoSecurityGroups",
            Self::ImageNotFound => "ImageNotFound",
            Self::InUse => "InUse",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::PermissionDenied => "PermissionDenied",
            Self::ClockSkew => "ClockSkew",
            Self::Throttled => "Throttled",
            Self::Unavailable => "Unavailable",
            Self::Refused => "Refused",
        }
    }

    /// Whether the part is ready all the same.
    pub fn is_advice(self) -> bool {
        matches!(self, Self::NatSingleZone | Self::SurplusSubnet | Self::NoSecurityGroups)
    }
}
