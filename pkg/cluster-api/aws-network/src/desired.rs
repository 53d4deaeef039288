//! [`Desired`]: what a cluster shall have on AWS. Its parts are read from texts once, in
//! `from_spec.rs`.
#![allow(missing_docs, reason = "most fields have the names that AWS or the CRD gives them")]

use std::collections::{BTreeMap, BTreeSet};

use cidr::IpNet;

use crate::identity::{Identity, Tags};
use crate::load_balancers::{HealthCheck, Scheme};
use crate::memory::{LogicalId, Memory};
use crate::observed::Observed;
use crate::rule::Role;
use crate::spec::{Dialect, EdgeZones, LoadBalancerKind, NatMode, SpecError, Zone, ZoneType};

/// The port of the API server on its instances, whatever the port of the load balancer.
pub const INSTANCE_PORT: u16 = 6443;

/// How upstream describes the rules of [`Role::Lb`] for network load balancers.
pub(crate) const NLB_TRAFFIC: &str = "Allow NLB traffic to the control plane instances";

/// Where a spec names groups that are used as they are.
pub(crate) const OVERRIDES: &str = "spec.network.securityGroupOverrides";

/// Where a spec names a VPC that exists already.
pub(crate) const VPC_ID: &str = "spec.network.vpc.id";

/// Where a spec names more CIDRs of the VPC.
pub(crate) const SECONDARY_CIDRS: &str = "spec.network.vpc.secondaryCidrBlocks";

/// Control planes, NAT gateways and load balancers are in availability zones only.
pub(crate) const NEEDS_REGULAR: &str = "requires a subnet in a regular zone";

/// How upstream describes the rules for clients of the API server.
pub(crate) const API: &str = "Kubernetes API";

/// The IPv6 CIDR of a subnet, a /64 of the VPC's, which AWS chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Block {
    Cidr(IpNet),
    /// The /64 with this number, from 0.
    Number(u8),
    /// The first one that no subnet has.
    Free,
}

/// A subnet that shall exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredSubnet {
    /// The id of a subnet that exists already.
    pub id: Option<String>,
    /// Name tag, when the spec gives one.
    pub name: Option<String>,
    /// The CIDR; `None` for a subnet that is known by its id.
    pub cidr: Option<IpNet>,
    /// The availability zone; `None` for a subnet that is known by its id.
    pub zone: Option<String>,
    /// Its zone, where that is an edge zone and the spec names it.
    pub edge: Option<Zone>,
    /// Whether it has a route to the internet gateway, or in a wavelength zone to the carrier gateway.
    pub public: bool,
    /// The IPv6 CIDR; `None` for a subnet with IPv4 only.
    pub ipv6: Option<Ipv6Block>,
    /// More tags; they win over ours.
    pub tags: Tags,
}

pub(crate) fn is_wavelength(zone: &Zone) -> bool {
    zone.zone_type == ZoneType::WavelengthZone
}

/// How many NAT gateways there shall be, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NatPolicy {
    /// One in each zone that has a private subnet.
    PerZone,
    /// One for all, in this zone or in that of the first public subnet.
    Single(Option<String>),
    None,
    /// One for all zones, which AWS places, in this region; whether the partition may have it.
    Regional {
        region: String,
        is_offered: bool,
    },
}

impl NatPolicy {
    /// The value in objects, as in [`NatMode::WORDS`].
    pub fn word(&self) -> &'static str {
        let [per_zone, single, none, regional] = NatMode::WORDS;
        match self {
            Self::PerZone => per_zone,
            Self::Single(_) => single,
            Self::None => none,
            Self::Regional { .. } => regional,
        }
    }
}

/// The source of a rule, before the ids of groups are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSource {
    Cidr(IpNet),
    /// Addresses, if the network uses their family: upstream allows `::/0` for each bastion.
    Clients(IpNet),
    /// All addresses, of IPv6 too where the VPC has it.
    Everybody,
    /// A security group, by id.
    Group(String),
    /// A security group of the cluster.
    Role(Role),
    /// The addresses of the VPC, of both families.
    Vpc,
    /// The public addresses of the NAT gateways.
    NatAddresses,
    /// The IPv6 addresses of the VPC, which traffic through an egress-only gateway keeps.
    VpcIpv6,
}

