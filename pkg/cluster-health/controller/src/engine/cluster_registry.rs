//! [`ClusterRegistry`]: all clusters that this process knows, and what their tasks share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use events::Recorder;
use health::{Code, Effect, Report};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cluster_events::{Notice, record_effect};
use super::flavour::{Cluster, Flavour, now};
use super::member_cluster::MemberCluster;
use super::metrics::Counters;
use super::ownership::Ownership;
use super::probes::Permits;
use super::writer::Writer;

/// The clusters of a flavour, by the key of their object.
type Clusters = HashMap<Arc<str>, Arc<MemberCluster>>;

/// All clusters that this process knows, and what their tasks share. No task waits for another on
/// it.
pub(crate) struct ClusterRegistry {
    clusters: RwLock<HashMap<&'static str, Clusters>>,
    pub(crate) permits: Permits,
    pub(crate) writer: Arc<Writer>,
    pub(crate) counters: Counters,
    pub(crate) recorder: Recorder,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Write nothing, and log differences (`rule:an-audit-writes-nothing`).
    pub(crate) audit: bool,
    pub(crate) ownership: Ownership,
    elsewhere: Mutex<HashMap<FlavourKey, Arc<str>>>,
    /// The clusters that are held back: a credential may be about to be created.
    held_back: Mutex<HashMap<FlavourKey, HeldBack>>,
    /// By UID: since when a cluster has been ours whose object is being read.
    looked_at: Mutex<HashMap<Arc<str>, Instant>>,
    look_again: RwLock<HashMap<&'static str, LookAgain>>,
}

