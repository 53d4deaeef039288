//! The leader of replicas that do not share the clusters, as one among those that do: it claims
//! them under a name that all such leaders have in common, and goes on
//! alone where there are no leases to be had.

use std::time::{Duration, Instant};

use super::{Claim, SHARD_MARGIN, SHARD_TERM, Shards, View};

/// The name of every leader of replicas that do not share: there is one at a time, and the next one
/// goes on with the lease of the one before it.
pub const LEADER: &str = "leader";

/// How long a leader tries to read the leases before it goes on alone. If the server fails every
/// replica from the first failure on, the claims of all replicas that share have ended by then.
const UNREAD_FOR: Duration = SHARD_TERM.saturating_add(SHARD_MARGIN);

impl Shards {
    /// A leader that takes part for replicas that do not share. It claims nothing yet.
    pub fn of_leader() -> Self {
        Self { leads: true, ..Self::new(LEADER) }
    }

    /// A request for a lease has failed; `refused` is whether it was for want of a right or of the
    /// namespace. A leader that knows no other replica probes all clusters as long as it leads: at
    /// once, or [`UNREAD_FOR`] after its first failure when it has never read the leases and the
    /// requests are not refused (`rule:one-owner-at-a-time`).
    pub fn failed(&mut self, refused: bool, now: Instant) {
        let first = *self.failing.get_or_insert(now);
        let in_vain = self.read.is_none() && now.saturating_duration_since(first) >= UNREAD_FOR;
        if self.leads && self.has_no_peers() && (refused || self.is_settled() || in_vain) {
            self.alone.get_or_insert(now);
            self.unread = in_vain && !refused;
        }
    }

    /// Whether it goes on alone because all its reads of the leases have failed without a refusal:
    /// a replica that shares, and whose requests succeed, may probe the same clusters.
    pub fn is_unread(&self) -> bool {
        self.unread
    }

    /// Whether it goes on with all clusters although it has no lease that others would see.
    pub fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Whether another replica was ever seen.
    pub fn has_met(&self) -> bool {
        self.met
    }

    /// Whether the clusters are, or were, shared with others: never for a leader that saw no
    /// else.
    pub fn has_met_others(&self) -> bool {
        self.met || !self.leads
    }

    /// The view that the leader before this one has left; an empty one where there was none. That
    /// leader has ended, and it had waited for those whom it could not know.
    pub(super) fn left_by_a_leader(&self, claims: &[Claim]) -> Option<View> {
        let is_first = self.begun.is_none() && self.renewed.is_none();
        (self.leads && is_first).then(|| {
            let own = claims.iter().find(|claim| claim.replica == self.me);
            own.map(|claim| claim.view.clone()).unwrap_or_default()
        })
    }

    /// The leases were read. A replica that has probed all clusters so far need not wait for new ones
    /// too; it is no longer alone when it has a lease of its own, or another replica exists.
    pub(super) fn note_peers(&mut self, now: Instant) {
        self.met |= !self.has_no_peers();
        self.unread = false;
        if self.alone.is_none() {
            return;
        }
        if !self.held().any(|peer| peer.claim.settled) {
            self.settled.get_or_insert(now);
        }
        if !self.has_no_peers() || self.is_entitled(now) {
            self.alone = None;
        }
    }

    fn has_no_peers(&self) -> bool {
        self.peers.values().all(|peer| peer.lapsed)
    }
}