/// An ingress rule, before the ids of groups are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTemplate {
    /// The description, for people.
    pub description: String,
    /// Protocol, as in [`crate::RuleKey`].
    pub protocol: String,
    /// First and last port.
    pub ports: (i32, i32),
    /// Where traffic may come from.
    pub sources: Vec<RuleSource>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredGroups {
    /// The rules of each role. [`Role::Lb`] may have none, and then has rules of others.
    pub rules: BTreeMap<Role, Vec<RuleTemplate>>,
    /// Groups that are used as they are.
    pub overrides: BTreeMap<Role, String>,
    /// Rules of others stay.
    pub keep_foreign_rules: bool,
}

/// A listener of a network load balancer, with the target group that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredListener {
    pub port: u16,
    /// The name of the target group.
    pub target_group: String,
    /// The port of the instances.
    pub instance_port: u16,
    pub health_check: HealthCheck,
    /// Whether targets are reached by IPv6; by the subnets when it is not given.
    pub ipv6_targets: Option<bool>,
}

/// Which load balancer of the API server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The one whose name is the endpoint.
    Primary,
    /// The other one, with another scheme.
    Secondary,
}

impl Rank {
    /// Its field of the spec.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Primary => "spec.controlPlaneLoadBalancer",
            Self::Secondary => "spec.secondaryControlPlaneLoadBalancer",
        }
    }
}

/// A load balancer of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct DesiredLoadBalancer {
    pub rank: Rank,
    pub kind: LoadBalancerKind,
    pub name: String,
    pub scheme: Scheme,
    /// Ids or names of its subnets; the first of each zone when empty.
    pub subnets: Vec<String>,
    /// Whether the region has security groups for it.
    pub takes_groups: bool,
    /// More security groups, by id.
    pub additional_groups: Vec<String>,
    pub port: u16,
    pub health_check: HealthCheck,
    /// Every node serves all zones.
    pub cross_zone: bool,
    /// Instances see the address of the client (network load balancers only).
    pub preserve_client_ip: bool,
    /// Whether targets are reached by IPv6; by the subnets when it is not given.
    pub ipv6_targets: Option<bool>,
    /// Listeners on more ports (network load balancers only).
    pub additional_listeners: Vec<DesiredListener>,
    /// If it is missing it is made, although clients may know an earlier one.
    pub may_be_created: bool,
}

impl Desired {
    /// The policy in effect. Where AWS offers no regional NAT gateway it is that of `PerAZ`, if each
    /// zone with a private subnet has a public one. Otherwise it is `None`: no NAT gateway is changed.
    pub fn nat_in_effect(&self, memory: &Memory) -> Option<&NatPolicy> {
        static PER_ZONE: NatPolicy = NatPolicy::PerZone;
        match &self.nat {
            NatPolicy::Regional { is_offered, .. }
                if !is_offered || memory.regional_nat_refusal.is_some() =>
            {
                let (private, public) = (self.private_zones(), self.public_zones());
                let serves_edges = !public.is_empty() || !self.has_private_edges();
                (private.is_subset(&public) && serves_edges).then_some(&PER_ZONE)
            }
            policy => Some(policy),
        }
    }

    /// Zones with a public subnet.
    pub(crate) fn public_zones(&self) -> BTreeSet<String> {
        self.zones(true).collect()
    }

    /// Zones with a private subnet.
    pub(crate) fn private_zones(&self) -> BTreeSet<String> {
        self.zones(false).collect()
    }

    /// Availability zones of the subnets of a kind, in their order. NAT gateways are in no others.
    pub(crate) fn zones(&self, public: bool) -> impl Iterator<Item = String> {
        let of_kind = self.subnets.iter().filter(move |subnet| subnet.public == public);
        of_kind.filter(|subnet| subnet.edge.is_none()).filter_map(|subnet| subnet.zone.clone())
    }

    /// The edge zones of private subnets. They use NAT gateways of availability zones.
    pub(crate) fn private_edges(&self) -> impl Iterator<Item = &Zone> {
        self.subnets.iter().filter(|subnet| !subnet.public).filter_map(|it| it.edge.as_ref())
    }

