//! The allocator as metrics see it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Allocator, Phase};
use crate::snapshot::{Counted, PoolState, Snapshot};

impl Counted for Mutex<Allocator> {
    fn count(&self) -> Snapshot {
        self.lock().snapshot()
    }
}

impl Allocator {
    /// Counts everything.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let names = self.names_of_pools();
        let pools = self.ledger.pools().iter().zip(&self.counters.pools).zip(names);
        let mut snapshot = Snapshot {
            pools: pools
                .map(|((pool, counters), object)| PoolState {
                    cidr: pool.cidr(),
                    object,
                    blocks: pool.blocks(),
                    used: pool.used(),
                    occupied_total: counters.occupied,
                    freed_total: counters.freed,
                    pressure: counters.pressure.percent(),
                })
                .collect(),
            conflicts: self.findings.conflicts(),
            external: self.findings.external(),
            in_services: self.findings.in_services(),
            resting: self.rests.len(),
            foreign_total: self.counters.foreign,
            ..Snapshot::default()
        };
        for node in self.unassigned.values() {
            match node.phase {
                Phase::Pending => snapshot.pending += 1,
                Phase::Starved(_) => snapshot.starved += 1,
                Phase::Reserved => snapshot.reserved += 1,
            }
            snapshot.unresolved += usize::from(node.outcome().is_open());
        }
        snapshot
    }

    /// By the places of the pools.
    fn names_of_pools(&self) -> Vec<Option<Arc<str>>> {
        let mut names = vec![None; self.ledger.pools().len()];
        for entry in self.catalogue.iter().flat_map(|it| it.entries()) {
            names[entry.pools.clone()].fill(Some(entry.name.clone()));
        }
        names
    }
}
