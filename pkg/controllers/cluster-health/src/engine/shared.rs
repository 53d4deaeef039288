//! [`Shared`]: what the tasks of all clusters share.

use std::collections::HashMap;
use std::sync::Arc;

use events::Recorder;
use health::{Effect, Report};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::counters::Counters;
use super::flavour::Flavour;
use super::permits::Permits;
use super::prober::now;
use super::telling::{tell, tell_notices};
use super::watched::Watched;
use super::writer::Writer;

/// The clusters of a flavour, by the key of their object.
type Clusters = HashMap<Arc<str>, Arc<Watched>>;

/// What the tasks of all clusters share. No task waits for another on it.
pub(crate) struct Shared {
    clusters: RwLock<HashMap<&'static str, Clusters>>,
    pub(crate) permits: Permits,
    pub(crate) writer: Arc<Writer>,
    pub(crate) counters: Counters,
    pub(crate) recorder: Recorder,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Nothing is written, and differences are told (`rule:an-audit-writes-nothing`).
    pub(crate) audit: bool,
}

impl Shared {
    pub(crate) fn new(
        permits: Permits,
        writer: Writer,
        counters: Counters,
        recorder: Recorder,
        stop: CancellationToken,
        audit: bool,
    ) -> Self {
        let (clusters, tasks) = (RwLock::default(), TaskTracker::new());
        let writer = Arc::new(writer);
        Self { clusters, permits, writer, counters, recorder, tasks, stop, audit }
    }

    pub(crate) fn find(&self, flavour: &dyn Flavour, key: &str) -> Option<Arc<Watched>> {
        self.clusters.read().get(flavour.name())?.get(key).cloned()
    }

    /// Puts a cluster in the place of another of its name, which ends.
    pub(crate) fn insert(&self, watched: &Arc<Watched>) {
        let mut clusters = self.clusters.write();
        let of_flavour = clusters.entry(watched.flavour.name()).or_default();
        let replaced = of_flavour.insert(Arc::clone(&watched.cluster.key), Arc::clone(watched));
        drop(clusters);
        if let Some(replaced) = replaced {
            self.end(&replaced);
        }
    }

    /// Takes a cluster out; `false` when another has its name by now.
    pub(crate) fn remove(&self, flavour: &dyn Flavour, key: &str, uid: &str) -> bool {
        let mut clusters = self.clusters.write();
        let Some(of_flavour) = clusters.get_mut(flavour.name()) else { return false };
        if of_flavour.get(key).is_none_or(|watched| *watched.cluster.uid != *uid) {
            return false;
        }
        let removed = of_flavour.remove(key);
        drop(clusters);
        if let Some(removed) = &removed {
            self.end(removed);
        }
        removed.is_some()
    }

    /// Its task ends, and with it its connections; nothing of it is written any more
    /// (`rule:nothing-outlives-its-object`).
    fn end(&self, watched: &Watched) {
        watched.retire();
        self.writer.forget(&watched.cluster.uid);
        watched.flavour.removed(&watched.cluster);
    }

    /// Ends all clusters.
    pub(crate) fn end_all(&self) {
        let clusters = std::mem::take(&mut *self.clusters.write());
        for watched in clusters.into_values().flat_map(HashMap::into_values) {
            self.end(&watched);
        }
    }

    /// The clusters of a flavour, in no order.
    pub(crate) fn all_of(&self, flavour: &str) -> Vec<Arc<Watched>> {
        self.clusters.read().get(flavour).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    /// All clusters, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Watched>> {
        self.clusters.read().values().flat_map(HashMap::values).cloned().collect()
    }

    /// A probe was completed.
    pub(crate) fn completed(&self, watched: &Watched, report: &Report, effect: Effect) {
        self.counters.completed(watched.flavour.name(), report);
        self.noted(watched, Some(report), effect);
        tell_notices(&self.recorder, watched, report.started.wall);
        watched.flavour.probed(&watched.cluster, report);
    }

    /// What is published may have changed.
    pub(crate) fn noted(&self, watched: &Watched, report: Option<&Report>, effect: Effect) {
        tell(&self.recorder, watched, report, effect);
        self.consider(watched);
    }

    /// Hands the state of a cluster to the writer if it is worth a write.
    pub(crate) fn consider(&self, watched: &Watched) {
        if self.audit {
            return;
        }
        let now = now();
        if let Some(urgency) = watched.write_due(now)
            && let Some(known) = self.find(&*watched.flavour, &watched.cluster.key)
            && known.cluster.uid == watched.cluster.uid
        {
            self.writer.submit(known, urgency, now.monotonic);
        }
    }
}
