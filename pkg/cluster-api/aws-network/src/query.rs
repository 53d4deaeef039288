//! [`Query`]: one thing to read from AWS. Queries of several clusters of an account and region can
//! be merged by the executor, since each says what it is about and answers are filtered again on
//! our side.

use std::fmt;

use crate::identity::Tags;
use crate::load_balancers::{
    ClassicAttributes, ClassicLoadBalancer, NetworkLoadBalancer, TargetAttributes, TargetGroup,
};
use crate::memory::{LogicalId, Memory};
use crate::resources::{
    Address, Instance, InternetGateway, NatGateway, NetworkInterface, RouteTable, SecurityGroup,
    Subnet, Vpc,
};

/// Where resources are looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// With the tag of the cluster, wherever they lie.
    Tagged,
    /// In this VPC, whatever their tags.
    Vpc(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tagged => formatter.write_str("the cluster"),
            Self::Vpc(id) => formatter.write_str(id),
        }
    }
}

/// The load balancers to read: those that match any field.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookup {
    /// Names. A name without a load balancer is not an error.
    pub names: Vec<String>,
    /// VPC.
    pub vpc: Option<String>,
}

/// One thing to read. A number in brackets is of calls, where it is not one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// VPCs with the tag of the cluster.
    TaggedVpcs,
    /// The VPC of this id; no such VPC is an empty answer, not an error.
    Vpc(String),
    /// DNS attributes of a VPC (2 calls).
    VpcAttributes(String),
    /// Subnets.
    Subnets(Scope),
    /// Internet gateways with the tag, or attached to the VPC.
    InternetGateways(Scope),
    /// Egress-only internet gateways. AWS has no filter by VPC (cluster-api-provider-aws#5684), so
    /// those of a VPC are found among all of the region.
    EgressOnlyGateways(Scope),
    /// Carrier gateways that exist.
    CarrierGateways(Scope),
    /// Elastic IPs with the tag.
    Addresses,
    /// NAT gateways in every state.
    NatGateways(Scope),
    /// Route tables.
    RouteTables(Scope),
    /// Security groups.
    SecurityGroups(Scope),
    /// Instances with the tag and the role of a bastion, in every state; and the recorded one,
    /// which may have lost its role.
    Bastions(Option<String>),
    /// The newest image for a bastion.
    BastionImage,
    /// Classic load balancers; without attributes and tags.
    ClassicLoadBalancers(Lookup),
    /// The attributes of a classic load balancer; the tags are another query.
    ClassicAttributes(String),
    /// The tags of classic load balancers (1 for 20 names).
    ClassicTags(Vec<String>),
    /// Load balancers of the second generation with their listeners and tags, and the target groups
    /// with a name of the lookup or behind them (1 for each load balancer, for 20 tagged ARNs, and
    /// for each page of load balancers or target groups; 1 more for target groups by ARN).
    NetworkLoadBalancers(Lookup),
    /// The attributes of a load balancer of the second generation, and of target groups (1 for
    /// each).
    NetworkAttributes {
        /// ARN of the load balancer.
        load_balancer: String,
        /// ARNs of the target groups.
        target_groups: Vec<String>,
    },
    /// Interfaces in a VPC.
    NetworkInterfaces(String),
    /// Endpoints, VPN gateways, egress-only gateways, carrier gateways and network ACLs in a VPC (5).
    Residents(String),
}

impl Query {
    /// Reads the bastion: by its tags, and by its id where one is recorded.
    pub(crate) fn bastion(memory: &Memory) -> Self {
        Self::Bastions(memory.id(&LogicalId::Bastion).map(str::to_owned))
    }
}

/// The text of a query, for people.
impl fmt::Display for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TaggedVpcs => formatter.write_str("VPCs of the cluster"),
            Self::Vpc(id) => formatter.write_str(id),
            Self::VpcAttributes(id) => write!(formatter, "attributes of {id}"),
            Self::Subnets(scope) => write!(formatter, "subnets of {scope}"),
            Self::InternetGateways(scope) => write!(formatter, "internet gateways of {scope}"),
            Self::EgressOnlyGateways(scope) => {
                write!(formatter, "egress-only internet gateways of {scope}")
            }
            Self::CarrierGateways(scope) => write!(formatter, "carrier gateways of {scope}"),
            Self::Addresses => formatter.write_str("elastic IPs of the cluster"),
            Self::NatGateways(scope) => write!(formatter, "NAT gateways of {scope}"),
            Self::RouteTables(scope) => write!(formatter, "route tables of {scope}"),
            Self::SecurityGroups(scope) => write!(formatter, "security groups of {scope}"),
            Self::Bastions(_) => formatter.write_str("bastions of the cluster"),
            Self::BastionImage => formatter.write_str("images for a bastion"),
            Self::ClassicLoadBalancers(_) => formatter.write_str("classic load balancers"),
            Self::ClassicAttributes(name) => write!(formatter, "attributes of {name}"),
            Self::ClassicTags(_) => formatter.write_str("tags of classic load balancers"),
            Self::NetworkLoadBalancers(_) => formatter.write_str("network load balancers"),
            Self::NetworkAttributes { load_balancer, .. } => {
                write!(formatter, "attributes of {load_balancer}")
            }
            Self::NetworkInterfaces(vpc) => write!(formatter, "network interfaces of {vpc}"),
            Self::Residents(vpc) => write!(formatter, "endpoints, gateways and ACLs of {vpc}"),
        }
    }
}

/// The answer to a [`Query`] of the same kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what the query of its name asks for")]
pub enum Reply {
    Vpcs(Vec<Vpc>),
    VpcAttributes {
        vpc: String,
        dns_support: bool,
        dns_hostnames: bool,
    },
    Subnets(Vec<Subnet>),
    InternetGateways(Vec<InternetGateway>),
    EgressOnlyGateways(Vec<InternetGateway>),
    CarrierGateways(Vec<InternetGateway>),
    Addresses(Vec<Address>),
    NatGateways(Vec<NatGateway>),
    RouteTables(Vec<RouteTable>),
    SecurityGroups(Vec<SecurityGroup>),
    Bastions(Vec<Instance>),
    BastionImage(Option<String>),
    ClassicLoadBalancers(Vec<ClassicLoadBalancer>),
    ClassicAttributes {
        name: String,
        attributes: Option<ClassicAttributes>,
    },
    ClassicTags(Vec<(String, Tags)>),
    NetworkLoadBalancers(Vec<NetworkLoadBalancer>, Vec<TargetGroup>),
    NetworkAttributes {
        load_balancer: String,
        cross_zone: bool,
        target_groups: Vec<(String, TargetAttributes)>,
    },
    NetworkInterfaces(Vec<NetworkInterface>),
    Residents(Vec<String>),
}
