//! [`Ending`]: what a plan for a deletion is made of, and whose what it sees is.

use crate::identity::{Identity, Ownership, Tags};
use crate::logical_id::LogicalId;
use crate::memory::Memory;
use crate::observed::Observed;
use crate::resources::{InstanceState, NatGateway};
use crate::timestamp::Timestamp;

/// What a deletion has to know. Nothing of it comes from the shape of the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Whose the resources are.
    pub identity: Identity,
    /// The VPC of the spec, when that names one.
    pub vpc_id: Option<String>,
    /// The names that the load balancer may have.
    pub load_balancer_names: Vec<String>,
    /// What Kubernetes' cloud provider made for Services goes too.
    pub collects_external: bool,
    /// Interfaces in our VPC that nothing uses go too.
    pub deletes_free_interfaces: bool,
}

/// What a plan for a deletion is made of.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// What is to be removed.
    pub removal: &'a Removal,
    /// What there is.
    pub observed: &'a Observed,
    /// What was done before.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
}

impl Ending<'_> {
    pub(super) fn is_ours(&self, tags: &Tags, id: &str) -> bool {
        let recorded = self.memory.records.values().any(|record| record.id.as_deref() == Some(id));
        self.removal.identity.ownership(tags, recorded) == Ownership::Ours
    }

    /// Made by the cloud provider for a Service of the cluster, in the VPC of the cluster.
    pub(super) fn is_external(&self, tags: &Tags, vpc: &str) -> bool {
        let owned =
            tags.get(&self.removal.identity.kubernetes_tag()).is_some_and(|value| value == "owned");
        self.removal.collects_external && owned && self.vpc().as_deref() == Some(vpc)
    }

    /// The VPC of the cluster, when it is known and there is one only.
    pub(super) fn vpc(&self) -> Option<String> {
        let all = self.observed.vpcs.all().iter();
        let mut ours = all.filter(|vpc| self.is_ours(&vpc.tags, &vpc.id)).map(|vpc| vpc.id.clone());
        match (ours.next(), ours.next()) {
            (Some(only), None) => Some(only),
            (None, _) => self.recorded_vpc(),
            (Some(_), Some(_)) => None,
        }
    }

    fn recorded_vpc(&self) -> Option<String> {
        let recorded = self.memory.id(&LogicalId::Vpc).map(str::to_owned);
        self.removal.vpc_id.clone().or(recorded)
    }

    pub(super) fn bastions_are_gone(&self) -> bool {
        let all = self.observed.bastions.all().iter();
        all.filter(|found| self.is_ours(&found.tags, &found.id))
            .all(|found| found.state == InstanceState::Terminated)
    }

    pub(super) fn nat_gateways_are_gone(&self) -> bool {
        let all = self.observed.nat_gateways.all().iter();
        all.filter(|found| self.is_ours(&found.tags, &found.id)).all(NatGateway::is_gone)
    }
}
