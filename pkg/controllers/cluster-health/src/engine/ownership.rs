//! [`Ownership`]: which clusters this replica probes and writes: all of them, or the share that
//! [`Shards`] says.

use std::sync::Arc;
use std::time::Instant;

use fence::Fence;
use health::{Shards, hash};
use parking_lot::RwLock;

use super::prober::now;

/// Asked before each probe and each write. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Ownership(Option<Arc<Share>>);

/// The share of one replica of several.
pub(crate) struct Share {
    /// How many replicas the command line speaks of.
    pub(crate) expected: usize,
    /// Opened by each renewal of this replica's lease.
    pub(crate) fence: Fence,
    pub(crate) shards: RwLock<Shards>,
}

impl Ownership {
    /// A share, of which nothing is ours yet.
    pub(crate) fn of(share: &Arc<Share>) -> Self {
        Self(Some(Arc::clone(share)))
    }

    /// Whether there are other replicas that may own a cluster.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the cluster with this UID is ours at this moment (`rule:a-share-ends-by-time`).
    pub(crate) fn is_ours(&self, uid: &str) -> bool {
        self.0.as_ref().is_none_or(|share| share.is_ours(uid))
    }

    /// Since when it has been ours without a gap, as [`Shards::ours_since`]; `None` when it is not, and
    /// when there are no other replicas.
    pub(crate) fn ours_since(&self, uid: &str) -> Option<Instant> {
        let share = self.0.as_ref().filter(|share| share.fence.check().is_ok())?;
        share.shards.read().ours_since(hash(uid), now().monotonic)
    }

    /// The replica that has a cluster, as far as is known; `None` when one process has them all.
    pub(crate) fn owner(&self, uid: &str) -> Option<String> {
        let shards = self.0.as_ref()?.shards.read();
        shards.owner(hash(uid)).map(str::to_owned)
    }

    /// Replicas that are alive, and that the command line speaks of; `None` when one process has all
    /// clusters.
    pub(crate) fn replicas(&self) -> Option<(usize, usize)> {
        let share = self.0.as_ref()?;
        Some((share.shards.read().desired().len(), share.expected))
    }
}

impl Share {
    /// Neither the monotonic clock, which may stop while the machine sleeps, nor that of the fence,
    /// which does not, has passed the end of our claims.
    pub(crate) fn is_ours(&self, uid: &str) -> bool {
        self.fence.check().is_ok() && self.shards.read().may_probe(hash(uid), now().monotonic)
    }
}
