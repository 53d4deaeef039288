//! One cluster CIDR cut into equal blocks: which block is where, which are used, which is next
//! (`rule:blocks-are-next-fit`). Used alone where blocks have no owners, and by the ledger.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::prefix::{MAX_BITS, Prefix};
use super::{Exhausted, Family, PoolError};

/// A pool: one cluster CIDR and one node mask.
///
/// Invariant: every index in `used` is below the number of blocks, and so is the cursor.
#[derive(Clone, Debug)]
pub struct Pool {
    cidr: IpNet,
    prefix: Prefix,
    mask: u8,
    /// Where the search for the next free block begins. Only [`Pool::take`] and the ledger's
    /// allocation move it.
    cursor: u128,
    used: RunSet,
}

/// The block a pool would hand out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The block itself.
    pub block: IpNet,
    /// Index of the block in its pool.
    pub index: u128,
    /// Used blocks between the cursor and this one; 0 is a first hit.
    pub skipped: u128,
}

impl Pool {
    /// A pool with every block free and the cursor at 0. Host bits of `cidr` are masked.
    ///
    /// A mask equal to the prefix is one block. `max_ipv6_bits` limits mask minus prefix for IPv6
    /// (upstream: 16); more than 64 counts as 64. IPv4 has no limit.
    pub fn new(cidr: IpNet, mask: u8, max_ipv6_bits: u8) -> Result<Self, PoolError> {
        let cidr = cidr.trunc();
        let family = Family::of(&cidr);
        if mask > family.width() {
            return Err(PoolError::MaskTooLong { cidr, mask, family });
        }
        let bits = mask.checked_sub(cidr.prefix_len()).ok_or(PoolError::MaskShorterThanPrefix {
            cidr,
            mask,
            max: family.width(),
        })?;
        let max = max_ipv6_bits.min(MAX_BITS);
        if family == Family::V6 && bits > max {
            return Err(PoolError::TooManyIpv6Bits { bits, max });
        }
        Ok(Self { cidr, prefix: Prefix::of(&cidr), mask, cursor: 0, used: RunSet::default() })
    }

    /// The cluster CIDR, without host bits.
    pub fn cidr(&self) -> IpNet {
        self.cidr
    }

    /// The prefix length of a block.
    pub fn mask(&self) -> u8 {
        self.mask
    }

    /// The family of the cluster CIDR.
    pub fn family(&self) -> Family {
        self.prefix.family
    }

    /// How many blocks the pool has, used or not.
    pub fn blocks(&self) -> u128 {
        1 << (self.mask - self.prefix.length)
    }

    /// How many blocks are used.
    pub fn used(&self) -> u128 {
        self.used.len()
    }

    /// How many blocks are free.
    pub fn free(&self) -> u128 {
        self.blocks() - self.used()
    }

    /// The most free blocks side by side.
    pub fn longest_free_run(&self) -> u128 {
        let (mut next, mut longest) = (0, 0);
        for (&first, &last) in &self.used.runs {
            longest = first.saturating_sub(next).max(longest);
            next = last + 1;
        }
        (self.blocks() - next).max(longest)
    }

    /// The block of an index; none at or after [`Pool::blocks`].
    pub fn block(&self, index: u128) -> Option<IpNet> {
        if index >= self.blocks() {
            return None;
        }
        let offset = index.checked_shl(self.block_bits()).unwrap_or(0);
        let network = self.prefix.network + offset;
        Prefix { network, length: self.mask, ..self.prefix }.to_net()
    }

    /// The blocks a CIDR overlaps; none when it lies outside the pool. A CIDR that covers the pool
    /// overlaps all of them, one smaller than a block overlaps that block.
    pub fn indices(&self, cidr: &IpNet) -> Option<RangeInclusive<u128>> {
        let inside = self.clipped(Prefix::of(cidr))?;
        let bits = self.block_bits();
        let index = |address: u128| (address - self.prefix.network).checked_shr(bits).unwrap_or(0);
        Some(index(inside.network)..=index(inside.last()))
    }

    /// Marks the blocks a CIDR overlaps as used. Returns how many became used by that.
    pub fn occupy(&mut self, cidr: &IpNet) -> u128 {
        self.indices(cidr).map_or(0, |range| self.used.insert(&range))
    }

    /// Marks the blocks a CIDR overlaps as free. Returns how many became free by that.
    pub fn release(&mut self, cidr: &IpNet) -> u128 {
        self.indices(cidr).map_or(0, |range| self.used.remove(&range))
    }

