//! [`Plan`]: what to do next, by [`Part`] of the network, and the [`Reason`]s that are reported,
//! which are upstream's where it has them. The file of each part adds to the plan; `planner.rs`
//! calls them.

use crate::action::Action;
use crate::desired::{Desired, Rank};
use crate::identity::{Identity, Ownership, Tags};
use crate::memory::{Absence, LogicalId, Memory, Timestamp};
use crate::observed::{Observed, Seen};
use crate::query::Query;
use crate::tags::TagDrift;

/// A write that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The part it is for.
    pub part: Part,
    /// The write.
    pub action: Action,
}

/// Something that takes its time on AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The part that waits.
    pub part: Part,
    /// The reason, for people: `nat-1 is pending`.
    pub what: String,
    /// Seconds until it is worth a look.
    pub after: u64,
    /// The query to send then; none where the part goes on by itself when another wait is
    /// there.
    pub read: Option<Query>,
}

/// A problem that blocks a reconciliation, or that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The part it is about.
    pub part: Part,
    /// The reason.
    pub reason: Reason,
    /// The object, the cause and the remedy.
    pub message: String,
}

/// A resource that carries the tag of the cluster and is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Other {
    /// Id, or name of a classic load balancer.
    pub id: String,
    /// The owner id in its tags.
    pub owner_id: Option<String>,
}

/// The next writes, reads and waits. Writes are independent of each other and may be sent at once;
/// what depends on their outcome is in the next plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Queries to answer before planning goes on.
    pub reads: Vec<Query>,
    /// Writes that are due.
    pub actions: Vec<Planned>,
    /// Operations of AWS to wait for.
    pub waits: Vec<Wait>,
    /// Problems to report.
    pub problems: Vec<Problem>,
    /// Seconds until everything must be read again, since the reads may not show all
    /// there is.
    pub look_again: Option<u64>,
    /// Resources of a deletion that this program must not delete: resources that carry the tag of the cluster and are
    /// not ours.
    pub others: Vec<Other>,
    /// Corrections of tags, of all resources together.
    pub(crate) tags: TagDrift,
}

impl Plan {
    /// Whether the plan has no write, read or wait.
    pub fn is_settled(&self) -> bool {
        self.reads.is_empty()
            && self.actions.is_empty()
            && self.waits.is_empty()
            && self.look_again.is_none()
    }

    pub(crate) fn read(&mut self, query: Query) {
        if !self.reads.contains(&query) {
            self.reads.push(query);
        }
    }

    /// Plans a write once, also when two parts need it.
    pub(crate) fn act(&mut self, part: Part, action: Action) {
        if self.actions.iter().all(|planned| planned.action != action) {
            self.actions.push(Planned { part, action });
        }
    }

    pub(crate) fn wait(&mut self, part: Part, what: impl Into<String>, after: u64, read: Query) {
        self.waits.push(Wait { part, what: what.into(), after, read: Some(read) });
    }

    /// Waits until what was made can be seen. All is read again then: a read that shows the past is
    /// not to be trusted once the time has passed in which it may.
    pub(crate) fn wait_to_see(&mut self, part: Part, what: impl Into<String>, after: u64) {
        self.waits.push(Wait { part, what: what.into(), after, read: None });
        self.look_again = Some(self.look_again.map_or(after, |earlier| earlier.min(after)));
    }

    /// Waits for another part, which is looked at in its own time.
    pub(crate) fn wait_for_another(&mut self, part: Part, what: impl Into<String>) {
        self.waits.push(Wait { part, what: what.into(), after: FOR_ANOTHER, read: None });
    }

    pub(crate) fn problem(&mut self, part: Part, reason: Reason, message: impl Into<String>) {
        self.problems.push(Problem { part, reason, message: message.into() });
    }

    /// Whether something of the part is still to be done or awaited.
    pub fn is_busy(&self, part: Part) -> bool {
        self.actions.iter().any(|planned| planned.part == part)
            || self.waits.iter().any(|wait| wait.part == part)
    }
}

/// The input of a plan for a cluster that shall exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// The resources that the cluster shall have.
    pub desired: &'a Desired,
    /// The resources on AWS, as far as they were read.
    pub observed: &'a Observed,
    /// Creates of earlier reconciliations.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
    /// Attributes that only extra calls show are compared too.
    pub deep: bool,
}

impl<'a> Situation<'a> {
    pub(crate) fn identity(&self) -> &'a Identity {
        &self.desired.identity
    }

    /// The owner of a resource, given its logical id.
    pub(crate) fn ownership(&self, tags: &Tags, id: &str, logical: &LogicalId) -> Ownership {
        self.identity().ownership(tags, self.memory.id(logical) == Some(id))
    }

    /// Whether a resource is ours, given its logical id.
    pub(crate) fn is_ours(&self, tags: &Tags, id: &str, logical: &LogicalId) -> bool {
        self.ownership(tags, id, logical) == Ownership::Ours
    }

    /// Whether a resource is ours, whatever its logical id.
    pub(crate) fn owns(&self, tags: &Tags, id: &str) -> bool {
        self.identity().ownership(tags, self.memory.has_recorded(id)) == Ownership::Ours
    }

    /// Plans a create, or waits when what is missing among `seen` may only be invisible yet to its
    /// read.
    pub(crate) fn create<T>(&self, part: Part, action: Action, seen: &Seen<T>, plan: &mut Plan) {
        let Some((logical, _)) = action.creates() else { return };
        match self.memory.absence(&logical, seen.read_at()) {
            Absence::Certain => plan.act(part, action),
            Absence::Settling(left) => {
                let what = format!("{logical} was created, but AWS does not show it yet");
                plan.wait_to_see(part, what, left.min(RECHECK));
            }
        }
    }
}

