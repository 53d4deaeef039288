//! [`Counts`]: what is counted of claims, as metrics show it.

use std::collections::HashMap;
use std::sync::Arc;

use cidr::{Change, Pool};

use crate::pressure::Pressure;
use crate::snapshot::{PoolState, Snapshot};

/// Numbers that cannot be read off the claims at once.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Pairs of live Nodes whose claims overlap.
    pub(super) conflicts: usize,
    /// Nodes that somebody else gave CIDRs to while they waited for ours.
    pub(super) foreign: u64,
    /// By UID: CIDRs outside of the pool. A Node without any takes no room.
    external: HashMap<Arc<str>, usize>,
    /// By UID: texts that are no CIDRs.
    garbage: HashMap<Arc<str>, usize>,
    /// Of the pool.
    occupied: u128,
    freed: u128,
    pressure: Pressure,
}

impl Counts {
    /// Blocks of the pool, if there is one, became used or free.
    pub(super) fn change(&mut self, change: &Change, pools: &[Pool]) {
        let Some(pool) = pools.first() else { return };
        self.occupied += change.occupied.iter().sum::<u128>();
        self.freed += change.freed.iter().sum::<u128>();
        // The metric tells it; the log of a cloud's ranges is the cloud's.
        let _line = self.pressure.update(pool.used(), pool.blocks());
    }

    /// So many CIDRs of a Node are outside of the pool.
    pub(super) fn set_external(&mut self, uid: &Arc<str>, cidrs: usize) {
        set(&mut self.external, uid, cidrs);
    }

    /// So many texts of a Node are no CIDRs.
    pub(super) fn set_garbage(&mut self, uid: &Arc<str>, texts: usize) {
        set(&mut self.garbage, uid, texts);
    }

    /// All but the Nodes that wait.
    pub(super) fn snapshot(&self, pools: &[Pool]) -> Snapshot {
        let state = |pool: &Pool| PoolState {
            cidr: pool.cidr(),
            object: None,
            blocks: pool.blocks(),
            used: pool.used(),
            occupied_total: self.occupied,
            freed_total: self.freed,
            pressure: self.pressure.percent(),
        };
        Snapshot {
            pools: pools.iter().map(state).collect(),
            conflicts: self.conflicts,
            external: self.external.values().chain(self.garbage.values()).sum(),
            foreign_total: self.foreign,
            ..Snapshot::default()
        }
    }
}

fn set(counts: &mut HashMap<Arc<str>, usize>, uid: &Arc<str>, count: usize) {
    if count == 0 {
        counts.remove(uid);
    } else {
        counts.insert(Arc::clone(uid), count);
    }
}
