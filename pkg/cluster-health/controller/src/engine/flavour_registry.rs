//! [`FlavourRegistry`]: where a flavour registers its clusters.

use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use health::{Code, EvidenceSource, Health, Moment, Status, Urgency, Written};
use informer::Informer;
use kube_api::{Cached, OwnWrite, Resource};
use objects::Error;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::cluster_registry::{ClusterRegistry, HeldBack, Known};
use super::flavour::{Flavour, MemberId, Pending, Statement, StatusWrite, Target, now};
use super::member_cluster::MemberCluster;
use super::tasks;

/// Longest time that a look waits for the cache and holds a worker of the queue.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);

/// The clusters of one flavour. Cheap to clone; no call waits for anything.
#[derive(Clone)]
pub(crate) struct FlavourRegistry {
    flavour: Arc<dyn Flavour>,
    clusters: Arc<ClusterRegistry>,
    filled: Arc<Once>,
}

/// The result of a look at the object of a key.
pub(crate) enum Look<T> {
    /// The object, as new as what was last written to it, or newer. Without the right to read it, as the cache has it.
    At(Arc<T>),
    /// The object is deleted.
    Gone,
    /// The cluster belongs to another replica: nothing to do.
    Elsewhere,
    /// Look again in a moment.
    Later,
}

impl FlavourRegistry {
    pub(crate) fn new(flavour: Arc<dyn Flavour>, clusters: Arc<ClusterRegistry>) -> Self {
        Self { flavour, clusters, filled: Arc::new(Once::new()) }
    }

    /// Looks at the object of `key` in `cache`, which has to be that of the flavour's kind. One
    /// that comes to this replica is read once more, by a read that shows all that the replica
    /// before it, or this one itself, has written to it, and waits until the cache shows as much:
    /// what a move finds must not be older than what was published (`rule:moves-publish-nothing`).
    ///
    /// # Errors
    /// The object could not be read; retry the key.
    pub(crate) async fn look<T: Cached>(
        &self,
        cache: &Informer<T>,
        key: &Arc<str>,
    ) -> Result<Look<T>, Error> {
        let Some(object) = cache.get(key) else { return Ok(Look::Gone) };
        if self.clusters.ownership.is_whole() {
            return Ok(Look::At(object));
        }
        let cluster = MemberId { uid: object.uid().into(), key: Arc::clone(key) };
        let Some(since) = self.clusters.ownership.ours_since(&cluster.uid) else {
            self.clusters.leave(&*self.flavour, &cluster);
            return Ok(Look::Elsewhere);
        };
        if self.find(&cluster).is_some() || !self.clusters.cache_may_be_behind() {
            return Ok(Look::At(object));
        }
        if self.clusters.writer.is_writing(&cluster.uid) {
            return Ok(Look::Later);
        }
        self.clusters.looks_at(&cluster.uid, since);
        let version = match self.clusters.writer.version(&*self.flavour, &cluster).await {
            // Roles of earlier versions need this right for shards only. The check of permissions warns that it is missing.
            Err(error) if error.is_forbidden() && !self.clusters.ownership.is_shared() => {
                return Ok(Look::At(object));
            }
            version => version?,
        };
        let Some(version) = version else { return Ok(Look::Gone) };
        let version = OwnWrite::version(version);
        if timeout(SHOWN_WITHIN, cache.shows(key, &version)).await.is_err() {
            return Ok(Look::Later);
        }
        let newest = cache.get(key).filter(|object| *object.uid() == *cluster.uid);
        Ok(newest.map_or(Look::Gone, Look::At))
    }

    /// Notes that the flavour has listed its objects and credentials, or that its kind is not served:
    /// from now on it looks at clusters without delay. This replica takes no share before
    /// (`rule:no-share-before-the-first-list`).
    pub(crate) fn filled(&self) {
        self.filled.call_once(|| self.clusters.ownership.filled());
    }

    /// The kind of this flavour is served and permitted: replicas without it leave all clusters to this
    /// replica.
    pub(crate) fn serves(&self) {
        self.clusters.ownership.serves(self.flavour.name());
    }

    /// Calls `add` with the key of each cluster that comes to this replica from another one.
    pub(crate) fn look_again_by(&self, add: impl Fn(&Arc<str>) + Send + Sync + 'static) {
        self.clusters.look_again_by(&*self.flavour, add);
    }

