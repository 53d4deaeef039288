//! [`ShareOut`]: renews this replica's lease, follows those of the others, gives up the clusters that
//! go to them, and takes over those that come from them. What belongs to whom [`health::Shards`] says;
//! here is what has to have ended before this replica says that it let go
//! (`rule:one-owner-at-a-time`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backoff::KeyedLogGate;
use election::{ReplicaGroup, ReplicaLease, ReplicaLeases, StoreError};
use fence::BootInstant;
use futures::future::join_all;
use health::{Claim, SHARD_MARGIN, SHARD_TERM, View};
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::ownership::Share;
use super::prober::now;
use super::shared::Shared;
use super::watched::Watched;

/// Between renewals of an unchanged view.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Between reads of the leases of all replicas, and after a renewal that failed.
const READ_EVERY: Duration = Duration::from_secs(2);
/// Between looks at whether what was given up has come to its end.
const LET_GO_EVERY: Duration = Duration::from_millis(20);
/// Between lines about requests that fail.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Before the view of a replica that may not know of all others yet.
const NEW: &str = "new:";

/// The leases of all replicas that share the clusters, in the namespace of these.
pub(crate) fn group(namespace: &str) -> ReplicaGroup {
    ReplicaGroup {
        namespace: namespace.to_owned(),
        label: ("infra-controller-manager/replica-of", "cluster-health"),
        annotation: "infra-controller-manager/shares-with",
        term: SHARD_TERM,
        request_timeout: Duration::from_secs(5),
    }
}

/// One replica's part in the sharing.
pub(crate) struct ShareOut {
    leases: ReplicaLeases,
    share: Arc<Share>,
    shared: Arc<Shared>,
    /// When the lease was last renewed.
    renewed: Option<Instant>,
    /// Given up, and perhaps with a probe that has not ended.
    letting_go: Vec<Arc<Watched>>,
    /// Who has released its lease, and when that was first seen.
    released: BTreeMap<String, Instant>,
    /// Leases that nobody needs any more.
    ended: Vec<ReplicaLease>,
    /// Whether our lease says that we know of everybody.
    settled: bool,
    /// With whom the clusters were last shared, for the log.
    told: View,
    log: KeyedLogGate<&'static str>,
}

impl ShareOut {
    pub(crate) fn new(leases: ReplicaLeases, share: Arc<Share>, shared: Arc<Shared>) -> Self {
        Self {
            leases,
            share,
            shared,
            renewed: None,
            letting_go: Vec::new(),
            released: BTreeMap::new(),
            ended: Vec::new(),
            settled: false,
            told: View::new(),
            log: KeyedLogGate::new(LINE_EVERY),
        }
    }

