//! The interface of a flavour to the engine: [`Flavour`], the [`Target`] that it registers for each
//! cluster, the [`ClusterProber`] in it, and the [`StatusWrite`] of a [`Pending`] object.

use std::sync::Arc;
use std::time::Duration;

use events::ObjectRef;
use futures::future::BoxFuture;
use health::{
    Check, CheckEvidence, CheckReport, Code, Endpoints, Finding, Health, Lifetime, Moment, Policy,
    ProbePath, Published, Record, Report, Status, WithinObjective, Written,
};
use kube_api::Resource;
use objects::{Object, Schema};
use probe::WaivedChecks;
use serde_json::Value;

use crate::check_document::Labels;

/// One object model of member clusters: its status, as the engine asks for it. The engine does
/// everything else: when a cluster is probed, what is published, when it is written, events,
/// metrics.
///
/// To add a flavour:
///
/// 1. Implement [`Flavour`], [`super::ObjectModel`] and [`super::Resolve`], without I/O.
/// 2. Implement [`super::Source`] by [`super::watch_clusters`]. Credential objects of its own are read by
///    [`super::ReadCredentials`].
/// 3. Name it in `controller.rs`, and add its options and rights there.
///
/// `tests/pipeline.rs` holds a flavour of 150 lines. Further facts (a version, zones, a summary) a
/// flavour keeps by UID, as in [`super::facts::FactStore`], gathers in its own tasks, and calls
/// [`super::FlavourRegistry::facts_changed`]; the engine then asks for fingerprint and fields again.
pub(crate) trait Flavour: Send + Sync + 'static {
    /// The label of metrics, as `kubefed`.
    fn name(&self) -> &'static str;

    /// The kind whose status is written.
    fn resource(&self) -> &'static Resource;

    /// Other kinds whose status it writes, by [`super::FlavourRegistry::write`].
    fn further_kinds(&self) -> &'static [Resource] {
        &[]
    }

    /// A hash of everything in the status that matters: statuses and reasons, phase, version and
    /// other facts, and neither times, messages nor records. Equal fingerprints are written at heartbeats
    /// only. Called after each probe: no I/O, no waiting.
    fn fingerprint(&self, cluster: &MemberId, statement: &Statement<'_>) -> u64;

    /// The write of the status, made when it is sent. `None` when there is nothing to write, as for an
    /// object that is gone from the cache.
    fn write(&self, cluster: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite>;

    /// The health that its object shows now, for an audit; `None` when it shows none.
    fn stored(&self, cluster: &MemberId) -> Option<Health>;

    /// Whether its objects have a condition for each check.
    fn keeps_checks(&self) -> bool {
        false
    }

    /// The status of a check that its object shows now, where it has conditions for checks.
    fn stored_check(&self, _cluster: &MemberId, _check: &str) -> Option<Status> {
        None
    }

    /// How many Nodes of the cluster are ready, of how many, by a list not older than `max_age`; `None` without such a
    /// list.
    fn nodes(&self, _cluster: &MemberId, _max_age: Duration) -> Option<(usize, usize)> {
        None
    }

    /// Whether its objects distinguish an unreachable cluster from an unhealthy one.
    fn tells_offline(&self) -> bool {
        true
    }

    /// A probe of the cluster was completed. For tasks that follow successful probes; no waiting.
    fn probed(&self, _cluster: &MemberId, _report: &Report) {}

    /// The cluster is watched no more: its facts and credentials can go.
    fn removed(&self, _cluster: &MemberId) {}
}

/// Identifies the object that stands for a member: a cluster, or a Machine of TKEStack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemberId {
    /// UID: whose state it is.
    pub uid: Arc<str>,
    /// Name, or `namespace/name`.
    pub key: Arc<str>,
}

impl MemberId {
    /// The reference to its object, for events.
    pub(crate) fn object_ref(&self, kind: &Resource) -> ObjectRef {
        let (namespace, name) = self.namespace_and_name();
        ObjectRef::new(&kind.api_version(), &kind.kind, namespace, name, &self.uid)
    }

    /// Namespace, empty for a cluster-scoped object, and name.
    pub(crate) fn namespace_and_name(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }
}

/// The state of a cluster from which its status is made.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// The published health; `None` before the first.
    pub published: Option<&'a Published>,
    /// The message of the condition about readiness.
    pub message: &'a str,
    /// The record of its availability to keep in the object; `None` without an objective, and for a
    /// fingerprint: it goes with writes that other changes ask for.
    pub record: Option<&'a str>,
    /// Whether it is within its objective, for a condition that keeps the record; `None` as `record` is.
    pub within: Option<&'a WithinObjective>,
    /// What is published about its checks, which is in no fingerprint: a change of a check is a reason to write of its
    /// own. `None` while it is not known which checks it has: their conditions stay as the object has them.
    pub checks: Option<&'a [CheckReport]>,
    /// The cluster is known and on purpose not probed.
    pub paused: bool,
    /// The time of the write.
    pub now: Moment,
}

impl<'a> Statement<'a> {
    /// A statement of the published health, without message, record or checks.
    pub(crate) fn new(published: Option<&'a Published>, now: Moment) -> Self {
        let (record, within, checks) = (None, None, None);
        Self { published, message: "", record, within, checks, paused: false, now }
    }
}