    /// Tells of a cluster: a new one is probed from now on, of a known one what changed is taken
    /// in. Another UID under a known key is another cluster, and the old one is gone
    /// (`rule:one-prober-per-uid`). Calls for one key must not overlap; a work queue sees to that.
    pub(crate) fn upsert(&self, target: Target) {
        let now = now().monotonic;
        match self.find(&target.cluster) {
            Some(known) => {
                known.update(target, now);
                known.select_checks(&self.clusters.checks);
                self.clusters.consider(&known);
            }
            None => {
                let flavour = Arc::clone(&self.flavour);
                let has_waited = self.clusters.ownership.is_shared();
                let guarded = self.clusters.guard.is_on();
                let stop = &self.clusters.stop;
                let member =
                    Arc::new(MemberCluster::new(target, flavour, stop, (has_waited, guarded), now));
                member.select_checks(&self.clusters.checks);
                self.clusters.put(&*self.flavour, Known::Probed(Arc::clone(&member)));
                // It may have gone to another replica since it was looked at, and be back.
                if !self.clusters.is_still_ours(&member.cluster.uid) {
                    return self.clusters.leave(&*self.flavour, &member.cluster);
                }
                tasks::start(&member, &self.clusters, member.task());
                self.clusters.consider(&member);
            }
        }
    }

    /// A cluster that is new is not probed yet, for want of something that may be about to come;
    /// the debug page shows it so until [`Self::upsert`] or [`Self::remove`].
    pub(crate) fn hold_back(&self, cluster: &MemberId, code: Code, why: &str) {
        let held = HeldBack { cluster: cluster.clone(), code, why: why.into() };
        self.clusters.hold_back(&*self.flavour, held);
    }

    /// Ends everything about a cluster whose object is gone; without effect when another object has
    /// its key by now.
    pub(crate) fn remove(&self, cluster: &MemberId) {
        self.clusters.forget_look(&cluster.uid);
        self.clusters.remove(&*self.flavour, cluster);
    }

    /// Asks for a probe within a second, as after a change that no [`Target`] shows.
    pub(crate) fn trigger(&self, cluster: &MemberId) {
        if let Some(known) = self.find(cluster) {
            known.trigger(now().monotonic);
        }
    }

    /// Facts that the flavour keeps about a cluster have changed: it is asked for the fingerprint
    /// again, and written if that is another one.
    pub(crate) fn facts_changed(&self, cluster: &MemberId) {
        if let Some(known) = self.find(cluster) {
            self.clusters.consider(&known);
        }
    }

    /// The object shows a status with this fingerprint, or none of use. One that differs from what
    /// was handed over last, while nothing waits to be written, is of another controller and is written
    /// over; else it is looked at when that is written.
    pub(crate) fn shows(&self, cluster: &MemberId, fingerprint: Option<u64>) {
        if let Some(known) = self.find(cluster) {
            self.clusters.shows(&known, fingerprint);
        }
    }

    /// Whether what has this UID is this replica's to probe and write: of all replicas, of one.
    pub(crate) fn is_ours(&self, uid: &str) -> bool {
        self.clusters.ownership.is_ours(uid)
    }

    /// Ends with the cluster, for tasks that are not probes; `None` when it is not known
    /// (`rule:nothing-outlives-its-object`).
    pub(crate) fn life(&self, cluster: &MemberId) -> Option<CancellationToken> {
        self.find(cluster).map(|known| known.stop.clone())
    }

    /// Whether a cluster is known by this UID.
    pub(crate) fn knows(&self, cluster: &MemberId) -> bool {
        self.find(cluster).is_some()
    }

    /// Whether Leases of members are watched.
    pub(crate) fn watches_beats(&self) -> bool {
        self.clusters.beats.is_on()
    }

    /// Whether a cluster is known as one that is judged by its Lease alone.
    pub(crate) fn follows_lease(&self, cluster: &MemberId) -> bool {
        self.find(cluster).is_some_and(|known| known.evidence_source() == EvidenceSource::Beats)
    }

    /// Whether it is published as ready: for tasks that make sense for such clusters only.
    pub(crate) fn is_ready(&self, cluster: &MemberId) -> bool {
        self.readiness(cluster) == Some(Status::True)
    }