    pub(crate) fn has_private_edges(&self) -> bool {
        self.private_edges().next().is_some()
    }

    /// Whether the VPC has a carrier gateway: it has a public subnet in a wavelength zone. The zone of one that
    /// the spec names by its id is that of the subnet on AWS.
    pub(crate) fn has_carrier_gateway(&self, observed: &Observed) -> bool {
        let seen_edge = |id: &String| self.edge_zones.find(&observed.subnets.of_id(id)?.zone);
        self.subnets.iter().filter(|subnet| subnet.public).any(|subnet| {
            let seen = || subnet.id.as_ref().and_then(seen_edge);
            subnet.edge.clone().or_else(seen).is_some_and(|zone| is_wavelength(&zone))
        })
    }

    /// The load balancers of the API server.
    pub(crate) fn load_balancers(&self) -> impl Iterator<Item = &DesiredLoadBalancer> {
        self.load_balancer.iter().chain(&self.secondary_load_balancer)
    }

    /// The names of the target groups of network load balancers. The first of each has the name of
    /// its load balancer.
    pub(crate) fn target_group_names(&self) -> Vec<String> {
        let is_network = |it: &&DesiredLoadBalancer| it.kind == LoadBalancerKind::Network;
        let balancers = self.load_balancers().filter(is_network);
        let listeners = balancers.flat_map(DesiredLoadBalancer::listeners);
        listeners.map(|listener| listener.target_group).collect()
    }
}

impl DesiredLoadBalancer {
    pub(crate) fn logical_id(&self) -> LogicalId {
        match self.rank {
            Rank::Primary => LogicalId::LoadBalancer,
            Rank::Secondary => LogicalId::NamedLoadBalancer(self.name.clone()),
        }
    }

    /// The listeners of a network load balancer, that of the API server first.
    pub(crate) fn listeners(&self) -> Vec<DesiredListener> {
        let of_api_server = DesiredListener {
            port: self.port,
            target_group: self.name.clone(),
            instance_port: INSTANCE_PORT,
            health_check: self.health_check.clone(),
            ipv6_targets: self.ipv6_targets,
        };
        [&[of_api_server], &*self.additional_listeners].concat()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredBastion {
    pub instance_type: String,
    /// Image; without it the image is looked up.
    pub image: Option<String>,
    pub key: Option<String>,
}

/// The resources that a cluster shall have on AWS.
#[allow(clippy::struct_excessive_bools, reason = "each says something else of the spec")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// The owner of the resources.
    pub identity: Identity,
    /// The version of upstream whose tags apply.
    pub dialect: Dialect,
    /// More tags, on everything.
    pub additional_tags: Tags,
    /// Tag keys that were ours and are not wanted any more.
    pub retired_tags: BTreeSet<String>,
    /// The VPC, when it exists already.
    pub vpc_id: Option<String>,
    /// CIDR of the VPC, when we create it.
    pub vpc_cidr: IpNet,
    /// The spec says that CIDR; it is the default one otherwise.
    pub names_vpc_cidr: bool,
    /// The VPC has an IPv6 CIDR, which AWS chooses.
    pub ipv6: bool,
    /// More IPv4 CIDRs of the VPC.
    pub secondary_cidrs: Vec<IpNet>,
    /// The spec names no subnets.
    pub has_default_subnets: bool,
    /// The subnets, in the order of the spec.
    pub subnets: Vec<DesiredSubnet>,
    pub edge_zones: EdgeZones,
    pub nat: NatPolicy,
    pub groups: DesiredGroups,
    pub load_balancer: Option<DesiredLoadBalancer>,
    pub secondary_load_balancer: Option<DesiredLoadBalancer>,
    pub bastion: Option<DesiredBastion>,
    /// Owned subnets that are not desired are deleted.
    pub prune_subnets: bool,
    /// What the spec says of edge zones and AWS does not confirm. It refuses a cluster that has nothing on
    /// AWS yet; the upkeep of another one goes on by AWS's answer.
    pub contradictions: Vec<SpecError>,
}