    /// Until `stop`; the lease runs on. It begins when all flavours can look at clusters.
    pub(crate) async fn run(&mut self, stop: &CancellationToken) {
        let share = Arc::clone(&self.share);
        if stop.run_until_cancelled(share.all_filled()).await.is_none() {
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
    pub(crate) async fn release(mut self) {
        self.share.fence.close();
        // The last word of a replica is its own name.
        match self.leases.release(&self.share.name).await {
            Ok(()) => info!("Released the lease of this replica's share of the clusters"),
            Err(error) => warn!(%error, "Cannot release the lease of this replica; it runs out"),
        }
    }

    async fn turn(&mut self) {
        self.read().await;
        self.share_out();
        if self.must_renew() {
            self.renew().await;
        }
        // Nothing waits for it.
        self.sweep().await;
    }

    /// No later than the moment at which another replica's claims end.
    fn next_turn(&self) -> Instant {
        let (now, lapse) = (now().monotonic, self.share.shards.read().next_lapse());
        let regular = now + READ_EVERY;
        lapse.filter(|lapse| *lapse > now).map_or(regular, |lapse| lapse.min(regular))
    }

    async fn read(&mut self) {
        let began = now().monotonic;
        let listed = match self.leases.list().await {
            Ok(listed) => listed,
            Err(error) => return self.complain("read the leases of the replicas", &error),
        };
        let claims = listed.iter().map(claim).collect();
        self.share.shards.write().observe(claims, began, now().monotonic);
        self.note_ended(listed);
        self.tell();
    }

    /// Notes the leases that have run out, and those that were released so long ago that every other
    /// replica has seen it: to whom one is missing, it counts as deleted under a living holder.
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

    /// Releases the leases that have run out, and deletes those that were released: who comes later need
    /// not wait them out.
    async fn sweep(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        let removed = join_all(ended.iter().map(|lease| self.end(lease))).await;
        // Another replica may be quicker, and a right to do it may be missing.
        for error in removed.into_iter().filter_map(Result::err) {
            if error != StoreError::Conflict {
                self.complain("end the lease of a replica that ended", &error);
            }
        }
    }

    async fn end(&self, lease: &ReplicaLease) -> Result<(), StoreError> {
        if lease.identity.is_empty() {
            self.leases.remove(lease).await
        } else {
            self.leases.release_for(lease, &lease.identity).await
        }
    }

    /// `rule:no-claim-before-a-read`
    fn must_renew(&self) -> bool {
        let shards = self.share.shards.read();
        if !shards.has_read() {
            return false;
        }
        let due = self.renewed.is_none_or(|at| now().monotonic >= at + RENEW_EVERY);
        due || self.settled != shards.is_settled()
            || shards.pending().is_some()
            || shards.view() != Some(&shards.desired())
    }

    /// Lets go of what the view takes from us, says so, and takes what it gives us.
    async fn renew(&mut self) {
        let view = {
            let mut shards = self.share.shards.write();
            let view = shards.desired();
            shards.publishing(view.clone());
            view
        };
        self.share_out();
        self.let_go().await;
        // The machine may have slept, which the monotonic clock need not show.
        if self.share.fence.check().is_err() {
            self.share.shards.write().begin_anew();
        }
        let settled = self.share.shards.read().is_settled();
        let says = format!("{}{}", if settled { "" } else { NEW }, view.join(","));
        let (sent, boot) = (now().monotonic, BootInstant::now());
        if let Err(error) = self.leases.renew(&says).await {
            if matches!(error, StoreError::Missing(_)) {
                self.share.shards.write().lost();
            }
            return self.complain("renew the lease of this replica", &error);
        }
        self.share.shards.write().published(sent, now().monotonic);
        self.share.fence.open_for(boot, SHARD_TERM.saturating_sub(SHARD_MARGIN));
        (self.renewed, self.settled) = (Some(sent), settled);
        // What a new view gives us we may take after the others were read once more.
        self.read().await;
        self.share_out();
    }

    /// Gives up what is not ours any more, and has the flavours look at what has become ours.
    fn share_out(&mut self) {
        self.letting_go.extend(self.shared.give_up_others());
        self.shared.take_over();
    }

    /// Waits until nothing of what is not ours is under way: no probe, and no write that the server
    /// can still carry out.
    async fn let_go(&mut self) {
        loop {
            self.letting_go.retain(|watched| watched.is_busy());
            let writing = self.shared.writer.writing();
            if self.letting_go.is_empty() && writing.iter().all(|uid| self.share.is_ours(uid)) {
                return;
            }
            sleep(LET_GO_EVERY).await;
        }
    }

    fn tell(&mut self) {
        let desired = self.share.shards.read().desired();
        if desired != self.told {
            let (replicas, expected) = (desired.len(), self.share.expected);
            info!(replicas, expected, with = ?desired, "Sharing the clusters");
            self.told = desired;
        }
    }

    fn complain(&self, what: &'static str, error: &StoreError) {
        if let Some(suppressed) = self.log.pass(what, now().monotonic) {
            warn!(%error, suppressed, "Cannot {what}; it is tried again");
        }
    }
}

fn claim(lease: &ReplicaLease) -> Claim {
    let (replica, says) = match lease.identity.as_str() {
        "" => (lease.says.as_str(), ""),
        holder => (holder, lease.says.as_str()),
    };
    let (view, settled) = says.strip_prefix(NEW).map_or((says, true), |view| (view, false));
    let names = view.split(',').filter(|name| !name.is_empty());
    let view = names.map(Into::into).collect();
    Claim { replica: replica.into(), renewal: lease.renewal, view, settled }
}
