//! [`Shards`]: which of several replicas probes a cluster, so that it is never two at once.
//!
//! Every replica renews a Lease of its own, in which it also publishes its *view*: the replicas
//! among which it shares the clusters out. A cluster belongs to the replica of the view whose hash
//! with the cluster's is highest (rendezvous hashing), so that one that comes or goes moves only
//! its own share. Views differ while replicas come and go; what keeps two of them from probing the
//! same cluster is the order of things (`rule:one-owner-at-a-time`):
//!
//! 1. Before a replica publishes a view, it stops probing what that view takes from it, and waits
//!    until no write about that can be carried out any more.
//! 2. It probes what a view gives it only after that view is published and the leases of the others
//!    were read once more, and only what none of them claims by its own published view.
//! 3. A claim ends when its lease is released, or when a read shows that it was not renewed for the
//!    whole of its term. One whose lease is gone may have been renewed until the read that misses
//!    it. Its holder stops by itself before that, and after a gap that long begins as if its view
//!    were new.
//!
//! Of two replicas that claim a cluster, the second to publish sees the claim of the first.
//!
//! A replica that has just begun cannot miss a lease that somebody deleted before. It is *settled*,
//! and may probe, once it surely knows of everybody.
//!
//! Where replicas do not share, their leader takes part all the same (`leader.rs`).

mod leader;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

pub use leader::LEADER;

use crate::write_gate::{hash, mix};

/// How long a claim outlives the last renewal that the others have seen.
pub const SHARD_TERM: Duration = Duration::from_secs(30);
/// How long before that its holder stops, for the differences of clocks and the ends of probes.
pub const SHARD_MARGIN: Duration = Duration::from_secs(5);

/// How long after the death of a replica another one has its clusters: a term, and the time until
/// it is looked at before and after.
pub const SHARD_INHERITED: Duration = Duration::from_secs(34);

/// One replica's knowledge of all.
#[derive(Clone, Debug)]
pub struct Shards {
    me: Box<str>,
    /// The view in our lease, and since when it is surely there.
    published: Option<(View, Instant)>,
    /// The views that may be in our lease by now: a write of the last one is under way, and how
    /// those of the others ended is unknown.
    pending: Vec<View>,
    /// When the last renewal that succeeded was sent.
    renewed: Option<Instant>,
    /// When the last complete read of all leases was begun.
    read: Option<Instant>,
    /// When the first read ended.
    begun: Option<Instant>,
    /// Since when no unknown replica can be probing.
    settled: Option<Instant>,
    peers: BTreeMap<Box<str>, Peer>,
    /// This replica is a leader that takes part for replicas that do not share.
    leads: bool,
    /// Since when it has gone on without a lease.
    alone: Option<Instant>,
    /// When a request for a lease failed for the first time.
    failing: Option<Instant>,
    /// It goes on without a lease because its reads fail, and replicas that share may not have ended.
    unread: bool,
    /// Whether this replica has ever seen another one.
    met: bool,
}

#[derive(Clone, Debug)]
struct Peer {
    claim: Claim,
    /// When we first saw this renewal, or that the lease is missing.
    seen: Instant,
    /// Somebody has deleted its lease.
    missing: bool,
    /// A read that was begun a whole term later showed the same: its holder has stopped.
    lapsed: bool,
}

impl Shards {
    /// A replica that claims nothing yet.
    pub fn new(me: impl Into<Box<str>>) -> Self {
        Self {
            me: me.into(),
            published: None,
            pending: Vec::new(),
            renewed: None,
            read: None,
            begun: None,
            settled: None,
            peers: BTreeMap::new(),
            leads: false,
            alone: None,
            failing: None,
            unread: false,
            met: false,
        }
    }

