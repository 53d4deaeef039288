//! How full pools are: [`Pressure`] says when to warn, [`Snapshot`] is what metrics show.
//!
//! A warning line is crossed once, and armed again only after the pool has fallen clearly below it,
//! so a pool that hovers at a line does not repeat its warning.

use std::sync::Arc;

use cidr::{Family, IpNet, Pool};

/// Warning lines in percent of a pool's blocks.
const LINES: [u8; 2] = [80, 95];
/// Percentage points below a line at which it is armed again.
const REARM: u128 = 5;

/// The highest line that a pool stands at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    line: Option<u8>,
}

impl Pressure {
    /// Takes in the pool's use and returns a line that was crossed upwards just now.
    pub(crate) fn update(&mut self, used: u128, blocks: u128) -> Option<u8> {
        let reached = LINES.into_iter().rev().find(|line| at_least(used, blocks, (*line).into()));
        if reached > self.line {
            self.line = reached;
            return reached;
        }
        self.relieve(used, blocks);
        None
    }

    /// Takes in that blocks were freed.
    pub(crate) fn relieve(&mut self, used: u128, blocks: u128) {
        while let Some(line) = self.line {
            if at_least(used, blocks, u128::from(line) - REARM) {
                break;
            }
            self.line = LINES.into_iter().rev().find(|lower| *lower < line);
        }
    }

    /// The line in force: 0, 80 or 95.
    pub(crate) fn percent(self) -> u8 {
        self.line.unwrap_or(0)
    }
}

/// Whether so many percent of the blocks are used.
pub(crate) fn at_least(used: u128, blocks: u128, percent: u128) -> bool {
    // Blocks may be 2^64, so this stays far below the limit of u128.
    used * 100 >= blocks * percent
}

/// One pool in numbers; `usage`, the counters and the warning line are what dashboards show.
#[derive(Clone, Debug)]
pub(crate) struct PoolState {
    /// The cluster CIDR.
    pub(crate) cidr: IpNet,
    /// The name of the ClusterCIDR that it is of, if it is of one.
    pub(crate) object: Option<Arc<str>>,
    /// Whether it gives out blocks, as the label of metrics.
    pub(crate) state: &'static str,
    /// Prefix length of its blocks.
    pub(crate) mask: u8,
    /// How many blocks the pool has.
    pub(crate) blocks: u128,
    /// Blocks that some claim overlaps.
    pub(crate) used: u128,
    /// Blocks that became used since start.
    pub(crate) occupied_total: u128,
    /// Blocks that became free since start.
    pub(crate) freed_total: u128,
    /// The highest warning line that the pool stands at: 0, 80 or 95.
    pub(crate) pressure: u8,
}

/// A ClusterCIDR, or all pools of the flags together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Servable {
    /// Name and UID of the ClusterCIDR; `None` for the flags.
    pub(crate) object: Option<(Arc<str>, Arc<str>)>,
    /// Whether it gives out blocks.
    pub(crate) is_serving: bool,
    /// How many Nodes get a block of each family.
    pub(crate) nodes: u128,
    /// The ranges of the family with the fewest free blocks.
    pub(crate) scarcest: String,
}

impl Servable {
    /// Counts these pools, which belong together.
    pub(crate) fn of(
        object: Option<(Arc<str>, Arc<str>)>,
        is_serving: bool,
        pools: &[&Pool],
    ) -> Self {
        let of_family = |family| pools.iter().filter(move |pool| pool.family() == family);
        let families = [Family::V4, Family::V6].into_iter();
        let free = |family| of_family(family).map(|pool| pool.free()).sum::<u128>();
        let present = families.filter(|family| of_family(*family).next().is_some());
        let scarcest = present.min_by_key(|family| free(*family));
        let ranges =
            scarcest.into_iter().flat_map(of_family).map(|pool| cidr::canonical(&pool.cidr()));
        Self {
            object,
            is_serving,
            nodes: if is_serving { scarcest.map_or(0, free) } else { 0 },
            scarcest: ranges.collect::<Vec<_>>().join(", "),
        }
    }
}

/// All counts at the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// In the order of the flags.
    pub(crate) pools: Vec<PoolState>,
    /// Nodes without blocks that do not wait for a free one.
    pub(crate) pending: usize,
    /// Nodes that wait for a free block.
    pub(crate) starved: usize,
    /// Nodes with blocks that they do not show yet.
    pub(crate) reserved: usize,
    /// Pairs of live Nodes whose CIDRs overlap.
    pub(crate) conflicts: usize,
    /// CIDRs of live Nodes that lie outside all pools, or cannot be parsed.
    pub(crate) external: usize,
    /// CIDRs of live Nodes that overlap a service range.
    pub(crate) in_services: usize,
    /// Deleted Nodes whose blocks stay unused for now.
    pub(crate) resting: usize,
    /// Nodes that somebody else gave CIDRs to while they waited for ours.
    pub(crate) foreign_total: u64,
    /// How many more Nodes can be served.
    pub(crate) servable: Vec<Servable>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_reported_once_on_the_way_up() {
        let mut pressure = Pressure::default();
        let told: Vec<_> = (1..=100).filter_map(|used| pressure.update(used, 100)).collect();
        assert_eq!(told, [80, 95]);
        assert_eq!(pressure.percent(), 95);
    }

    #[test]
    fn only_the_highest_line_is_reported_when_both_are_crossed_at_once() {
        let mut pressure = Pressure::default();
        assert_eq!(pressure.update(1, 1), Some(95));
        assert_eq!(pressure.update(1, 1), None);
    }

    #[test]
    fn a_pool_that_hovers_at_a_line_does_not_chatter() {
        let mut pressure = Pressure::default();
        assert_eq!(pressure.update(80, 100), Some(80));
        for used in [79, 80, 76, 81, 75, 80] {
            assert_eq!(pressure.update(used, 100), None, "at {used}");
        }
        assert_eq!(pressure.update(74, 100), None);
        assert_eq!(pressure.percent(), 0);
        assert_eq!(pressure.update(80, 100), Some(80));
    }

    #[test]
    fn falling_from_the_upper_line_keeps_the_lower_one() {
        let mut pressure = Pressure::default();
        assert_eq!(pressure.update(96, 100), Some(95));
        assert_eq!(pressure.update(85, 100), None);
        assert_eq!(pressure.percent(), 80);
        assert_eq!(pressure.update(95, 100), Some(95));
    }

    #[test]
    fn the_largest_pool_does_not_overflow() {
        assert_eq!(Pressure::default().update(1 << 64, 1 << 64), Some(95));
    }
}
