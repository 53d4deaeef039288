//! The resources as AWS describes them, cut down to what the plan looks at. The executor makes them
//! from the answers of describe calls; nothing here is taken from our own objects.
#![allow(missing_docs, reason = "most fields have the names that AWS or the CRD gives them")]

use std::net::Ipv4Addr;

use cidr::IpNet;

use crate::identity::Tags;
use crate::load_balancers::{ClassicLoadBalancer, NetworkLoadBalancer, TargetGroup};
use crate::rule::Rule;

/// A resource of any kind.
pub trait AwsResource {
    /// Id; ARN or name of what belongs to a load balancer.
    fn id(&self) -> &str;
    /// The VPC that the resource lies in.
    fn vpc(&self) -> Option<&str>;
    /// Tags, as far as they were read.
    fn known_tags(&self) -> Option<&Tags>;
}

macro_rules! aws_resource {
    ($kind:ident, |$found:ident| $id:expr, $vpc:expr, $tags:expr) => {
        #[allow(unused_variables, reason = "not every kind lies in a VPC and has tags")]
        impl AwsResource for $kind {
            fn id(&self) -> &str {
                let $found = self;
                &$id
            }

            fn vpc(&self) -> Option<&str> {
                let $found = self;
                $vpc
            }

            fn known_tags(&self) -> Option<&Tags> {
                let $found = self;
                $tags
            }
        }
    };
}

aws_resource!(Vpc, |found| found.id, Some(&found.id), Some(&found.tags));
aws_resource!(Subnet, |found| found.id, Some(&found.vpc), Some(&found.tags));
aws_resource!(InternetGateway, |it| it.id, it.attached_to.as_deref(), Some(&it.tags));
aws_resource!(Address, |found| found.id, None, Some(&found.tags));
aws_resource!(NatGateway, |found| found.id, Some(&found.vpc), Some(&found.tags));
aws_resource!(RouteTable, |found| found.id, Some(&found.vpc), Some(&found.tags));
aws_resource!(SecurityGroup, |found| found.id, Some(&found.vpc), Some(&found.tags));
aws_resource!(Instance, |found| found.id, Some(&found.vpc), Some(&found.tags));
aws_resource!(ClassicLoadBalancer, |found| found.name, Some(&found.vpc), found.tags.as_ref());
aws_resource!(NetworkLoadBalancer, |found| found.arn, Some(&found.vpc), Some(&found.tags));
aws_resource!(TargetGroup, |found| found.arn, Some(&found.vpc), Some(&found.tags));
aws_resource!(NetworkInterface, |found| found.id, None, None);

/// The IPv6 CIDR of a VPC, which AWS chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Range {
    /// For a moment after the creation.
    Associating,
    Associated(IpNet),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondaryCidr {
    pub cidr: IpNet,
    /// Whether the state is `associated`, not `associating`.
    pub associated: bool,
    /// AWS accepted it, and could not associate it.
    pub failed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vpc {
    pub id: String,
    pub cidr: IpNet,
    /// More IPv4 CIDRs.
    pub secondary: Vec<SecondaryCidr>,
    pub ipv6: Option<Ipv6Range>,
    /// More IPv6 CIDRs that can be used, which others have associated; in order.
    pub more_ipv6: Vec<IpNet>,
    /// Whether AWS resolves names in it; none when the attribute was not read.
    pub dns_support: Option<bool>,
    /// Whether instances in it get names; none when the attribute was not read.
    pub dns_hostnames: Option<bool>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    pub id: String,
    pub vpc: String,
    pub cidr: IpNet,
    /// IPv6 CIDR.
    pub ipv6: Option<IpNet>,
    pub zone: String,
    /// Instances in it get a public address by default.
    pub map_public_ip: bool,
    /// Instances in it get an IPv6 address by default.
    pub assigns_ipv6: bool,
    /// Whether the state is `available`, not `pending`.
    pub available: bool,
    pub tags: Tags,
}

/// An internet gateway, or an egress-only one or a carrier gateway, which are attached from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternetGateway {
    pub id: String,
    /// The VPC it is attached to.
    pub attached_to: Option<String>,
    /// A carrier gateway takes its time until routes may lead to it.
    pub pending: bool,
    pub tags: Tags,
}