    /// The first free block at or after the cursor, wrapping; none when all are used.
    pub fn peek(&self) -> Option<Candidate> {
        if self.free() == 0 {
            return None;
        }
        let ahead = self.used.first_absent(self.cursor);
        let index = if ahead < self.blocks() { ahead } else { self.used.first_absent(0) };
        let skipped = if ahead < self.blocks() {
            index - self.cursor
        } else {
            self.blocks() - self.cursor + index
        };
        self.block(index).map(|block| Candidate { block, index, skipped })
    }

    /// Takes what [`Pool::peek`] shows: the block becomes used and the cursor moves behind it.
    pub fn take(&mut self) -> Option<Candidate> {
        let candidate = self.peek()?;
        self.occupy(&candidate.block);
        self.advance(candidate.index);
        Some(candidate)
    }

    /// Puts the cursor behind an index that was handed out.
    pub(crate) fn advance(&mut self, index: u128) {
        self.cursor = (index + 1) % self.blocks();
    }

    /// The smallest CIDR made of whole blocks of this pool around `cidr`; none when out of range.
    pub(crate) fn whole_blocks(&self, cidr: &IpNet) -> Option<Prefix> {
        self.clipped(Prefix::of(cidr)).map(|inside| inside.widened(self.mask))
    }

    pub(crate) fn exhausted(&self) -> Exhausted {
        Exhausted { pool: self.cidr, mask: self.mask, blocks: self.blocks(), used: self.used() }
    }

    /// The part of a CIDR inside the pool: CIDRs are nested or disjoint, so one of the two.
    fn clipped(&self, cidr: Prefix) -> Option<Prefix> {
        let inside = if cidr.length <= self.prefix.length { self.prefix } else { cidr };
        cidr.overlaps(self.prefix).then_some(inside)
    }

    /// Address bits inside a block. 128 for the one block of `::/0` with mask 0, which is why
    /// shifts by it are checked.
    fn block_bits(&self) -> u32 {
        u32::from(self.prefix.family.width() - self.mask)
    }
}

/// A set of block indices below 2^64. Invariant: runs neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunSet {
    /// First index of a run to its last.
    runs: BTreeMap<u128, u128>,
    len: u128,
}

impl RunSet {
    pub(crate) fn len(&self) -> u128 {
        self.len
    }

    /// Adds a range and tells how many of its indices are new.
    pub(crate) fn insert(&mut self, range: &RangeInclusive<u128>) -> u128 {
        let (mut start, mut end) = (*range.start(), *range.end());
        let mut present = 0;
        // Runs that only touch the range are merged too. The search goes downwards from its end.
        while let Some((first, last)) =
            self.run_from(end + 1).filter(|&(_, last)| last + 1 >= start)
        {
            if first <= start && last >= end {
                return 0;
            }
            self.runs.remove(&first);
            present += overlap(first, last, range);
            (start, end) = (start.min(first), end.max(last));
        }
        self.runs.insert(start, end);
        let new = range.end() - range.start() + 1 - present;
        self.len += new;
        new
    }

    /// Removes a range and tells how many of its indices were present.
    pub(crate) fn remove(&mut self, range: &RangeInclusive<u128>) -> u128 {
        let (start, end) = (*range.start(), *range.end());
        let mut removed = 0;
        while let Some((first, last)) = self.run_from(end).filter(|&(_, last)| last >= start) {
            self.runs.remove(&first);
            removed += overlap(first, last, range);
            if first < start {
                self.runs.insert(first, start - 1);
            }
            if last > end {
                self.runs.insert(end + 1, last);
            }
        }
        self.len -= removed;
        removed
    }

    /// The smallest index at or after `index` that is not in the set.
    pub(crate) fn first_absent(&self, index: u128) -> u128 {
        self.run_from(index).map_or(index, |(_, last)| index.max(last + 1))
    }

    /// The last run that begins at or before `index`, whether or not it reaches it.
    fn run_from(&self, index: u128) -> Option<(u128, u128)> {
        self.runs.range(..=index).next_back().map(|(&first, &last)| (first, last))
    }
}

/// How many indices of the run `first..=last` lie in `range`; zero for a run that only touches it.
fn overlap(first: u128, last: u128, range: &RangeInclusive<u128>) -> u128 {
    (last.min(*range.end()) + 1).saturating_sub(first.max(*range.start()))
}

#[cfg(test)]
mod tests;