    /// Takes in the leases of all replicas, as read by a consistent read that was begun at `began`
    /// and has ended by `now`. Of who is not among them somebody has deleted the lease: what it
    /// claimed it may go on to probe for a term. If that is us, our lease protects nothing any
    /// more.
    pub fn observe(&mut self, claims: Vec<Claim>, began: Instant, now: Instant) {
        let left = self.left_by_a_leader(&claims);
        let mut known = std::mem::take(&mut self.peers);
        let listed: BTreeSet<_> = claims.iter().map(|claim| claim.replica.clone()).collect();
        for claim in claims.into_iter().filter(|claim| claim.replica != self.me) {
            let before = known.remove(&claim.replica);
            if claim.view.is_empty() {
                continue;
            }
            let seen = match before {
                Some(before) if before.claim.renewal == claim.renewal => before.seen,
                _ => now,
            };
            let lapsed = began.saturating_duration_since(seen) >= SHARD_TERM;
            let peer = Peer { claim, seen, missing: false, lapsed };
            self.peers.insert(peer.claim.replica.clone(), peer);
        }
        for (name, mut peer) in known.into_iter().filter(|(_, peer)| !peer.lapsed) {
            if !std::mem::replace(&mut peer.missing, true) {
                peer.seen = now;
            }
            if began.saturating_duration_since(peer.seen) < SHARD_TERM {
                self.peers.insert(name, peer);
            }
        }
        // One that was published after the read was begun need not be in it.
        let missed = !listed.contains(&self.me);
        self.published.take_if(|(_, since)| missed && *since <= began);
        self.read = Some(began);
        if self.settled.is_none() && self.knows_all(&listed, left.as_ref(), began, now) {
            self.settled = Some(now);
        }
        self.note_peers(now);
    }