/// Everything that the engine has to know of one cluster, made from its object, its credential and
/// the settings of its flavour.
pub(crate) struct Target {
    /// The object of the cluster.
    pub cluster: MemberId,
    /// Where it is reached. A list that has nothing in common with the one before is another
    /// target, whose first result is published at once.
    pub addresses: Vec<Box<str>>,
    /// A hash of everything that `prober` is made of: addresses, trust, proxy, credential. While it
    /// stays the same the prober in use is kept, with its connections.
    pub inputs: u64,
    /// Makes the prober; called only if `inputs` is new.
    pub prober: Box<dyn FnOnce() -> Arc<dyn ClusterProber> + Send>,
    /// How it is watched over.
    pub policy: Policy,
    /// The labels of its object, by which checks select it.
    pub labels: Labels,
    /// The cluster is locked: not probed, and never published as unknown for that.
    pub paused: bool,
    /// The health that its object shows; used only when the cluster is new to this process.
    pub published: Option<Published>,
    /// The record of its availability that its object keeps; used as `published` is.
    pub record: Option<Record>,
    /// The fingerprint of the status that its object shows, if it is known.
    pub written: Option<u64>,
    /// The ends of credential and certificate that were already announced; used only when the cluster
    /// is new to this process.
    pub announced_ends: AnnouncedEnds,
    /// How many clusters came in the same first list; 0 for one that was created later.
    pub together: usize,
}

/// The ends of credential and certificate that were announced before a cluster came to this
/// process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnnouncedEnds {
    /// No end was announced.
    #[default]
    Nothing,
    /// This text was announced, as its object shows.
    Shown(Box<str>),
    /// Unknown: events may have been sent.
    Unknown,
}

pub(crate) fn is_another<A: PartialEq>(old: &[A], new: &[A]) -> bool {
    !old.is_empty() && !new.is_empty() && !old.iter().any(|address| new.contains(address))
}

pub(crate) use probe::now;

/// Probes one cluster. Holds its connections and its credential; dropping it closes and clears
/// them.
pub(crate) trait ClusterProber: Send + Sync + 'static {
    /// One probe within `budget`. It asks the management API for nothing but a credential that was
    /// refused (`rule:probes-ask-members-only`). The engine cancels it by dropping the
    /// future, which leaves the prober usable.
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report>;

    /// One run of a check, within its time limit. No probe waits for it.
    fn examine<'a>(&'a self, _check: &'a Check) -> BoxFuture<'a, CheckEvidence> {
        Box::pin(std::future::ready(CheckEvidence::Nothing("the cluster cannot be probed".into())))
    }

    /// Has the next probe open a new connection.
    fn close_connection(&self) {}

    /// The known credentials, certificates and addresses of the cluster. Does not wait.
    fn contact(&self) -> Contact {
        Contact::default()
    }
}

/// The prober of a cluster whose client cannot be made: it says so each time, and the
/// thresholds decide what becomes of that.
#[derive(Clone, Debug)]
pub(crate) struct Misconfigured {
    /// The mistake, whose verdict is [`health::Verdict::Config`]; [`Code::OwnLimit`] while the
    /// credential could not be read, which changes nothing.
    pub code: Code,
    /// The object and its field or key, without secrets.
    pub detail: Box<str>,
}

impl ClusterProber for Misconfigured {
    fn probe(&self, _: Duration) -> BoxFuture<'_, Report> {
        let finding = Finding::failed(self.code, ProbePath::Readyz);
        let detail = Some(self.detail.clone());
        let report = Report { detail, ..Report::new(finding, now()) };
        Box::pin(std::future::ready(report))
    }
}

/// Whether the schema of a kind is ours at this moment.
pub(crate) type SchemaIsOurs = Arc<dyn Fn() -> bool + Send + Sync>;

/// One write of a status.
#[derive(Debug)]
pub(crate) enum StatusWrite {
    /// All fields that are ours, by server-side apply.
    Apply(Value),
    /// Fields that are ours in a status that other programs write too, by server-side apply without force: what others
    /// own stays theirs.
    Shared(Value),
    /// Fields for an object whose schema is not ours, laid over this copy of it.
    Merge {
        /// The fields to write.
        fields: Value,
        /// The whole object that they rest on.
        over: Value,
    },
}

impl StatusWrite {
    /// Writes `fields`, as `{"status": {…}}`, to `object` in the way that its schema takes.
    pub(crate) fn of<S: Schema>(object: &Object<S>, fields: Value, schema_is_ours: bool) -> Self {
        if schema_is_ours {
            Self::Apply(fields)
        } else {
            Self::Merge { fields, over: object.whole() }
        }
    }
}

/// One object whose status is written. What is written is its state when its turn comes.
pub(crate) trait Pending: Send + Sync + 'static {
    /// The label of metrics: the name of the flavour that it is of.
    fn flavour(&self) -> &'static str;

    /// The kind of the object: that of the flavour, or one of [`super::Flavour::further_kinds`].
    fn resource(&self) -> &'static Resource;

    /// The object whose status is written.
    fn object(&self) -> &MemberId;

    /// The UID of the cluster that it belongs to: the replica that probes that cluster writes this.
    fn shard(&self) -> &Arc<str> {
        &self.object().uid
    }

    /// The longest wait before a failed write is retried.
    fn period(&self) -> Duration;

    /// The write, made when it is sent; `None` when there is nothing left to write.
    fn write(&self, now: Moment) -> Option<StatusWrite>;

    /// What becomes of it when its turn comes while another replica has the cluster.
    fn given_up(&self) -> Written {
        Written::Failed
    }
}

/// The credentials, certificates and addresses by which a cluster is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contact {
    /// The lifetime of the credential that ends first.
    pub credential: Option<Lifetime>,
    /// The lifetime of the certificate that its server showed last.
    pub certificate: Option<Lifetime>,
    /// How many addresses answered when each was last asked.
    pub endpoints: Endpoints,
    /// The checks of that certificate that are left out.
    pub waived: WaivedChecks,
}

impl From<&probe::Client> for Contact {
    fn from(client: &probe::Client) -> Self {
        Self {
            credential: client.credential(),
            certificate: client.certificate(),
            endpoints: client.endpoints(),
            waived: client.waived(),
        }
    }
}
