//! [`Spec`]: an AWSCluster as its object says it, of either dialect, in texts. `Desired::from_spec`
//! reads it. [`SpecError`]: what is wrong with it, before anything is written to AWS.
#![allow(missing_docs, reason = "most fields have the names that AWS or the CRD gives them")]

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::identity::{Identity, Tags};
use crate::load_balancers::Scheme;
use crate::rule::Role;

/// The API version in which a Cluster is written, and whose defaults apply to it. Cluster API's v1alpha2 and v1beta2
/// say the same things by other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// v1alpha2, Cluster API 0.2.
    V1Alpha2,
    /// v1beta2, Cluster API since 1.11.
    V1Beta2,
}

impl Dialect {
    /// The dialect of an `apiVersion`: everything newer than v1alpha2 speaks as v1beta2 does.
    pub fn of_version(api_version: &str) -> Self {
        if api_version.ends_with("/v1alpha2") { Self::V1Alpha2 } else { Self::V1Beta2 }
    }

    /// The dialect of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V1Alpha2, Self::V1Beta2].into_iter().find(|dialect| dialect.name() == name)
    }

    /// The version, as in an `apiVersion`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1Alpha2 => "v1alpha2",
            Self::V1Beta2 => "v1beta2",
        }
    }
}

/// The type of a zone. Local zones and wavelength zones are edge zones: far from the region, with little
/// of what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::enum_variant_names, reason = "AWS names them so")]
pub enum ZoneType {
    AvailabilityZone,
    LocalZone,
    WavelengthZone,
}

impl ZoneType {
    /// The values of AWS and in objects.
    pub const WORDS: [&str; 3] = ["availability-zone", "local-zone", "wavelength-zone"];

    /// Reads one of [`Self::WORDS`].
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::AvailabilityZone, Self::LocalZone, Self::WavelengthZone];
        all.into_iter().find(|it| it.word() == word)
    }

    /// The value of AWS and in objects.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// A zone of the region, as AWS describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    pub name: String,
    pub zone_type: ZoneType,
    /// The availability zone through which an edge zone is managed.
    #[serde(rename = "parentZoneName", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A zone of the region, and whether the account may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundZone {
    /// The zone.
    pub zone: Zone,
    /// The zone group, which an account opts in to.
    pub group: String,
    /// Whether the account has opted in, or need not.
    pub is_opted_in: bool,
    /// Whether its state is `available`.
    pub is_available: bool,
}

impl FoundZone {
    /// Whether it is an availability zone in which we may work, so that default subnets may be in it.
    pub fn is_default(&self) -> bool {
        self.zone.zone_type == ZoneType::AvailabilityZone && self.is_opted_in && self.is_available
    }
}

/// Whether a name is that of a wavelength zone, such as us-east-1-wl1-bos-wlz-1.
pub(crate) fn names_wavelength(zone: &str) -> bool {
    zone.contains("-wlz-")
}

/// The edge zones of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeZones {
    pub region: String,
    /// Zones of any type that AWS was asked about.
    pub known: Vec<Zone>,
}

impl EdgeZones {
    /// What AWS says of a zone.
    pub(crate) fn known(&self, zone: &str) -> Option<&Zone> {
        self.known.iter().find(|it| it.name == zone)
    }

