//! The used blocks of a pool, kept as maximal runs, so that finding the next free block is one map
//! look-up and a covered pool costs as much as one block. Crate-private, derived from claims.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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
