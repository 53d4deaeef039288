//! [`Source`]: where the blocks come from.

use cidr::{IpNet, Pool};

use super::super::cluster_cidrs;
use super::store::Block;
use crate::allocator::{Allocator, ServingState};

/// Pools of an allocator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// Ranges of the flags, one of each family, and the sizes of their blocks.
    Flags(&'static [(&'static str, u8)]),
    /// ClusterCIDRs of IPv4, with blocks of 16 addresses.
    ClusterCidrs(&'static [&'static str]),
}

impl Source {
    /// An allocator that has seen which of its ClusterCIDRs drain.
    pub(super) fn allocator(self, draining: [bool; 2]) -> Allocator {
        match self {
            Self::Flags(_) => Allocator::new(self.pools(), &[]),
            Self::ClusterCidrs(ranges) => {
                let mut allocator = cluster_cidrs::empty();
                for (number, drains) in draining.into_iter().enumerate().take(ranges.len()) {
                    self.see(&mut allocator, number, drains);
                }
                allocator
            }
        }
    }

    /// The allocator sees a ClusterCIDR.
    pub(super) fn see(self, allocator: &mut Allocator, number: usize, drains: bool) {
        let Self::ClusterCidrs(ranges) = self else { return };
        let state = if drains { ServingState::Draining } else { ServingState::Serving };
        let spec = cluster_cidrs::everybody(ranges[number], 4);
        drop(cluster_cidrs::see(allocator, ranges[number], state, &spec));
    }

    /// Whether a block is of a ClusterCIDR that drains.
    pub(super) fn is_drained(self, block: Block, draining: [bool; 2]) -> bool {
        let all = self.blocks();
        let mut drained = all.iter().zip(draining).filter(|(_, drains)| *drains);
        !self.is_flags() && drained.any(|(it, _)| it.overlaps(block))
    }

    fn pools(self) -> Vec<Pool> {
        let pool = |(range, mask)| Pool::new(cidr::parse(range).unwrap(), mask, 16).unwrap();
        match self {
            Self::Flags(ranges) => ranges.iter().copied().map(pool).collect(),
            Self::ClusterCidrs(ranges) => ranges.iter().map(|range| pool((range, 28))).collect(),
        }
    }

    pub(super) fn is_flags(self) -> bool {
        matches!(self, Self::Flags(_))
    }

    /// Number of families; none where it goes without saying.
    pub(super) fn families(self) -> usize {
        match self {
            Self::Flags(ranges) if ranges.len() > 1 => ranges.len(),
            Self::Flags(_) | Self::ClusterCidrs(_) => 0,
        }
    }

    pub(super) fn cluster_cidrs(self) -> usize {
        if let Self::ClusterCidrs(ranges) = self { ranges.len() } else { 0 }
    }

    /// What one Node after the other can get.
    pub(super) fn blocks(self) -> Vec<Block> {
        let all = |pool: &Pool| (0..pool.blocks()).filter_map(|index| pool.block(index)).collect();
        let pools: Vec<Vec<IpNet>> = self.pools().iter().map(all).collect();
        if self.is_flags() {
            let nth =
                |index| pools.iter().filter_map(move |pool| pool.get(index).copied()).collect();
            let blocks: Vec<Vec<IpNet>> = (0..pools[0].len()).map(nth).collect();
            return blocks.iter().filter_map(|cidrs| Block::of(cidrs)).collect();
        }
        pools.iter().flatten().filter_map(|cidr| Block::of(&[*cidr])).collect()
    }
}
