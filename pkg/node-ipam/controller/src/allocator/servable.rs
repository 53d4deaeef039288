//! How many more Nodes the pools can serve.

use std::collections::HashSet;
use std::sync::Arc;

use cidr::{Family, Pool};

use super::pool_source::{Entry, ServingState};
use super::{Allocator, Uid};
use crate::pressure::Servable;

impl Allocator {
    /// How many more Nodes each ClusterCIDR, or the flags, can serve; empty where a cloud names the
    /// ranges of Nodes, or there is no pool.
    pub(crate) fn servable(&self) -> Vec<Servable> {
        let pools = self.ledger.pools();
        if self.source.takes_from_objects() {
            let of_entry = |entry: &Entry| {
                let object = Some((Arc::clone(&entry.name), Arc::clone(&entry.uid)));
                let is_serving = entry.state == ServingState::Serving;
                servable(object, is_serving, &pools[entry.pools.clone()].iter().collect::<Vec<_>>())
            };
            return self.source.entries().iter().map(of_entry).collect();
        }
        let gives_blocks =
            !pools.is_empty() && (!self.source.is_cloud() || self.source.is_routed());
        let in_use: Vec<_> = pools.iter().filter(|it| !self.source.is_drained(it)).collect();
        gives_blocks.then(|| servable(None, true, &in_use)).into_iter().collect()
    }

    /// Like [`Self::servable`], once the state at the start is known; with what was full then.
    pub(crate) fn servable_since_start(&self) -> Option<(Vec<Servable>, HashSet<Option<Uid>>)> {
        let is_known = self.started.is_some() && !self.in_list;
        is_known.then(|| (self.servable(), self.full_at_start.clone()))
    }
}

fn servable(object: Option<(Arc<str>, Uid)>, is_serving: bool, pools: &[&Pool]) -> Servable {
    let of_family = |family| pools.iter().filter(move |pool| pool.family() == family);
    let families = [Family::V4, Family::V6].into_iter();
    let free = |family| of_family(family).map(|pool| pool.free()).sum::<u128>();
    let present = families.filter(|family| of_family(*family).next().is_some());
    let scarcest = present.min_by_key(|family| free(*family));
    let ranges = scarcest.into_iter().flat_map(of_family).map(|pool| cidr::canonical(&pool.cidr()));
    Servable {
        object,
        is_serving,
        nodes: if is_serving { scarcest.map_or(0, free) } else { 0 },
        scarcest: ranges.collect::<Vec<_>>().join(", "),
    }
}
