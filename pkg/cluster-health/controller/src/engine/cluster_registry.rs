//! [`ClusterRegistry`]: all clusters that this process knows, and what their tasks share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use events::Recorder;
use health::{Code, Effect, Report, Verdict};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::beats::BeatWatch;
use super::cluster_events::{Notice, record_effect};
use super::flavour::{Flavour, MemberId, now};
use super::guard_targets::GuardStatus;
use super::member_cluster::MemberCluster;
use super::metrics::Counters;
use super::ownership::Ownership;
use super::probes::Permits;
use super::writer::Writer;
use crate::check_document::ConfiguredChecks;

/// The clusters of a flavour, by the key of their object. Work on many of them begins in this order, so that a
/// simulation repeats it.
type Clusters = BTreeMap<Arc<str>, Known>;

/// A cluster, by what this replica does about it.
#[derive(Clone)]
pub(crate) enum Known {
    Probed(Arc<MemberCluster>),
    /// Another replica has the cluster.
    Elsewhere(MemberId),
    /// The cluster is not probed yet: a credential may be about to be created.
    HeldBack(HeldBack),
}

impl Known {
    pub(crate) fn cluster(&self) -> &MemberId {
        match self {
            Self::Probed(member) => &member.cluster,
            Self::Elsewhere(cluster) => cluster,
            Self::HeldBack(held) => &held.cluster,
        }
    }

    pub(crate) fn probed(&self) -> Option<&Arc<MemberCluster>> {
        match self {
            Self::Probed(member) => Some(member),
            Self::Elsewhere(_) | Self::HeldBack(_) => None,
        }
    }
}

/// All clusters that this process knows, and what their tasks share. No task waits for another on
/// it.
pub(crate) struct ClusterRegistry {
    clusters: RwLock<BTreeMap<&'static str, Clusters>>,
    pub(crate) permits: Permits,
    pub(crate) writer: Arc<Writer>,
    pub(crate) counters: Counters,
    pub(crate) recorder: Recorder,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Write nothing, and log differences (`rule:an-audit-writes-nothing`).
    pub(crate) audit: bool,
    pub(crate) ownership: Ownership,
    pub(crate) guard: GuardStatus,
    pub(crate) beats: BeatWatch,
    pub(crate) checks: ConfiguredChecks,
    /// By UID: since when a cluster has been ours whose object is being read.
    looked_at: Mutex<HashMap<Arc<str>, Instant>>,
    look_again: RwLock<HashMap<&'static str, LookAgain>>,
    /// This replica stopped probing a cluster because its lease ran out or the cluster moved. Never reset.
    has_given_up: AtomicBool,
}

/// A cluster that is not probed yet, and what for.
#[derive(Clone)]
pub(crate) struct HeldBack {
    pub(crate) cluster: MemberId,
    pub(crate) code: Code,
    /// The reason in one sentence, without secrets.
    pub(crate) why: Box<str>,
}

/// Has a flavour look at the object of this key again.
type LookAgain = Box<dyn Fn(&Arc<str>) + Send + Sync>;