/// An elastic IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub id: String,
    pub ip: Ipv4Addr,
    /// `eipassoc-…` while something uses it.
    pub association: Option<String>,
    pub tags: Tags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatState {
    /// Being made, for minutes.
    Pending,
    Available,
    /// The creation has failed for good.
    Failed,
    /// On its way out, for minutes.
    Deleting,
    /// Gone, and shown for about an hour.
    Deleted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatGateway {
    pub id: String,
    pub vpc: String,
    /// Empty for a regional one.
    pub subnet: String,
    /// Whether it is in all zones, with zones and addresses that AWS chooses.
    pub is_regional: bool,
    /// The route table that AWS has made for a regional one. It goes with the gateway.
    pub route_table: Option<String>,
    /// Allocation ids of its elastic IPs, also while it is pending.
    pub allocations: Vec<String>,
    /// Public addresses, as far as AWS shows them.
    pub public_ips: Vec<Ipv4Addr>,
    pub state: NatState,
    /// `FailureCode: FailureMessage` of a failed one.
    pub failure: Option<String>,
    pub tags: Tags,
}

impl NatGateway {
    /// Whether the NAT gateway is available or pending.
    pub fn is_live(&self) -> bool {
        matches!(self.state, NatState::Pending | NatState::Available)
    }

    /// Whether the NAT gateway no longer uses its subnet and its addresses.
    pub fn is_gone(&self) -> bool {
        self.state == NatState::Deleted
    }
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An internet gateway (or another gateway whose id begins with `igw-`).
    InternetGateway(String),
    NatGateway(String),
    EgressOnlyGateway(String),
    CarrierGateway(String),
    /// Anything else, by its id: `local`, a transit gateway, an interface.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination as AWS writes it: a CIDR or the id of a prefix list.
    pub destination: String,
    pub target: Target,
    /// The target is gone.
    pub blackhole: bool,
}

/// The use of a route table by a subnet, or by the whole VPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    pub id: String,
    /// The subnet; none for the association that makes a table the main one.
    pub subnet: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    pub id: String,
    pub vpc: String,
    /// Subnets that use the table.
    pub associations: Vec<Association>,
    pub routes: Vec<Route>,
    pub tags: Tags,
}

/// The destination of the route for IPv4 that has no better one.
pub const DEFAULT_ROUTE: &str = "0.0.0.0/0";

/// The destination of the route for IPv6 that has no better one.
pub const IPV6_ROUTE: &str = "::/0";

impl RouteTable {
    /// The route to a destination.
    pub fn route_to(&self, destination: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.destination == destination)
    }

    /// Whether the table is the main table of its VPC.
    pub fn is_main(&self) -> bool {
        self.associations.iter().any(|association| association.subnet.is_none())
    }

    /// The association of a subnet with this table.
    pub fn association_of(&self, subnet: &str) -> Option<&Association> {
        self.associations.iter().find(|found| found.subnet.as_deref() == Some(subnet))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    pub id: String,
    pub vpc: String,
    /// Name, unique in the VPC.
    pub name: String,
    /// Ingress rules, each with one source.
    pub rules: Vec<Rule>,
    pub tags: Tags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    Pending,
    Running,
    /// Stopping or stopped: it may be started again.
    Stopped,
    /// On its way out.
    ShuttingDown,
    /// Gone, and shown for about an hour.
    Terminated,
}

/// An instance with the role of a bastion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub id: String,
    /// The VPC it lies in; empty once it is terminated.
    pub vpc: String,
    pub state: InstanceState,
    /// When it was launched, in seconds since the Unix epoch.
    pub launched: u64,
    pub public_ip: Option<Ipv4Addr>,
    pub tags: Tags,
}

impl Instance {
    /// Whether the instance is pending or running.
    pub fn is_live(&self) -> bool {
        !matches!(self.state, InstanceState::ShuttingDown | InstanceState::Terminated)
    }
}

/// A network interface, read to name what blocks a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    pub id: String,
    /// Whether the interface is unused: its status is `available`.
    pub available: bool,
    /// Description of its creator, such as `ELB seed-apiserver`.
    pub description: String,
    pub requester: String,
    pub groups: Vec<String>,
}
