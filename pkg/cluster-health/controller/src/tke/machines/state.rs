//! [`MachineState`]: what is remembered of one Machine. A [`health::Member`] whose probes are the
//! lists of the Nodes of its Cluster. Pure.

use std::time::Instant;

use health::{
    Arrival, Change, Code, Damping, Decision, Finding, Health, Member, Moment, Policy, ProbePath,
    Published, Report, Status, Tally, Urgency, hash, one_line,
};

use crate::api::tke::MachineInfo;
use crate::options::TkeOptions;
use crate::tke::summary::Roster;

/// One Machine, by its UID.
#[derive(Debug)]
pub(crate) struct MachineState {
    member: Member,
    ip: Box<str>,
    /// Why its condition is `Unknown`, while it is.
    reason: Option<UnknownReason>,
    /// Lists in a row that failed.
    failed_lists: Tally,
    info: Option<MachineInfo>,
}

/// The published state of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedMachine {
    /// `detail` is the message of the condition.
    pub(crate) health: Published,
    /// Why the condition is `Unknown`, while it is.
    pub(crate) unknown: Option<UnknownReason>,
    /// From the status of its Node; `None` keeps what the object has.
    pub(crate) info: Option<MachineInfo>,
}

/// Why the condition of a Machine is `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownReason {
    /// The Cluster of the Machine is not healthy, or is not probed.
    ClusterUnhealthy,
    /// The Cluster of the Machine does not exist.
    ClusterNotFound,
    /// The Nodes of its Cluster cannot be listed.
    NodesNotListed,
    /// The Machine is locked.
    Locked,
}

/// The result of a list of Nodes for a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(crate) finding: Finding,
    pub(crate) message: String,
    /// From the status of its Node.
    pub(crate) info: Option<MachineInfo>,
}

/// When a Machine needs the next list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NextList {
    Regular,
    /// Soon, to confirm what the last one said.
    Confirmation,
    /// At once: nothing is known of it.
    Immediate,
}

/// The policy of Machines: that of their Clusters with the period of Machines, and without damping,
/// which the conditions of Machines never had.
pub(crate) fn policy(options: &TkeOptions) -> Policy {
    let mut policy = options.policy;
    policy.cadence.period = options.machine_period;
    policy.damping = Damping { transitions: 0, ..policy.damping };
    policy
}

impl Observation {
    /// Looks for the Machine with this address.
    pub(crate) fn by(roster: &Roster, ip: &str, require_ready: bool) -> Self {
        let failed = |code| Finding::failed(code, ProbePath::default());
        let Some(node) = roster.find(ip) else {
            let message = format!("no node has the name, the InternalIP or the label of {ip}");
            return Self { finding: failed(Code::NodeMissing), message, info: None };
        };
        let (name, info) = (&node.name, node.info.clone());
        let well = Finding::ok(ProbePath::default());
        let (finding, message) = match (node.ready, &*node.reason) {
            (true, _) => (well, format!("node {name} is ready")),
            (false, _) if !require_ready => (well, format!("node {name} is there")),
            (false, "") => (failed(Code::NodeNotReady), format!("node {name} is not ready")),
            (false, reason) => {
                (failed(Code::NodeNotReady), format!("node {name} is not ready: {reason}"))
            }
        };
        Self { finding, message: one_line(&message), info }
    }
}

impl MachineState {
    /// Takes a Machine in: `published` and `written` are what its object says, and a fingerprint of
    /// it.
    pub(crate) fn new(
        uid: &str,
        ip: &str,
        published: Option<PublishedMachine>,
        written: u64,
        policy: &Policy,
        now: Instant,
    ) -> Self {
        let written = published.as_ref().map(|_| written);
        let (health, reason, info) = match published {
            Some(PublishedMachine { health, unknown, info }) => (Some(health), unknown, info),
            None => (None, None, None),
        };
        let arrival = Arrival { hash: hash(uid), published: health, written, ..Arrival::default() };
        let (member, failed_lists) = (Member::new(arrival, policy, now), Tally::default());
        Self { member, ip: ip.into(), reason, failed_lists, info }
    }

    /// The Machine has this address now. The next list decides at once about another address.
    pub(crate) fn set_address(&mut self, ip: &str, now: Instant) {
        if *self.ip != *ip {
            self.ip = ip.into();
            self.member.retarget(now);
        }
    }