impl ClusterRegistry {
    #[allow(clippy::too_many_arguments, reason = "each is a part of what the tasks share")]
    pub(crate) fn new(
        permits: Permits,
        writer: Writer,
        counters: Counters,
        recorder: Recorder,
        stop: CancellationToken,
        audit: bool,
        ownership: Ownership,
        guard: GuardStatus,
        beats: BeatWatch,
        checks: ConfiguredChecks,
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
            guard,
            beats,
            checks,
            looked_at: Mutex::default(),
            look_again: RwLock::default(),
            has_given_up: AtomicBool::default(),
        }
    }

    pub(crate) fn find(&self, flavour: &dyn Flavour, key: &str) -> Option<Arc<MemberCluster>> {
        self.clusters.read().get(flavour.name())?.get(key)?.probed().cloned()
    }

    /// Puts a cluster in the place of another of its name, whose probes end.
    pub(crate) fn put(&self, flavour: &dyn Flavour, known: Known) {
        let mut clusters = self.clusters.write();
        let of_flavour = clusters.entry(flavour.name()).or_default();
        let replaced = of_flavour.insert(Arc::clone(&known.cluster().key), known);
        drop(clusters);
        if let Some(Known::Probed(replaced)) = replaced {
            self.end(&replaced);
        }
    }

    /// Takes a cluster out, unless another has its name by now. Its facts and its credential go even if
    /// it was never probed.
    pub(crate) fn remove(&self, flavour: &dyn Flavour, cluster: &MemberId) {
        let mut clusters = self.clusters.write();
        let of_flavour = clusters.entry(flavour.name()).or_default();
        let is_it = of_flavour.get(&cluster.key).is_some_and(|it| it.cluster().uid == cluster.uid);
        let removed = if is_it { of_flavour.remove(&cluster.key) } else { None };
        drop(clusters);
        match removed {
            Some(Known::Probed(removed)) => self.end(&removed),
            _ => flavour.removed(cluster),
        }
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
        let all = clusters.values().flat_map(BTreeMap::values);
        all.filter_map(Known::probed).for_each(|member| self.end(member));
    }

    /// A cluster that is new is not probed yet; pages show it.
    pub(crate) fn hold_back(&self, flavour: &dyn Flavour, held: HeldBack) {
        if self.find(flavour, &held.cluster.key).is_none() {
            self.put(flavour, Known::HeldBack(held));
        }
    }

    /// All clusters, probed or not, with their flavours.
    pub(crate) fn known(&self) -> Vec<(&'static str, Known)> {
        let clusters = self.clusters.read();
        let all =
            clusters.iter().flat_map(|(flavour, all)| all.values().map(move |it| (*flavour, it)));
        all.map(|(flavour, known)| (flavour, known.clone())).collect()
    }

    /// The clusters of a flavour that are probed, in the order of their keys.
    pub(crate) fn all_of(&self, flavour: &str) -> Vec<Arc<MemberCluster>> {
        let clusters = self.clusters.read();
        let all = clusters.get(flavour).into_iter().flat_map(BTreeMap::values);
        all.filter_map(Known::probed).cloned().collect()
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
    pub(crate) fn leave(&self, flavour: &dyn Flavour, cluster: &MemberId) {
        if self.find(flavour, &cluster.key).is_some() {
            self.has_given_up.store(true, Ordering::Relaxed);
        }
        self.remove(flavour, cluster);
        self.put(flavour, Known::Elsewhere(cluster.clone()));
    }

    /// Whether the cache may be older than the last status write to a cluster that is not probed yet.
    pub(crate) fn cache_may_be_behind(&self) -> bool {
        self.ownership.is_shared() || self.has_given_up.load(Ordering::Relaxed)
    }

    /// Notes that the object of a cluster is about to be read, and since when the cluster is ours.
    pub(crate) fn looks_at(&self, uid: &Arc<str>, since: Instant) {
        self.looked_at.lock().insert(Arc::clone(uid), since);
    }

    /// Whether a cluster is ours, and has been since its object was looked at.
    pub(crate) fn is_still_ours(&self, uid: &Arc<str>) -> bool {
        let looked_at = self.looked_at.lock().remove(uid);
        !self.cache_may_be_behind()
            || looked_at.is_some() && looked_at == self.ownership.ours_since(uid)
    }

    /// Forgets that the object of the cluster with this UID is being read.
    pub(crate) fn forget_look(&self, uid: &str) {
        self.looked_at.lock().remove(uid);
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
        let moves = self.ownership.has_met();
        let mut taken = self.elsewhere();
        taken.retain(|(_, cluster)| self.ownership.is_ours(&cluster.uid));
        for (flavour, cluster) in taken {
            let mut clusters = self.clusters.write();
            let of_flavour = clusters.entry(flavour).or_default();
            let is_it = |known: &Known| matches!(known, Known::Elsewhere(it) if *it == cluster);
            if !of_flavour.get(&cluster.key).is_some_and(is_it) {
                continue;
            }
            of_flavour.remove(&cluster.key);
            drop(clusters);
            if let Some(add) = self.look_again.read().get(flavour) {
                add(&cluster.key);
                if moves {
                    self.counters.moved("taken");
                }
            }
        }
    }

    /// The clusters that other replicas have, with their flavours.
    pub(crate) fn elsewhere(&self) -> Vec<(&'static str, MemberId)> {
        let elsewhere = self.known().into_iter().filter_map(|(flavour, known)| match known {
            Known::Elsewhere(cluster) => Some((flavour, cluster)),
            Known::Probed(_) | Known::HeldBack(_) => None,
        });
        elsewhere.collect()
    }

    /// All clusters that are probed, in the order of their keys.
    pub(crate) fn all(&self) -> Vec<Arc<MemberCluster>> {
        let clusters = self.clusters.read();
        let all = clusters.values().flat_map(BTreeMap::values);
        all.filter_map(Known::probed).cloned().collect()
    }

    /// A probe was completed.
    pub(crate) fn completed(&self, member: &MemberCluster, report: &Report, effect: Effect) {
        self.counters.completed(member.flavour.name(), report);
        let is_silent = report.finding.verdict() == Verdict::Unreachable;
        if is_silent && member.view(|it| it.member.waits()) {
            self.guard.ask();
        }
        // While the guard is in doubt silence may be our fault, and gets no event.
        let is_told = !is_silent || self.guard.is_clear();
        let first_failure = effect.first_failure && is_told;
        self.noted(member, Some(report), Effect { first_failure, ..effect });
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
            (published.map(|published| published.health), message)
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
