//! [`ShardCoordinator`]: renews the lease of this replica, reads those of the others, gives up and
//! takes over clusters. [`health::Shards`] decides which replica has a cluster; this file makes sure
//! that probes and writes have ended before the lease says so (`rule:one-owner-at-a-time`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use election::{ReplicaGroup, ReplicaLease, ReplicaLeases, StoreError};
use futures::future::{join_all, join3};
use health::{SHARD_MARGIN, SHARD_TERM, View};
use resilience::{ClockReading, KeyedLogGate};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::cluster_registry::ClusterRegistry;
use super::flavour::now;
use super::member_cluster::MemberCluster;
use super::ownership::{self, Kinds, ShardClaim, Share};

/// Between renewals of an unchanged view, and between looks of one that has no lease.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Between reads of the leases of all replicas, and after a renewal that failed; the limit of what
/// is done for replicas that ended.
const READ_EVERY: Duration = Duration::from_secs(2);
/// Between looks at whether what was given up has come to its end.
const LET_GO_EVERY: Duration = Duration::from_millis(20);
/// Between lines about requests that fail.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// The leases of all replicas that share the clusters, in the namespace of these. A request may
/// take so long that one renewal that is sent when it is due ends before the claims do
/// (`rule:a-share-ends-by-time`).
pub(crate) fn group(namespace: &str) -> ReplicaGroup {
    ReplicaGroup {
        namespace: namespace.to_owned(),
        label: ("infra-controller-manager/replica-of", "cluster-health"),
        annotation: "infra-controller-manager/shares-with",
        term: SHARD_TERM,
        request_timeout: Duration::from_secs(10),
    }
}

/// The part of this replica in sharing the clusters.
pub(crate) struct ShardCoordinator {
    leases: ReplicaLeases,
    share: Arc<Share>,
    clusters: Arc<ClusterRegistry>,
    /// When the lease was last renewed, and with which claim.
    renewed: Option<(Instant, ShardClaim)>,
    /// Given up, and perhaps with a probe that has not ended.
    letting_go: Vec<Arc<MemberCluster>>,
    /// The replicas that have released their leases, and when that was first seen.
    released: BTreeMap<String, Instant>,
    /// Leases to delete: their replicas have ended.
    ended: Vec<ReplicaLease>,
    /// Since when another replica watches over kinds that are not served to this one.
    lacking: Option<Instant>,
    /// The replicas that last shared the clusters, for the log.
    logged_view: View,
    logged_alone: bool,
    log: KeyedLogGate<&'static str>,
}

/// All leases, and when the read was begun.
type Read = (Instant, Result<Vec<ReplicaLease>, StoreError>);

/// A write of our lease that has ended.
struct Renewal {
    claim: ShardClaim,
    sent: Instant,
    clocks: ClockReading,
    result: Result<(), StoreError>,
}

impl ShardCoordinator {
    pub(crate) fn new(
        leases: ReplicaLeases,
        share: Arc<Share>,
        clusters: Arc<ClusterRegistry>,
    ) -> Self {
        Self {
            leases,
            share,
            clusters,
            renewed: None,
            letting_go: Vec::new(),
            released: BTreeMap::new(),
            ended: Vec::new(),
            lacking: None,
            logged_view: View::new(),
            logged_alone: false,
            log: KeyedLogGate::new(LINE_EVERY),
        }
    }

    /// Runs until `stop`; the lease runs on. A sharing replica begins when all flavours can look at
    /// clusters.
    pub(crate) async fn run(&mut self, stop: &CancellationToken) {
        let share = Arc::clone(&self.share);
        let begins = async {
            if !share.leads {
                share.all_filled().await;
            }
        };
        if stop.run_until_cancelled(begins).await.is_none() {
            return;
        }
        while stop.run_until_cancelled(self.turn()).await.is_some() {
            let next = self.next_turn();
            if stop.run_until_cancelled(sleep_until(next.into())).await.is_none() {
                return;
            }
        }
    }

    /// For a replica that neither probes nor writes any more: others take over at once.
    pub(crate) async fn release(self) {
        if !self.share.leads {
            self.share.fence.close();
        } else if self.renewed.is_none() {
            return;
        }
        // A released lease keeps the name of its replica.
        match self.leases.release(&self.share.name).await {
            Ok(()) => info!("Released the shard Lease of this replica"),
            Err(error) => {
                warn!(%error, "Cannot release the shard Lease of this replica; it expires");
            }
        }
    }

    /// Our lease is renewed while the others are read, so that a slow server does not add up the
    /// two (`rule:a-share-ends-by-time`).
    async fn turn(&mut self) {
        let due = self.renewed.as_ref().is_some_and(|(at, _)| now().monotonic >= *at + RENEW_EVERY);
        let claim = due.then(|| self.unchanged()).flatten();
        let ended = std::mem::take(&mut self.ended);
        let (read, renewal, swept) =
            Box::pin(join3(self.list(), self.renew_unchanged(claim), self.sweep(&ended))).await;
        if let Some(renewal) = renewal {
            self.take_in_renewal(renewal);
        }
        self.take_in(read);
        for error in swept {
            self.complain("end the lease of a replica that ended", &error);
        }
        self.share_out();
        if self.must_publish() {
            Box::pin(self.publish()).await;
        }
        self.log_changes();
    }