/// Flavour, and key of the object.
type FlavourKey = (&'static str, Arc<str>);

/// A cluster that is not probed yet, and what for.
#[derive(Clone)]
pub(crate) struct HeldBack {
    pub(crate) cluster: Cluster,
    pub(crate) code: Code,
    /// The reason in one sentence, without secrets.
    pub(crate) why: Box<str>,
}

/// Has a flavour look at the object of this key again.
type LookAgain = Box<dyn Fn(&Arc<str>) + Send + Sync>;

impl ClusterRegistry {
    pub(crate) fn new(
        permits: Permits,
        writer: Writer,
        counters: Counters,
        recorder: Recorder,
        stop: CancellationToken,
        audit: bool,
        ownership: Ownership,
    ) -> Self {
        Self {
            clusters: RwLock::default(),
            permits,
            writer: Arc::new(writer),
            counters,
            recorder,
            tasks: TaskTracker::new(),
            stop,
            audit,
            ownership,
            elsewhere: Mutex::default(),
            held_back: Mutex::default(),
            looked_at: Mutex::default(),
            look_again: RwLock::default(),
        }
    }

    pub(crate) fn find(&self, flavour: &dyn Flavour, key: &str) -> Option<Arc<MemberCluster>> {
        self.clusters.read().get(flavour.name())?.get(key).cloned()
    }

    /// Puts a cluster in the place of another of its name, which ends.
    pub(crate) fn insert(&self, member: &Arc<MemberCluster>) {
        self.let_go(&*member.flavour, &member.cluster.key);
        let mut clusters = self.clusters.write();
        let of_flavour = clusters.entry(member.flavour.name()).or_default();
        let replaced = of_flavour.insert(Arc::clone(&member.cluster.key), Arc::clone(member));
        drop(clusters);
        if let Some(replaced) = replaced {
            self.end(&replaced);
        }
    }

    /// Takes a cluster out; `false` when another has its name by now.
    pub(crate) fn remove(&self, flavour: &dyn Flavour, key: &Arc<str>, uid: &str) -> bool {
        self.let_go(flavour, key);
        let mut clusters = self.clusters.write();
        let Some(of_flavour) = clusters.get_mut(flavour.name()) else { return false };
        if of_flavour.get(key).is_none_or(|member| *member.cluster.uid != *uid) {
            return false;
        }
        let removed = of_flavour.remove(key);
        drop(clusters);
        if let Some(removed) = &removed {
            self.end(removed);
        }
        removed.is_some()
    }

    /// Ends the task of a cluster, its connections and its pending write
    /// (`rule:nothing-outlives-its-object`).
    fn end(&self, member: &MemberCluster) {
        member.retire();
        self.writer.forget(&member.cluster.uid);
        member.flavour.removed(&member.cluster);
    }

    /// Ends all clusters.
    pub(crate) fn end_all(&self) {
        let clusters = std::mem::take(&mut *self.clusters.write());
        for member in clusters.into_values().flat_map(HashMap::into_values) {
            self.end(&member);
        }
    }

    /// A cluster is not probed yet; pages show it.
    pub(crate) fn hold_back(&self, flavour: &dyn Flavour, held: HeldBack) {
        let place = (flavour.name(), Arc::clone(&held.cluster.key));
        self.held_back.lock().insert(place, held);
    }

    /// Ends the hold: the cluster is probed, deleted, or another replica has it.
    fn let_go(&self, flavour: &dyn Flavour, key: &Arc<str>) {
        self.held_back.lock().remove(&(flavour.name(), Arc::clone(key)));
    }

    /// The clusters that are held back, by flavour.
    pub(crate) fn held_back(&self) -> Vec<(&'static str, HeldBack)> {
        let held = self.held_back.lock();
        held.iter().map(|((flavour, _), held)| (*flavour, held.clone())).collect()
    }

    /// The clusters of a flavour, in no order.
    pub(crate) fn all_of(&self, flavour: &str) -> Vec<Arc<MemberCluster>> {
        self.clusters.read().get(flavour).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    /// Has `flavour` look at a cluster again, by the key of its object, when it has become ours.
    pub(crate) fn look_again_by(
        &self,
        flavour: &dyn Flavour,
        add: impl Fn(&Arc<str>) + Send + Sync + 'static,
    ) {
        self.look_again.write().insert(flavour.name(), Box::new(add));
    }

    /// Leaves a cluster to another replica: nothing is done about it until it is ours.
    pub(crate) fn leave(&self, flavour: &dyn Flavour, cluster: &Cluster) {
        if !self.remove(flavour, &cluster.key, &cluster.uid) {
            // Its facts and its credential go even if the engine never knew it.
            flavour.removed(cluster);
        }
        let place = (flavour.name(), Arc::clone(&cluster.key));
        self.elsewhere.lock().insert(place, Arc::clone(&cluster.uid));
    }

    /// Notes that the object of a cluster is about to be read, and since when the cluster is ours.
    pub(crate) fn looks_at(&self, uid: &Arc<str>, since: Instant) {
        self.looked_at.lock().insert(Arc::clone(uid), since);
    }

    /// Whether a cluster is ours, and has been since its object was looked at.
    pub(crate) fn is_still_ours(&self, uid: &Arc<str>) -> bool {
        let looked_at = self.looked_at.lock().remove(uid);
        !self.ownership.is_shared()
            || looked_at.is_some() && looked_at == self.ownership.ours_since(uid)
    }

    /// Forgets that the object of the cluster with this UID is being read.
    pub(crate) fn forget_look(&self, uid: &str) {
        self.looked_at.lock().remove(uid);
    }

    /// Forgets that another replica has the cluster: it is ours, or deleted.
    pub(crate) fn forget_elsewhere(&self, flavour: &dyn Flavour, cluster: &Cluster) {
        let place = (flavour.name(), Arc::clone(&cluster.key));
        let mut elsewhere = self.elsewhere.lock();
        if elsewhere.get(&place).is_some_and(|uid| *uid == cluster.uid) {
            elsewhere.remove(&place);
        }
    }

    /// Gives up the clusters that are not ours any more; returns them, as a probe of them may take
    /// a moment to end.
    pub(crate) fn give_up_others(&self) -> Vec<Arc<MemberCluster>> {
        let mut others = self.all();
        others.retain(|member| !self.ownership.is_ours(&member.cluster.uid));
        for member in &others {
            self.leave(&*member.flavour, &member.cluster);
            self.counters.moved("given");
        }
        others
    }

    /// Has the flavours read the clusters that have become ours. A cluster that no replica had before
    /// does not count as moved.
    pub(crate) fn take_over(&self) {
        let ours = |uid: &Arc<str>| self.ownership.is_ours(uid);
        let moves = self.ownership.has_met();
        let taken: Vec<_> =
            self.elsewhere.lock().extract_if(|_, uid| ours(uid)).map(|(place, _)| place).collect();
        let look_again = self.look_again.read();
        for (flavour, key) in taken {
            if let Some(add) = look_again.get(flavour) {
                add(&key);
                if moves {
                    self.counters.moved("taken");
                }
            }
        }
    }

    /// The clusters that other replicas have: flavour, key and UID.
    pub(crate) fn elsewhere(&self) -> Vec<(&'static str, Cluster)> {
        let elsewhere = self.elsewhere.lock();
        let cluster = |((flavour, key), uid): (&FlavourKey, &Arc<str>)| {
            (*flavour, Cluster { uid: Arc::clone(uid), key: Arc::clone(key) })
        };
        elsewhere.iter().map(cluster).collect()
    }

    /// All clusters, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<MemberCluster>> {
        self.clusters.read().values().flat_map(HashMap::values).cloned().collect()
    }

    /// A probe was completed.
    pub(crate) fn completed(&self, member: &MemberCluster, report: &Report, effect: Effect) {
        self.counters.completed(member.flavour.name(), report);
        self.noted(member, Some(report), effect);
        for Notice { kind, reason, text } in member.notices(report.started.wall) {
            self.recorder.event(member.object_ref(), kind, reason, text);
        }
        // rule:what-we-could-not-ask-changes-nothing
        if !report.finding.is_void() {
            member.flavour.probed(&member.cluster, report);
        }
    }

    /// Records the events of a change, and hands the state to the writer if it is worth a write.
    pub(crate) fn noted(&self, member: &MemberCluster, report: Option<&Report>, effect: Effect) {
        let said = || {
            let (published, _, message) = member.said(now().monotonic);
            (published.map(|published| published.standing), message)
        };
        record_effect(&self.recorder, || member.object_ref(), report, effect, said);
        self.consider(member);
    }

    /// The object of a cluster shows a status with this fingerprint, or none that can be used.
    pub(crate) fn shows(&self, member: &MemberCluster, fingerprint: Option<u64>) {
        if self.writer.age(&member.cluster.uid, now().monotonic).is_some() {
            member.overlook(fingerprint);
        } else if member.shows(fingerprint) {
            self.consider(member);
        }
    }

    /// Hands the state of a cluster to the writer if it is worth a write.
    pub(crate) fn consider(&self, member: &MemberCluster) {
        if self.audit {
            return;
        }
        let now = now();
        if let Some(urgency) = member.write_due(now)
            && let Some(known) = self.find(&*member.flavour, &member.cluster.key)
            && known.cluster.uid == member.cluster.uid
        {
            self.writer.submit(known, urgency, now.monotonic);
        }
    }
}
