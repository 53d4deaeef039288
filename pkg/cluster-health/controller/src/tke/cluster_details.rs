//! [`ClusterDetails`]: what this process knows of one Cluster apart from its published health.
//! [`DetailStore`]: the details and connections of all Clusters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use health::Status;
use parking_lot::Mutex;
use probe::Client;
use tokio::time::Instant;

use super::facts::Facts;
use super::summary::NodeTotals;
use crate::api::tke::ResourceSummary;
use crate::engine::{Connections, MemberId};

/// A summary at first. One that is not complete by then gets twice as long the next time, up to
/// [`SUMMARY_LIMIT_MAX`]: 150,000 Pods are 300 pages, and slow members must not hold all workers.
const SUMMARY_LIMIT: Duration = Duration::from_secs(60);
pub(crate) const SUMMARY_LIMIT_MAX: Duration = Duration::from_secs(300);

/// The details of all Clusters, by name. An entry belongs to one UID.
#[derive(Default)]
pub(crate) struct DetailStore {
    pub(crate) connections: Connections,
    entries: Mutex<HashMap<Arc<str>, ClusterDetails>>,
}

/// The newest list of Nodes: when it was begun, and its sums. Locked while one is under way.
pub(crate) type LatestNodes = Arc<tokio::sync::Mutex<Option<(Instant, Arc<NodeTotals>)>>>;

/// What this process knows of one Cluster.
pub(crate) struct ClusterDetails {
    uid: Arc<str>,
    pub(crate) facts: Facts,
    /// The API server of the Cluster answered the last probe with `ok`.
    pub(crate) answers: bool,
    /// When its version was asked for.
    pub(crate) version_asked: Option<Instant>,
    /// When its addresses were asked that probes do not ask.
    pub(crate) looked_around: Option<Instant>,
    /// A summary is queued or under way.
    pub(crate) summary_planned: bool,
    /// How long its next summary may take.
    pub(crate) summary_limit: Duration,
    /// The newest list of its Nodes.
    pub(crate) nodes: LatestNodes,
    /// The readiness that was published when its Machines were last observed.
    pub(crate) machines_saw: Option<Status>,
}

impl ClusterDetails {
    /// Doubles the time limit of the next summary: this one was not complete in time.
    pub(crate) fn summary_timed_out(&mut self) {
        self.summary_limit = (self.summary_limit * 2).min(SUMMARY_LIMIT_MAX);
    }
}

impl DetailStore {
    /// Reads or changes what is known of a Cluster; one that is new, or another under a known name,
    /// begins with nothing.
    pub(crate) fn with<R>(
        &self,
        cluster: &MemberId,
        edit: impl FnOnce(&mut ClusterDetails) -> R,
    ) -> R {
        let mut entries = self.entries.lock();
        let fresh = || ClusterDetails {
            uid: Arc::clone(&cluster.uid),
            facts: Facts::default(),
            answers: false,
            version_asked: None,
            looked_around: None,
            summary_planned: false,
            summary_limit: SUMMARY_LIMIT,
            nodes: LatestNodes::default(),
            machines_saw: None,
        };
        let entry = entries.entry(Arc::clone(&cluster.key)).or_insert_with(fresh);
        if entry.uid != cluster.uid {
            *entry = fresh();
        }
        edit(entry)
    }

    /// Reads or changes what is known of a Cluster, if it is known.
    pub(crate) fn known<R>(
        &self,
        cluster: &MemberId,
        edit: impl FnOnce(&mut ClusterDetails) -> R,
    ) -> Option<R> {
        let mut entries = self.entries.lock();
        entries.get_mut(&cluster.key).filter(|entry| entry.uid == cluster.uid).map(edit)
    }

    /// The name of each Cluster that has a summary, with what `read` returns for it.
    pub(crate) fn summaries<R>(&self, read: impl Fn(&ResourceSummary) -> R) -> Vec<(Arc<str>, R)> {
        let entries = self.entries.lock();
        let summaries = entries.iter().filter_map(|(name, entry)| {
            Some((Arc::clone(name), read(entry.facts.summary.as_ref()?)))
        });
        summaries.collect()
    }

    /// Like [`Self::known`], unless the Cluster is another target than the one `latest` belongs to.
    pub(crate) fn still<R>(
        &self,
        cluster: &MemberId,
        latest: &LatestNodes,
        edit: impl FnOnce(&mut ClusterDetails) -> R,
    ) -> Option<R> {
        let edited =
            self.known(cluster, |entry| Arc::ptr_eq(&entry.nodes, latest).then(|| edit(entry)));
        edited.flatten()
    }

    /// The client of the newest inputs, and where the lists of that target go. The place for lists is
    /// read first and replaced last: a list of a former target has no place.
    pub(crate) fn target(&self, cluster: &MemberId) -> Option<(Arc<Client>, LatestNodes)> {
        let nodes = self.known(cluster, |entry| Arc::clone(&entry.nodes))?;
        Some((self.connections.client(cluster)?, nodes))
    }

    /// The Cluster leads to another target now: drops the facts of the one before.
    pub(crate) fn retarget(&self, cluster: &MemberId) {
        self.known(cluster, |entry| {
            (entry.facts, entry.nodes) = (Facts::default(), LatestNodes::default());
            (entry.version_asked, entry.looked_around) = (None, None);
        });
    }

    /// Drops all that is known, credentials with it.
    pub(crate) fn remove(&self, cluster: &MemberId) {
        self.connections.remove(cluster);
        let mut entries = self.entries.lock();
        if entries.get(&cluster.key).is_some_and(|entry| entry.uid == cluster.uid) {
            entries.remove(&cluster.key);
        }
    }
}
