//! The resources as AWS describes them, cut down to what the plan looks at. The executor makes them
//! from the answers of describe calls; nothing here is taken from our own objects.

use std::net::Ipv4Addr;

use cidr::IpNet;

use crate::identity::Tags;
use crate::rule::Rule;

/// A VPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vpc {
    /// `vpc-…`.
    pub id: String,
    /// Primary CIDR.
    pub cidr: IpNet,
    /// Whether AWS resolves names in it; none when the attribute was not read.
    pub dns_support: Option<bool>,
    /// Whether instances in it get names; none when the attribute was not read.
    pub dns_hostnames: Option<bool>,
    /// Tags.
    pub tags: Tags,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// `subnet-…`.
    pub id: String,
    /// The VPC it lies in.
    pub vpc: String,
    /// IPv4 CIDR.
    pub cidr: IpNet,
    /// Availability zone.
    pub zone: String,
    /// Instances in it get a public address by default.
    pub map_public_ip: bool,
    /// Whether the state is `available`, not `pending`.
    pub available: bool,
    /// Tags.
    pub tags: Tags,
}

/// An internet gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternetGateway {
    /// `igw-…`.
    pub id: String,
    /// The VPC it is attached to.
    pub attached_to: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// An elastic IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `eipalloc-…`.
    pub id: String,
    /// The address.
    pub ip: Ipv4Addr,
    /// `eipassoc-…` while something uses it.
    pub association: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// The state of a NAT gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatState {
    /// Being made, for minutes.
    Pending,
    /// In service.
    Available,
    /// The creation has failed for good.
    Failed,
    /// On its way out, for minutes.
    Deleting,
    /// Gone, and shown for about an hour.
    Deleted,
}

/// A NAT gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatGateway {
    /// `nat-…`.
    pub id: String,
    /// The VPC it lies in.
    pub vpc: String,
    /// The subnet it lies in.
    pub subnet: String,
    /// Allocation ids of its elastic IPs, also while it is pending.
    pub allocations: Vec<String>,
    /// Public addresses, as far as AWS shows them.
    pub public_ips: Vec<Ipv4Addr>,
    /// State.
    pub state: NatState,
    /// `FailureCode: FailureMessage` of a failed one.
    pub failure: Option<String>,
    /// Tags.
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
    /// A NAT gateway.
    NatGateway(String),
    /// Anything else, by its id: `local`, a transit gateway, an interface.
    Other(String),
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination as AWS writes it: a CIDR or the id of a prefix list.
    pub destination: String,
    /// Where it leads.
    pub target: Target,
    /// The target is gone.
    pub blackhole: bool,
}

/// The use of a route table by a subnet, or by the whole VPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// `rtbassoc-…`.
    pub id: String,
    /// The subnet; none for the association that makes a table the main one.
    pub subnet: Option<String>,
}

/// A route table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    /// `rtb-…`.
    pub id: String,
    /// The VPC it lies in.
    pub vpc: String,
    /// Subnets that use the table.
    pub associations: Vec<Association>,
    /// Routes.
    pub routes: Vec<Route>,
    /// Tags.
    pub tags: Tags,
}

/// The destination of the only route that we write.
pub const DEFAULT_ROUTE: &str = "0.0.0.0/0";

impl RouteTable {
    /// The route for everything that has no better one.
    pub fn default_route(&self) -> Option<&Route> {
        self.routes.iter().find(|route| route.destination == DEFAULT_ROUTE)
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

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    /// `sg-…`.
    pub id: String,
    /// The VPC it lies in.
    pub vpc: String,
    /// Name, unique in the VPC.
    pub name: String,
    /// Ingress rules, each with one source.
    pub rules: Vec<Rule>,
    /// Tags.
    pub tags: Tags,
}

/// The state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// In service.
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
    /// `i-…`.
    pub id: String,
    /// The VPC it lies in; empty once it is terminated.
    pub vpc: String,
    /// State.
    pub state: InstanceState,
    /// When it was launched, in seconds since the Unix epoch.
    pub launched: u64,
    /// Public address.
    pub public_ip: Option<Ipv4Addr>,
    /// Tags.
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
    /// `eni-…`.
    pub id: String,
    /// Nothing uses it: its status is `available`.
    pub available: bool,
    /// Description of its creator, such as `ELB seed-apiserver`.
    pub description: String,
    /// Creator.
    pub requester: String,
    /// Ids of its security groups.
    pub groups: Vec<String>,
}