    /// The time of the next turn, no later than the end of another replica's claims.
    fn next_turn(&self) -> Instant {
        let (now, shards) = (now().monotonic, self.share.shards.read());
        let regular = now + if shards.is_alone() { RENEW_EVERY } else { READ_EVERY };
        let lapse = shards.next_lapse().filter(|lapse| *lapse > now);
        lapse.map_or(regular, |lapse| lapse.min(regular))
    }

    async fn list(&self) -> Read {
        (now().monotonic, self.leases.list().await)
    }

    fn take_in(&mut self, (began, listed): Read) {
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return self.failed("read the leases of the replicas", &error),
        };
        let (claims, kinds): (Vec<_>, Vec<_>) = listed.iter().map(ownership::read).unzip();
        let kinds = claims.iter().map(|claim| claim.replica.clone()).zip(kinds).collect();
        self.share.shards.write().observe(claims, began, now().monotonic);
        self.note_lack(&kinds);
        self.note_ended(listed);
    }

    /// Notes whether another replica that is alive watches over everything that this one does, and
    /// more.
    fn note_lack(&mut self, kinds: &BTreeMap<Box<str>, Kinds>) {
        let own = self.share.kinds();
        let alive = self.share.shards.read().alive();
        let mut others = alive.iter().filter_map(|name| kinds.get(name));
        let lacks = others.any(|other| *other != own && other.is_superset(&own));
        let since = self.lacking.unwrap_or(now().monotonic);
        self.lacking = lacks.then_some(since);
    }

    /// Notes the leases that have run out, and those that were released so long ago that every
    /// other replica has seen it: a replica that misses one counts it as deleted under a living
    /// holder.
    fn note_ended(&mut self, listed: Vec<ReplicaLease>) {
        let now = now().monotonic;
        let shards = self.share.shards.read();
        let lapsed: BTreeSet<&str> = shards.lapsed().collect();
        let mut released = std::mem::take(&mut self.released);
        let has_ended = |lease: &ReplicaLease| {
            if !lease.identity.is_empty() {
                return lapsed.contains(lease.identity.as_str());
            }
            let seen = released.remove(&lease.says).unwrap_or(now);
            self.released.insert(lease.says.clone(), seen);
            now >= seen + SHARD_TERM
        };
        self.ended = listed.into_iter().filter(has_ended).collect();
    }

    /// Releases the leases that have run out, and deletes those that were released: a later replica
    /// need not wait them out. Another replica may be quicker, and nothing waits for it.
    async fn sweep(&self, ended: &[ReplicaLease]) -> Vec<StoreError> {
        let ends = join_all(ended.iter().map(|lease| self.end(lease)));
        let ended = timeout(READ_EVERY, ends).await.unwrap_or_default();
        let errors = ended.into_iter().filter_map(Result::err);
        errors.filter(|error| *error != StoreError::Conflict).collect()
    }

    async fn end(&self, lease: &ReplicaLease) -> Result<(), StoreError> {
        if lease.identity.is_empty() {
            self.leases.remove(lease).await
        } else {
            self.leases.release_for(lease, &lease.identity).await
        }
    }

    /// The claim to publish.
    fn claim(&self) -> ShardClaim {
        let shards = self.share.shards.read();
        // A replica that has a share keeps it for a while: a kind may be about to be served.
        let withdraws = self.lacking.is_some_and(|since| {
            shards.view().is_none_or(View::is_empty) || now().monotonic >= since + SHARD_TERM
        });
        let view = if withdraws { View::new() } else { shards.desired() };
        ShardClaim { settled: shards.is_settled(), view, kinds: self.share.kinds() }
    }

    /// `rule:no-claim-before-a-read`, `rule:no-share-before-the-first-list`
    fn must_publish(&self) -> bool {
        let (claim, shards) = (self.claim(), self.share.shards.read());
        if !shards.has_read() || shards.has_met() && !self.share.is_filled() {
            return false;
        }
        let is_newest = |(at, renewed): &(Instant, ShardClaim)| {
            *renewed == claim && now().monotonic < *at + RENEW_EVERY
        };
        shards.pending().is_some()
            || shards.view() != Some(&claim.view)
            || !self.renewed.as_ref().is_some_and(is_newest)
    }

    /// Lets go of what the view takes from us, says so, and takes what it gives us.
    async fn publish(&mut self) {
        let claim = self.claim();
        // Letting go takes time, which is not to be that of the claims that stay.
        let old = self.unchanged().filter(|unchanged| unchanged.view != claim.view);
        let old = old.filter(|_| self.is_stale());
        if let Some(renewal) = self.renew_unchanged(old).await {
            self.take_in_renewal(renewal);
        }
        self.share.shards.write().publishing(claim.view.clone());
        self.share_out();
        self.let_go().await;
        // The machine may have slept, which the monotonic clock need not show.
        if !self.share.leads && self.share.fence.check().is_err() {
            self.share.shards.write().start_over();
        }
        let settled = self.share.shards.read().is_settled();
        let renewal = self.renew(ShardClaim { settled, ..claim }).await;
        if self.take_in_renewal(renewal) {
            // What a new view gives us we may take after the others were read once more.
            let read = self.list().await;
            self.take_in(read);
        }
        self.share_out();
    }

    /// The last published claim, while our lease surely holds it and our claims have not ended.
    fn unchanged(&self) -> Option<ShardClaim> {
        let (_, claim) = self.renewed.as_ref()?;
        let shards = self.share.shards.read();
        let stands = shards.view() == Some(&claim.view) && shards.pending().is_none();
        (stands && self.share.fence.check().is_ok()).then(|| claim.clone())
    }

    fn is_stale(&self) -> bool {
        self.renewed.as_ref().is_some_and(|(at, _)| now().monotonic >= *at + READ_EVERY)
    }

    async fn renew_unchanged(&self, claim: Option<ShardClaim>) -> Option<Renewal> {
        let claim = claim?;
        self.share.shards.write().publishing(claim.view.clone());
        Some(self.renew(claim).await)
    }

    async fn renew(&self, claim: ShardClaim) -> Renewal {
        let (sent, clocks) = (now().monotonic, self.share.fence.read_clocks());
        let result = self.leases.renew(&claim.to_string()).await;
        Renewal { claim, sent, clocks, result }
    }

    fn take_in_renewal(&mut self, Renewal { claim, sent, clocks, result }: Renewal) -> bool {
        if let Err(error) = result {
            if matches!(error, StoreError::Missing(_)) {
                self.share.shards.write().lost();
            }
            self.failed("renew the lease of this replica", &error);
            return false;
        }
        self.share.shards.write().published(sent, now().monotonic);
        if !self.share.leads {
            self.share.fence.open_for(clocks, SHARD_TERM.saturating_sub(SHARD_MARGIN));
        }
        self.renewed = Some((sent, claim));
        true
    }

    /// Gives up what is not ours any more, and has the flavours look at what has become ours.
    fn share_out(&mut self) {
        self.letting_go.extend(self.clusters.give_up_others());
        self.clusters.take_over();
    }

    /// Waits until no work on clusters of others is under way: no probe, and no write that the server
    /// can still carry out.
    async fn let_go(&mut self) {
        loop {
            self.letting_go.retain(|member| member.is_busy());
            let writing = self.clusters.writer.writing();
            if self.letting_go.is_empty() && writing.iter().all(|uid| self.share.is_ours(uid)) {
                return;
            }
            sleep(LET_GO_EVERY).await;
        }
    }

    fn failed(&mut self, what: &'static str, error: &StoreError) {
        let refused = matches!(error, StoreError::Missing(_) | StoreError::Denied(_));
        self.share.shards.write().failed(refused, now().monotonic);
        self.complain(what, error);
    }

    /// A leader without other replicas needs no Lease, so its errors are not worth a warning while
    /// no replica can share.
    fn complain(&mut self, what: &'static str, error: &StoreError) {
        let shards = self.share.shards.read();
        let is_needless = shards.is_alone() && !shards.is_unread();
        drop(shards);
        if is_needless {
            debug!(%error, "Cannot {what}; retrying");
        } else if let Some(suppressed) = self.log.pass(what, now().monotonic) {
            warn!(%error, suppressed, "Cannot {what}; retrying");
        }
    }

    fn log_changes(&mut self) {
        let shards = self.share.shards.read();
        let (desired, is_alone) = (shards.desired(), shards.is_alone());
        let (is_shared, is_unread) = (shards.has_met_others(), shards.is_unread());
        drop(shards);
        if is_unread && self.log.pass("unread", now().monotonic).is_some() {
            let namespace = &*self.share.namespace;
            warn!(
                namespace,
                "Leader probes all members although it cannot read the shard Leases: replicas with \
                 --cluster-health-shards above 1 that can read them may probe the same members; stop \
                 those replicas, or see why the API server fails the list of Leases"
            );
        }
        if is_alone && !is_unread && !std::mem::replace(&mut self.logged_alone, true) {
            let namespace = &*self.share.namespace;
            info!(
                namespace,
                "Leader probes all members without a shard Lease: the namespace does not exist or its \
                 Leases are not permitted; apply config/rbac/cluster-health-shards.yaml before you \
                 start replicas with --cluster-health-shards above 1"
            );
        }
        if is_shared && desired != self.logged_view {
            let (replicas, expected) = (desired.len(), self.share.expected);
            info!(replicas, expected, with = ?desired, "Sharing the member clusters with other replicas");
            self.logged_view = desired;
        }
        if self.lacking.is_some() && self.log.pass("lack", now().monotonic).is_some() {
            let own = self.share.kinds();
            warn!(
                served = ?own,
                "Another replica probes a kind that this replica cannot list: until it can, this \
                 replica probes no member; give all replicas the same --controllers, API server and \
                 permissions"
            );
        }
    }
}