    /// Takes in what a list says of it. Failures count as two only when half a confirm interval
    /// lies between them: lists are made for other Machines too.
    pub(crate) fn observe(
        &mut self,
        observation: Observation,
        policy: &Policy,
        now: Moment,
    ) -> Change {
        let Observation { finding, message, info } = observation;
        self.failed_lists = Tally::default();
        let detail = Some(message.into());
        let report = Report { attempts: 1, detail, ..Report::new(finding, now) };
        let change = self.member.observe(&report, policy, now.monotonic).change;
        // Until a run is long enough what is published contradicts the list.
        if self.member.published().is_some_and(|it| it.finding == Some(finding)) {
            self.reason = None;
            self.info = info.or(self.info.take());
        }
        change
    }

    /// Takes in that the Nodes of its Cluster could not be listed. One failed list does not make a
    /// Machine unknown.
    pub(crate) fn not_listed(&mut self, why: &str, policy: &Policy, now: Moment) -> Change {
        let counted = self.failed_lists.counted_at();
        let spaced = |at| now.monotonic.saturating_duration_since(at) >= policy.failure_spacing();
        let counted = counted.is_none_or(spaced).then_some(now.monotonic);
        let decided =
            self.failed_lists.decide(Some(Status::True), false, counted, policy.thresholds);
        if decided == Decision::Keep {
            return Change::Nothing;
        }
        let message = format!("the nodes of its cluster cannot be listed: {why}");
        self.publish_unknown(UnknownReason::NodesNotListed, &message, now)
    }

    /// Publishes `Unknown`. The next list decides at once.
    pub(crate) fn unknown(&mut self, reason: UnknownReason, message: &str, now: Moment) -> Change {
        self.failed_lists = Tally::default();
        self.publish_unknown(reason, message, now)
    }

    fn publish_unknown(&mut self, reason: UnknownReason, message: &str, now: Moment) -> Change {
        self.reason = Some(reason);
        self.member.publish_unknown(message, now)
    }

    pub(crate) fn published(&self) -> Option<PublishedMachine> {
        let health = self.member.published()?.clone();
        Some(PublishedMachine { health, unknown: self.reason, info: self.info.clone() })
    }

    /// When it needs the next list.
    pub(crate) fn next_list(&self) -> NextList {
        let health = self.member.published().map(|published| published.health);
        match (health, self.reason) {
            (Some(Health::Unknown), Some(UnknownReason::NodesNotListed)) => NextList::Regular,
            _ if self.failed_lists.failures() > 0 => NextList::Confirmation,
            (None | Some(Health::Unknown), _) => NextList::Immediate,
            _ if self.member.is_confirming() => NextList::Confirmation,
            _ => NextList::Regular,
        }
    }

    /// The urgency of a write of the state with this fingerprint, if it is due; the caller hands it over.
    /// `shown` is the fingerprint of the object, unless a write is under way.
    pub(crate) fn write_due(
        &mut self,
        fingerprint: u64,
        shown: Option<u64>,
        policy: &Policy,
        now: Instant,
    ) -> Option<Urgency> {
        if shown.is_some() {
            self.member.shows(shown);
        }
        let urgency = self.member.write_due(fingerprint, policy, now)?;
        self.member.handed_over(fingerprint, now);
        Some(urgency)
    }
}

impl PublishedMachine {
    /// The status of the condition.
    pub(crate) fn status(&self) -> Status {
        self.health.ready.status
    }

    /// The reason of the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match (self.status(), self.health.finding.and_then(Finding::code)) {
            (Status::True, _) => "",
            (Status::False, Some(Code::NodeNotReady)) => NODE_NOT_READY,
            (Status::False, _) => "HealthCheckFail",
            (Status::Unknown, _) => self.unknown.map(UnknownReason::as_str).unwrap_or_default(),
        }
    }

    /// The message of the condition.
    pub(crate) fn message(&self) -> &str {
        self.health.detail.as_deref().unwrap_or_default()
    }
}

/// The reason while the Node of a Machine is not ready.
pub(crate) const NODE_NOT_READY: &str = "NodeNotReady";

impl UnknownReason {
    const ALL: [Self; 4] =
        [Self::ClusterUnhealthy, Self::ClusterNotFound, Self::NodesNotListed, Self::Locked];

    fn as_str(self) -> &'static str {
        match self {
            Self::ClusterUnhealthy => "ClusterUnhealthy",
            Self::ClusterNotFound => "ClusterNotFound",
            Self::NodesNotListed => "NodesNotListed",
            Self::Locked => "MachineLocked",
        }
    }

    /// Reads the reason of a condition; `None` for one that another program wrote.
    pub(crate) fn parse(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == reason)
    }
}

#[cfg(test)]
mod tests;
