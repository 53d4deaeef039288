//! [`Ending`]: what a plan for a deletion is made of, and whose what it sees is.

use std::collections::BTreeSet;

use crate::identity::{Identity, Ownership, Tags, shows_eks};
use crate::memory::{LogicalId, Memory, Timestamp};
use crate::observed::{Observed, Seen};
use crate::query::Scope;
use crate::resources::{AwsResource, InstanceState, NatGateway, Subnet};
use crate::spec::names_wavelength;

/// Where load balancers, target groups and security groups are deleted that Kubernetes' cloud
/// provider made for Services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceResources {
    /// Nowhere.
    Stay,
    /// In a VPC that is ours.
    #[default]
    GoWithOurVpc,
    /// In every VPC, the one that the spec names included.
    Go,
}

/// The input of a deletion. None of it comes from the shape of the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The owner of the resources.
    pub identity: Identity,
    /// The VPC of the spec, when that names one.
    pub vpc_id: Option<String>,
    /// The names that the load balancer may have.
    pub load_balancer_names: Vec<String>,
    /// Security groups that the spec names. They are the user's, whatever their tags.
    pub named_groups: BTreeSet<String>,
    /// Whether resources that Kubernetes' cloud provider made for Services are deleted.
    pub service_resources: ServiceResources,
    /// Interfaces in our VPC that nothing uses go too.
    pub deletes_free_interfaces: bool,
}

/// The input of a plan for a deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    /// The cluster to delete.
    pub removal: &'a Removal,
    /// The resources on AWS, as far as they were read.
    pub observed: &'a Observed,
    /// Creates of earlier reconciliations.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Ending<'a> {
    /// Resources of one kind that are ours.
    pub(super) fn ours<T: AwsResource>(&self, seen: &'a Seen<T>) -> impl Iterator<Item = &'a T> {
        let ending = *self;
        seen.all().iter().filter(move |found| ending.has(*found))
    }

    /// Whether a resource is known to be ours.
    pub(super) fn has(&self, found: &impl AwsResource) -> bool {
        found.known_tags().is_some_and(|tags| self.is_ours(tags, found.id()))
    }

    pub(super) fn is_ours(&self, tags: &Tags, id: &str) -> bool {
        let recorded = self.memory.has_recorded(id);
        let identity = &self.removal.identity;
        identity.ownership(tags, recorded) == Ownership::Ours
            && (recorded || identity.marks(tags) || !self.is_of_eks())
    }

    /// Whether an EKS cluster uses the network, which then cannot be adopted to be deleted.
    pub(super) fn is_of_eks(&self) -> bool {
        self.removal.identity.adopt
            && self.observed.security_groups.all().iter().any(|group| shows_eks(&group.tags))
    }

    /// Load balancers or target groups that go with the cluster: ours, and those that the cloud
    /// provider made for Services.
    pub(super) fn balancers<T: AwsResource>(
        &self,
        seen: &'a Seen<T>,
    ) -> impl Iterator<Item = &'a T> {
        let ending = *self;
        seen.all().iter().filter(move |found| {
            let is_of_service = |tags| ending.removal.identity.is_service_balancer(tags);
            ending.has(*found)
                || (found.known_tags().is_some_and(is_of_service)
                    && found.vpc().is_some_and(|vpc| ending.collects_in(vpc)))
        })
    }

    /// Whether what the cloud provider made in a VPC for Services is deleted
    /// (`rule:deletion-follows-tags`).
    pub(super) fn collects_in(&self, vpc: &str) -> bool {
        let removal = self.removal;
        let is_ours = || self.owns_vpc(vpc);
        match removal.service_resources {
            ServiceResources::Stay => false,
            ServiceResources::GoWithOurVpc => is_ours(),
            ServiceResources::Go => removal.vpc_id.as_deref() == Some(vpc) || is_ours(),
        }
    }

    /// Whether a VPC is ours.
    pub(super) fn owns_vpc(&self, id: &str) -> bool {
        self.observed.vpcs.of_id(id).is_some_and(|vpc| self.has(vpc))
    }

    /// The VPC of the cluster, when it is known and there is one only.
    pub(super) fn vpc(&self) -> Option<String> {
        let mut ours = self.ours(&self.observed.vpcs).map(|vpc| vpc.id.clone());
        match (ours.next(), ours.next()) {
            (Some(only), None) => Some(only),
            (None, _) => self.recorded_vpc(),
            (Some(_), Some(_)) => None,
        }
    }

    /// Where security groups are looked for: in the VPC, which shows those of others too, or by the
    /// tag of the cluster.
    pub(super) fn groups_scope(&self) -> Scope {
        let is_seen = |id: &String| self.observed.vpcs.of_id(id).is_some();
        let vpc = self.vpc().filter(|id| is_seen(id) || self.removal.vpc_id.as_ref() == Some(id));
        vpc.map_or(Scope::Tagged, Scope::Vpc)
    }

    /// Whether an egress-only gateway may exist: it lies in a VPC with IPv6, and goes before it.
    pub(super) fn may_have_egress_only_gateways(&self) -> bool {
        self.observed.vpcs.all().iter().any(|vpc| vpc.ipv6.is_some())
            || self.memory.records.contains_key(&LogicalId::EgressOnlyGateway)
    }

    /// Whether a carrier gateway may exist: it lies in a VPC with subnets in wavelength zones, and goes before
    /// them.
    pub(super) fn may_have_carrier_gateways(&self) -> bool {
        self.observed.subnets.all().iter().any(is_in_wavelength_zone)
            || self.memory.records.contains_key(&LogicalId::CarrierGateway)
    }

    fn recorded_vpc(&self) -> Option<String> {
        let recorded = self.memory.id(&LogicalId::Vpc).map(str::to_owned);
        self.removal.vpc_id.clone().or(recorded)
    }

    pub(super) fn bastions_are_gone(&self) -> bool {
        self.ours(&self.observed.bastions).all(|found| found.state == InstanceState::Terminated)
    }

    pub(super) fn nat_gateways_are_gone(&self) -> bool {
        self.ours(&self.observed.nat_gateways).all(NatGateway::is_gone)
    }

    /// Whether the load balancers are gone, which use subnets, groups and addresses.
    pub(super) fn load_balancers_are_gone(&self) -> bool {
        self.balancers(&self.observed.classic).next().is_none()
            && self.balancers(&self.observed.network).next().is_none()
    }
}

/// Whether a subnet is in a wavelength zone, by the name of the zone: a deletion has no spec.
pub(super) fn is_in_wavelength_zone(subnet: &Subnet) -> bool {
    names_wavelength(&subnet.zone)
}