    /// The edge zone of this name; none where it is no edge zone. Where AWS was not asked, the name tells:
    /// us-west-2a, us-west-2-lax-1a and us-east-1-wl1-bos-wlz-1 are an availability zone, a local zone and
    /// a wavelength zone.
    pub(crate) fn find(&self, zone: &str) -> Option<Zone> {
        let found = self.known(zone).cloned().or_else(|| {
            let place = zone.strip_prefix(&self.region)?.strip_prefix('-')?;
            let zone_type = if names_wavelength(place) {
                ZoneType::WavelengthZone
            } else {
                ZoneType::LocalZone
            };
            Some(Zone { name: zone.to_owned(), zone_type, parent: None })
        });
        found.filter(|it| it.zone_type != ZoneType::AvailabilityZone)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetSpec {
    /// `subnet-…` of one that exists, or the name that a new one shall have.
    pub id: Option<String>,
    pub cidr_block: Option<String>,
    pub availability_zone: Option<String>,
    /// Whether it has a route to the internet gateway.
    pub is_public: bool,
    /// Whether it has an IPv6 CIDR, in a VPC that has one.
    pub is_ipv6: bool,
    /// That CIDR; the next free one when it is not given.
    pub ipv6_cidr_block: Option<String>,
    /// The type of its zone, which AWS has to confirm.
    pub zone_type: Option<ZoneType>,
    /// The parent of its zone, which AWS has to confirm.
    pub parent_zone: Option<String>,
    /// More tags.
    pub tags: Tags,
}

/// How many NAT gateways there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatMode {
    /// One in each zone that has a private subnet.
    #[default]
    PerZone,
    /// One for all.
    Single,
    /// None: private subnets have no route out.
    None,
    /// One for all, in all zones, which AWS places. It is never a default.
    Regional,
}

impl NatMode {
    /// The values in objects.
    pub const WORDS: [&str; 4] = ["PerAZ", "Single", "None", "Regional"];

    /// The values in flags, which are for objects that name no mode.
    pub const DEFAULTS: [&str; 3] = ["PerAZ", "Single", "None"];

    /// Reads one of [`Self::WORDS`].
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "PerAZ" => Some(Self::PerZone),
            "Single" => Some(Self::Single),
            "None" => Some(Self::None),
            "Regional" => Some(Self::Regional),
            _ => None,
        }
    }
}

/// An ingress rule of the spec. Its sources add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngressRuleSpec {
    /// The description, for people.
    pub description: String,
    /// `tcp`, `udp`, `icmp`, `icmpv6`, `-1` or a number.
    pub protocol: String,
    pub from_port: i32,
    pub to_port: i32,
    /// Addresses, of either family.
    pub cidr_blocks: Vec<String>,
    /// Ids of security groups.
    pub source_group_ids: Vec<String>,
    /// Groups of the cluster.
    pub source_roles: Vec<Role>,
    /// The public addresses of the NAT gateways.
    pub from_nat_gateways: bool,
}

impl IngressRuleSpec {
    pub(crate) fn has_source(&self) -> bool {
        !self.cidr_blocks.is_empty()
            || !self.source_group_ids.is_empty()
            || !self.source_roles.is_empty()
            || self.from_nat_gateways
    }
}

/// Rules that the network plug-in needs between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CniSpec {
    /// Calico, which is what upstream assumes.
    Calico,
    /// Rules between control plane and nodes; their sources are ignored.
    Rules(Vec<IngressRuleSpec>),
    /// Pod addresses are of the VPC: everything between control plane and nodes.
    AmazonVpc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancerKind {
    Classic,
    Network,
}

/// A check of the spec that overrides parts of the default one. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthCheckSpec {
    /// `TCP`, `SSL`, `HTTP` or `HTTPS`.
    pub protocol: Option<String>,
    pub path: Option<String>,
    /// The time between two health checks, in seconds.
    pub interval: Option<u32>,
    /// Until a check counts as failed.
    pub timeout: Option<u32>,
    /// Checks in a row until an instance is well.
    pub healthy: Option<u32>,
    /// Checks in a row until it is not.
    pub unhealthy: Option<u32>,
}

/// A port of a network load balancer besides that of the API server. Its protocol is TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerSpec {
    /// The port of the listener and of the instances.
    pub port: u16,
    pub health_check: HealthCheckSpec,
    /// The port that is checked, when it is not that of the listener.
    pub check_port: Option<u16>,
    /// Whether targets are reached by IPv6; by the subnets when it is not given.
    pub ipv6_targets: Option<bool>,
}

