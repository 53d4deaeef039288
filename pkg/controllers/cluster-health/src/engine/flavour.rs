//! [`Flavour`]: what one object model of member clusters is to the engine.

use std::sync::Arc;

use health::{Moment, Published, Report, Standing};
use model::Resource;

use super::status_write::StatusWrite;

/// One object model: which objects are clusters, how each is reached, and what its status looks
/// like. The engine does everything else: when a cluster is probed, what is published, when that is
/// written, events, metrics.
///
/// A flavour plugs in at two places:
///
/// - [`super::Source::watch`] follows its objects and their credentials by informers, and tells the
///   [`super::Registry`] of each cluster with a [`super::Target`]: again whenever anything about it
///   changes, in any order, as often as it likes. What did not change has no effect. It removes a
///   cluster at once when its object is gone, best in the informer's own handler.
/// - [`Flavour::fingerprint`] and [`Flavour::write`] turn what is published into a status.
///
/// Facts of its own (a version, zones, a summary) a flavour keeps by UID, gathers in tasks of its
/// own, and calls [`super::Registry::facts_changed`]; it is asked for fingerprint and fields again.
pub trait Flavour: Send + Sync + 'static {
    /// The label of metrics, as `kubefed`.
    fn name(&self) -> &'static str;

    /// The kind whose status is written.
    fn resource(&self) -> &'static Resource;

    /// Other kinds whose status it writes, by [`super::Registry::write`].
    fn further_kinds(&self) -> &'static [Resource] {
        &[]
    }

    /// A hash of everything in the status that matters: statuses and reasons, phase, version and
    /// other facts, and neither times nor messages. Equal fingerprints are written at heartbeats
    /// only. Called after each probe: no I/O, no waiting.
    fn fingerprint(&self, cluster: &Cluster, statement: &Statement<'_>) -> u64;

    /// What to write to the status. `None` when there is nothing to write, as for an object that is
    /// gone from the cache. Called when a write is sent.
    fn write(&self, cluster: &Cluster, statement: &Statement<'_>) -> Option<StatusWrite>;

    /// What its object says now, for an audit; `None` when it says nothing of use.
    fn stored(&self, cluster: &Cluster) -> Option<Standing>;

    /// Whether its objects tell a cluster that cannot be reached from one that is not well.
    fn tells_offline(&self) -> bool {
        true
    }

    /// A probe of the cluster was completed. For tasks that follow successful probes; no waiting.
    fn probed(&self, _cluster: &Cluster, _report: &Report) {}

    /// The cluster is watched no more: its facts and credentials can go.
    fn removed(&self, _cluster: &Cluster) {}
}

/// One object that stands for a member cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// UID: whose state it is.
    pub uid: Arc<str>,
    /// Name, or `namespace/name`.
    pub key: Arc<str>,
}

impl Cluster {
    /// Namespace, empty for a cluster-scoped object, and name.
    pub fn namespace_and_name(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }
}

/// What is to be said about a cluster now.
#[derive(Debug)]
pub struct Statement<'a> {
    /// What is published; `None` while nothing is.
    pub published: Option<&'a Published>,
    /// For the condition about readiness.
    pub message: &'a str,
    /// The cluster is known and on purpose not probed.
    pub paused: bool,
    /// Now.
    pub now: Moment,
}
