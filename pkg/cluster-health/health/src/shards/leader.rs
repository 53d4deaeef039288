//! The leader of replicas that do not share the clusters, as one among those that do: it claims
//! them under a name that all such leaders have in common, and goes on
//! alone where there are no leases to be had.

use std::time::{Duration, Instant};

use super::{Claim, Shards, View};

/// The name of every leader of replicas that do not share: there is one at a time, and the next one
/// goes on with the lease of the one before it.
pub const LEADER: &str = "leader";

/// How long a leader tries to read the leases before it continues alone: most have no replicas
/// that share, and no cluster is probed meanwhile.
const ALONE_AFTER: Duration = Duration::from_secs(5);

impl Shards {
    /// A leader that takes part for replicas that do not share. It claims nothing yet.
    pub fn of_leader() -> Self {
        Self { leads: true, ..Self::new(LEADER) }
    }

    /// A request for a lease has failed; `refused` is whether it was for want of a right or of the
    /// namespace. A leader that knows no other replica probes all clusters as long as it leads: at
    /// once, or [`ALONE_AFTER`] its first failure when it could not read the leases so far.
    pub fn failed(&mut self, refused: bool, now: Instant) {
        let first = *self.failing.get_or_insert(now);
        let in_vain = self.read.is_none() && now.saturating_duration_since(first) >= ALONE_AFTER;
        if self.leads && self.has_no_peers() && (refused || self.is_settled() || in_vain) {
            self.alone.get_or_insert(now);
        }
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