    /// Whether no replica can be probing whose lease was gone before our first read.
    /// `listed` have a lease, held or released; `left` is
    /// what the leader before this one knew.
    fn knows_all(
        &mut self,
        listed: &BTreeSet<Box<str>>,
        left: Option<&View>,
        began: Instant,
        now: Instant,
    ) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let told = |peer: &Peer| peer.claim.settled && peer.claim.view.contains(&self.me);
        let told = left.is_some() || self.held().any(told);
        let named = self.held().map(|peer| &peer.claim.view).chain(left);
        let all = named.flatten().all(|name| listed.contains(name));
        (told && all) || began.saturating_duration_since(begun) >= SHARD_TERM
    }

    /// Replicas whose lease exists and has not expired.
    fn held(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values().filter(|peer| !peer.missing && !peer.lapsed)
    }

    /// Whether we surely know of everybody who may be probing.
    pub fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    /// Whether the leases were ever read. Before that, publish nothing: a replica that claims clusters
    /// without knowing the others stops their probes (`rule:no-claim-before-a-read`).
    pub fn has_read(&self) -> bool {
        self.read.is_some()
    }

    /// Our lease is gone: what we knew of the others does not count any more.
    pub fn lost(&mut self) {
        self.published = None;
    }

    /// Our lease protected nothing for a time, which the clock of our times need not have shown: we
    /// know no more than a newcomer.
    pub fn start_over(&mut self) {
        (self.published, self.begun, self.settled) = (None, None, None);
    }

    /// When the older of our last renewal and our last read was begun; `None` before the first of
    /// either.
    pub fn in_touch(&self) -> Option<Instant> {
        Some(self.renewed?.min(self.read?))
    }

    /// The view to publish now: ourselves and everybody alive.
    pub fn desired(&self) -> View {
        let mut view = self.alive();
        view.push(self.me.clone());
        view.sort();
        view
    }

    /// Other replicas that are alive.
    pub fn alive(&self) -> View {
        let alive = self.peers.iter().filter(|(_, peer)| !peer.lapsed);
        alive.map(|(name, _)| name.clone()).collect()
    }

    /// Replicas whose claims have ended without a release. The caller releases their
    /// leases, unless they were renewed meanwhile: another replica may have begun to read later.
    pub fn lapsed(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().filter(|(_, peer)| peer.lapsed).map(|(name, _)| &**name)
    }

    /// When the first of the others will have lapsed if none renews.
    pub fn next_lapse(&self) -> Option<Instant> {
        self.peers.values().filter(|peer| !peer.lapsed).map(|peer| peer.seen + SHARD_TERM).min()
    }

    /// A write of `view` into our lease is about to be sent. From now on a cluster may be probed only if this
    /// view, the one before, and all views with an unknown outcome assign it to us. The caller ends the
    /// other probes, and lets its writes about those clusters end, before it sends
    /// (`rule:one-owner-at-a-time`). The write rests on the version of the lease that was read
    /// last, so that none of an earlier one is carried out after it.
    pub fn publishing(&mut self, view: View) {
        self.pending.retain(|other| *other != view);
        self.pending.push(view);
    }

    /// The write that was sent at `sent` has succeeded by `now`.
    pub fn published(&mut self, sent: Instant, now: Instant) {
        let before = self.renewed.replace(sent);
        let lapsed = before.is_none_or(|before| now >= before + SHARD_TERM);
        if lapsed && before.is_some() {
            self.start_over();
        }
        let Some(view) = self.pending.pop() else { return };
        // Another view in between, or a time without a lease, may have let other replicas in:
        // read them again.
        let let_in = !std::mem::take(&mut self.pending).is_empty() || lapsed;
        match &self.published {
            Some((before, _)) if *before == view && !let_in => {}
            _ => self.published = Some((view, now)),
        }
    }

    /// The view in our lease, if it surely is there.
    pub fn view(&self) -> Option<&View> {
        self.published.as_ref().map(|(view, _)| view)
    }

    /// The last view whose write is in flight or has an unknown outcome.
    pub fn pending(&self) -> Option<&View> {
        self.pending.last()
    }

    /// Since when the cluster with this hash has been ours without a gap in which another replica
    /// can have had it, or a little later; `None` when it is not ours at `now`.
    pub fn ours_since(&self, cluster: u64, now: Instant) -> Option<Instant> {
        if self.alone.is_some() {
            return self.alone;
        }
        let since = self.published.as_ref().map(|(_, since)| *since)?.max(self.settled?);
        self.may_probe(cluster, now).then_some(since)
    }

    /// Whether the cluster with this hash is ours to probe at `now`.
    pub fn may_probe(&self, cluster: u64, now: Instant) -> bool {
        if self.alone.is_some() {
            return true;
        }
        let Some((view, _)) = &self.published else { return false };
        let ours = |view: &View| owner(cluster, view).is_some_and(|owner| *owner == *self.me);
        self.is_entitled(now)
            && ours(view)
            && self.pending.iter().all(ours)
            && !self.peers.values().any(|peer| peer.claims(cluster))
    }

    /// The replica that the cluster with this hash belongs to, as far as is known here: one that
    /// claims it, else whom our view gives it to.
    pub fn owner(&self, cluster: u64) -> Option<&str> {
        let claiming = self.peers.iter().find(|(_, peer)| peer.claims(cluster));
        claiming.map(|(name, _)| &**name).or_else(|| owner(cluster, self.view()?))
    }

    /// We know of everybody, our view is there, the others were read after that, and our claims
    /// have not ended.
    fn is_entitled(&self, now: Instant) -> bool {
        let since = self.published.as_ref().map(|(_, since)| *since);
        self.is_settled()
            && since.is_some_and(|since| self.read.is_some_and(|began| began >= since))
            && self.valid_until().is_some_and(|until| now < until)
    }

    /// When our own claims end if no renewal succeeds until then.
    pub(crate) fn valid_until(&self) -> Option<Instant> {
        self.renewed.and_then(|sent| (sent + SHARD_TERM).checked_sub(SHARD_MARGIN))
    }
}

impl Peer {
    fn claims(&self, cluster: u64) -> bool {
        !self.lapsed
            && owner(cluster, &self.claim.view).is_some_and(|owner| *owner == *self.claim.replica)
    }
}

/// The replicas that one replica shares clusters out among, sorted, itself included.
pub type View = Vec<Box<str>>;

/// Content of a replica's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The replica that holds the lease.
    pub replica: Box<str>,
    /// Anything that differs after each renewal.
    pub renewal: u64,
    /// The replicas by which this replica chooses its share; empty when it has released its lease.
    pub view: View,
    /// The replica knows all replicas that may be probing; false while it is new.
    pub settled: bool,
}

/// The replica of `view` to which the cluster with this hash belongs.
fn owner(cluster: u64, view: &[Box<str>]) -> Option<&str> {
    let weight = |replica: &str| mix(cluster ^ hash(replica));
    view.iter().map(|replica| &**replica).max_by_key(|replica| (weight(replica), *replica))
}

#[cfg(test)]
mod tests;