/// A load balancer of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerSpec {
    pub kind: LoadBalancerKind,
    /// Name, when it differs from the one that upstream gives.
    pub name: Option<String>,
    pub scheme: Scheme,
    /// Ids or names of its subnets, when they are not the first of each zone.
    pub subnets: Vec<String>,
    /// Every node of it serves all zones.
    pub cross_zone: bool,
    pub health_check: HealthCheckSpec,
    /// More security groups, by id.
    pub additional_groups: Vec<String>,
    /// CIDRs that may reach it; empty means all.
    pub ingress_rules: Vec<IngressRuleSpec>,
    /// Instances see the address of the client (network load balancers only).
    pub preserve_client_ip: bool,
    /// Whether targets are reached by IPv6 (network load balancers only); by the subnets when it is not given.
    pub ipv6_targets: Option<bool>,
    /// More ports (network load balancers only).
    pub listeners: Vec<ListenerSpec>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BastionSpec {
    /// CIDRs that may reach it; empty means all.
    pub allowed_cidr_blocks: Vec<String>,
    /// Whether every CIDR is refused.
    pub disable_ingress_rules: bool,
    pub instance_type: Option<String>,
    /// Image; without it the image is looked up.
    pub image: Option<String>,
    pub key: Option<String>,
}

/// An AWSCluster, with the defaults of its dialect for what is present and what is not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in the object or a flag"
)]
pub struct Spec {
    /// The owner of the resources.
    pub identity: Identity,
    pub namespace: String,
    /// The version of upstream whose defaults apply.
    pub dialect: Dialect,
    pub region: String,
    /// The zones of the region, in order; used when the spec names no subnets.
    pub zones: Vec<String>,
    /// The zones of the spec that AWS was asked about.
    pub known_zones: Vec<Zone>,
    /// Port of the API server as clients see it.
    pub api_port: u16,
    /// More tags, on everything.
    pub additional_tags: Tags,
    /// Keys that an earlier spec put into [`additional_tags`](Self::additional_tags).
    pub applied_tags: BTreeSet<String>,
    /// The VPC, when it exists already.
    pub vpc_id: Option<String>,
    pub vpc_cidr: Option<String>,
    /// The VPC has an IPv6 CIDR, which AWS chooses.
    pub ipv6: bool,
    /// More CIDRs of the VPC.
    pub secondary_cidrs: Vec<String>,
    /// The subnets; default ones when empty.
    pub subnets: Vec<SubnetSpec>,
    /// How many NAT gateways.
    pub nat_mode: NatMode,
    /// The zone of the only NAT gateway.
    pub nat_zone: Option<String>,
    /// The needs of the network plug-in.
    pub cni: CniSpec,
    /// More rules for the control plane.
    pub control_plane_rules: Vec<IngressRuleSpec>,
    /// More rules for the nodes.
    pub node_rules: Vec<IngressRuleSpec>,
    /// CIDRs that may reach node ports; empty means all.
    pub node_port_cidr_blocks: Vec<String>,
    /// Security groups that are used as they are, by id.
    pub group_overrides: BTreeMap<Role, String>,
    /// Rules of others in our groups stay.
    pub keep_foreign_rules: bool,
    /// Owned subnets that the spec does not name are deleted.
    pub prune_subnets: bool,
    /// The load balancer; none when the endpoint is given from outside.
    pub load_balancer: Option<LoadBalancerSpec>,
    /// The second load balancer, which is not the endpoint.
    pub secondary_load_balancer: Option<Box<LoadBalancerSpec>>,
    /// The name of the load balancer was published: a new load balancer would have another name.
    pub endpoint_published: bool,
    /// A lost load balancer may be replaced all the same.
    pub allow_load_balancer_recreate: bool,
    pub bastion: Option<BastionSpec>,
}

/// One thing that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {path}: {problem}")]
pub struct SpecError {
    /// The field, as in the newer dialect, from `spec` on.
    pub path: String,
    /// The error and the remedy.
    pub problem: String,
}

impl SpecError {
    /// An error about the field at `path`.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}