/// Seconds for which a part waits for another. That one is looked at sooner.
pub(crate) const FOR_ANOTHER: u64 = 600;

/// Seconds until something that takes minutes, or may be late, is read again.
pub(crate) const RECHECK: u64 = 10;

/// A part of a cluster's network, each with a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "a variant is named for what it is")]
pub enum Part {
    Vpc,
    /// More CIDRs of the VPC.
    SecondaryCidrs,
    Subnets,
    InternetGateway,
    /// The egress-only internet gateway of a VPC with IPv6.
    EgressOnlyGateway,
    /// The carrier gateway of a VPC with public subnets in wavelength zones.
    CarrierGateway,
    /// NAT gateways and their elastic IPs.
    NatGateways,
    RouteTables,
    SecurityGroups,
    /// The bastion, which nothing waits for.
    Bastion,
    LoadBalancer,
    /// The second load balancer, which nothing waits for.
    SecondaryLoadBalancer,
    /// The removal of everything.
    Deletion,
}

impl Part {
    /// The parts that a cluster is made of.
    pub const OF_A_CLUSTER: [Self; 12] = [
        Self::Vpc,
        Self::SecondaryCidrs,
        Self::Subnets,
        Self::InternetGateway,
        Self::EgressOnlyGateway,
        Self::CarrierGateway,
        Self::NatGateways,
        Self::RouteTables,
        Self::SecurityGroups,
        Self::Bastion,
        Self::LoadBalancer,
        Self::SecondaryLoadBalancer,
    ];

    /// The part that a load balancer is.
    pub(crate) fn of_load_balancer(rank: Rank) -> Self {
        match rank {
            Rank::Primary => Self::LoadBalancer,
            Rank::Secondary => Self::SecondaryLoadBalancer,
        }
    }

    /// The type of its condition.
    pub fn condition(self) -> &'static str {
        match self {
            Self::Vpc => "VpcReady",
            Self::SecondaryCidrs => "SecondaryCidrsReady",
            Self::Subnets => "SubnetsReady",
            Self::InternetGateway => "InternetGatewayReady",
            Self::EgressOnlyGateway => "EgressOnlyInternetGatewayReady",
            Self::CarrierGateway => "CarrierGatewayReady",
            Self::NatGateways => "NatGatewaysReady",
            Self::RouteTables => "RouteTablesReady",
            Self::SecurityGroups => "ClusterSecurityGroupsReady",
            Self::Bastion => "BastionHostReady",
            Self::LoadBalancer => "LoadBalancerReady",
            Self::SecondaryLoadBalancer => "SecondaryLoadBalancerReady",
            Self::Deletion => "Deleting",
        }
    }

    /// Whether the cluster is ready only with it.
    pub fn is_mandatory(self) -> bool {
        !matches!(self, Self::Bastion | Self::SecondaryLoadBalancer)
    }
}

/// Why something does not go on, or is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Two VPCs are ours and both are in use.
    DuplicateVpc,
    /// A name, a CIDR or an attachment that we need is held by somebody else.
    OwnershipConflict,
    /// A resource that the spec names does not exist.
    NotFound,
    /// A resource differs from the spec and cannot be changed.
    Immutable,
    /// The spec cannot be followed here.
    InvalidConfiguration,
    /// A zone has private subnets and no public one.
    NoNatForZone,
    /// All private subnets depend on one zone.
    NatSingleZone,
    /// A NAT gateway could not be made; another is tried.
    NatGatewayFailed,
    /// AWS offers no regional NAT gateway here; each zone has its own.
    RegionalNatNotAvailable,
    /// AWS does not offer here what the spec asks for, and nothing takes its place.
    Unsupported,
    /// An owned subnet is not in the spec.
    SurplusSubnet,
    /// The load balancer is gone and clients know its name.
    LoadBalancerMissing,
    /// The load balancer could not be made, and AWS will not repair it.
    LoadBalancerFailed,
    /// The load balancer was made without security groups, and AWS adds none later.
    NoSecurityGroups,
    /// An image for the bastion was not found.
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
    /// The name in conditions and events.
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
            Self::RegionalNatNotAvailable => "RegionalNatNotAvailable",
            Self::Unsupported => "Unsupported",
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
        matches!(
            self,
            Self::NatSingleZone
                | Self::RegionalNatNotAvailable
                | Self::SurplusSubnet
                | Self::NoSecurityGroups
        )
    }
}