    /// The published readiness of a cluster that this process probes; `None` while nothing is
    /// published.
    pub(crate) fn readiness(&self, cluster: &MemberId) -> Option<Status> {
        let published = |known: Arc<MemberCluster>| {
            known.view(|it| it.member.published().map(|published| published.ready.status))
        };
        self.find(cluster).and_then(published)
    }

    /// Submits the status of an object that is not a cluster, such as a Machine. It shares the write
    /// budget: a sixth of it while clusters need the rest; for [`Flavour::further_kinds`].
    pub(crate) fn write(&self, pending: Arc<dyn Pending>, urgency: Urgency) {
        self.clusters.writer.submit(pending, urgency.of_other_object(), now().monotonic);
    }

    /// Takes the fields of ours from the status of a cluster that is no longer ours to probe.
    pub(crate) fn withdraw(&self, cluster: MemberId) {
        let (flavour, clusters) = (Arc::clone(&self.flavour), Arc::downgrade(&self.clusters));
        let pending = Withdrawal { flavour, clusters, cluster };
        self.write(Arc::new(pending), Urgency::Change);
    }

    /// Whether a write of the status of a cluster is under way.
    pub(crate) fn is_writing(&self, cluster: &MemberId) -> bool {
        self.clusters.writer.is_writing(&cluster.uid)
    }

    /// Whether a write of the object with this UID waits or is under way.
    pub(crate) fn writes(&self, uid: &Arc<str>) -> bool {
        self.clusters.writer.age(uid, now().monotonic).is_some()
    }

    /// Nothing of the object with this UID is written any more.
    pub(crate) fn forget_write(&self, uid: &Arc<str>) {
        self.clusters.writer.forget(uid);
    }

    /// A view of what is published, for metrics: it keeps nothing alive.
    pub(crate) fn overview(&self) -> Overview {
        Overview { flavour: self.flavour.name(), clusters: Arc::downgrade(&self.clusters) }
    }

    /// The UID of the cluster that is known by this key.
    pub(crate) fn uid(&self, key: &str) -> Option<Arc<str>> {
        self.clusters.find(&*self.flavour, key).map(|known| Arc::clone(&known.cluster.uid))
    }

    fn find(&self, cluster: &MemberId) -> Option<Arc<MemberCluster>> {
        let known = self.clusters.find(&*self.flavour, &cluster.key)?;
        (known.cluster.uid == cluster.uid).then_some(known)
    }
}

/// Between attempts of a withdrawal, at most.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(30);

/// One empty apply, which gives up all fields of ours.
struct Withdrawal {
    flavour: Arc<dyn Flavour>,
    clusters: Weak<ClusterRegistry>,
    cluster: MemberId,
}

impl Pending for Withdrawal {
    fn flavour(&self) -> &'static str {
        self.flavour.name()
    }

    fn resource(&self) -> &'static Resource {
        self.flavour.resource()
    }

    fn object(&self) -> &MemberId {
        &self.cluster
    }

    fn period(&self) -> Duration {
        WITHDRAWN_WITHIN
    }

    /// Nothing when the cluster was selected again meanwhile.
    fn write(&self, now: Moment) -> Option<StatusWrite> {
        let statement = Statement { checks: Some(&[]), ..Statement::new(None, now) };
        self.flavour.write(&self.cluster, &statement)
    }

    /// The replica that has the cluster by now looks at it itself, and this one when it is back.
    fn given_up(&self) -> Written {
        if let Some(clusters) = self.clusters.upgrade() {
            clusters.leave(&*self.flavour, &self.cluster);
        }
        Written::Gone
    }
}

/// The published health of the clusters of one flavour, as long as the engine runs.
pub(crate) struct Overview {
    flavour: &'static str,
    clusters: Weak<ClusterRegistry>,
}

impl Overview {
    /// The keys of all clusters, with what is published about each.
    pub(crate) fn published_healths(&self) -> Vec<(Arc<str>, Option<Health>)> {
        let Some(clusters) = self.clusters.upgrade() else { return Vec::new() };
        let health =
            |member: &Arc<MemberCluster>| (Arc::clone(&member.cluster.key), member.health());
        clusters.all_of(self.flavour).iter().map(health).collect()
    }
}
