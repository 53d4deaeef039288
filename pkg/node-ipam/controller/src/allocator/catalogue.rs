//! [`Catalogue`]: the ClusterCIDRs that pools come from, and which of them may serve a Node. The
//! RangeAllocator has none.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use kube_api::NodeMarks;
use tokio::time::Instant;

use crate::cluster_cidr::ClusterCidrSpec;
use crate::cluster_cidr::plan::Rank;
use crate::cluster_cidr::selector::Selector;

/// Number of an entry, never given twice.
pub(super) type EntryId = u32;

/// The entries that may serve a Node, the one to be asked first in front.
pub(super) type Candidates = Box<[EntryId]>;

/// Whether a ClusterCIDR gives out blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not yet: nothing holds it against deletion (`rule:finalizer-before-use`).
    Unheld,
    /// It does.
    Serving,
    /// No longer: its deletion was asked for.
    Terminating,
}

/// One ClusterCIDR.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: EntryId,
    pub(super) uid: Uid,
    pub(super) name: Arc<str>,
    pub(super) standing: Standing,
    pub(super) spec: ClusterCidrSpec,
    pub(super) selector: Option<Selector>,
    pub(super) rank: Rank,
    /// Places of its pools in the ledger.
    pub(super) pools: Range<usize>,
    /// When it was first seen.
    pub(super) seen: Instant,
}

/// All ClusterCIDRs that are in order.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// By rank.
    entries: Vec<Entry>,
    next_id: EntryId,
    /// How long a Node without labels of its cloud is waited for.
    pub(super) label_wait: Duration,
}

/// Which entries a Node may be served by.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) candidates: Candidates,
    /// Whether one of them selects the Node by its marks.
    pub(super) selected: bool,
}

impl Entry {
    /// How many requirements its selector has that this Node fulfils; 0 without a selector, `None`
    /// when it is not for this Node.
    pub(super) fn fits(&self, name: &str, marks: &NodeMarks) -> Option<usize> {
        self.selector.as_ref().map_or(Some(0), |selector| selector.fits(name, marks))
    }
}

impl Catalogue {
    pub(super) fn new(label_wait: Duration) -> Self {
        Self { entries: Vec::new(), next_id: 0, label_wait }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn by_id(&self, id: EntryId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| *entry.uid == *uid)
    }

    pub(super) fn by_uid_mut(&mut self, uid: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| *entry.uid == *uid)
    }

    /// The name of the ClusterCIDR that this pool is of.
    pub(super) fn name_of_pool(&self, place: usize) -> Option<&Arc<str>> {
        self.entries.iter().find(|entry| entry.pools.contains(&place)).map(|entry| &entry.name)
    }

    /// The number of the next entry.
    pub(super) fn take_id(&mut self) -> EntryId {
        self.next_id += 1;
        self.next_id
    }

    /// Adds an entry whose pools are the last of the ledger.
    pub(super) fn insert(&mut self, entry: Entry) {
        let place = self.entries.partition_point(|other| other.rank < entry.rank);
        self.entries.insert(place, entry);
    }

    /// Takes an entry out. Its pools are to leave the ledger: those behind them move up.
    pub(super) fn remove(&mut self, uid: &str) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| *entry.uid == *uid)?;
        let removed = self.entries.remove(place);
        for entry in &mut self.entries {
            if entry.pools.start >= removed.pools.end {
                entry.pools.start -= removed.pools.len();
                entry.pools.end -= removed.pools.len();
            }
        }
        Some(removed)
    }

    /// Those that may serve a Node (`rule:closest-cluster-cidr-first`).
    pub(super) fn choice(&self, name: &str, marks: &NodeMarks) -> Choice {
        let mut fitting: Vec<(bool, Reverse<usize>, EntryId)> = Vec::new();
        for entry in self.entries.iter().filter(|it| it.standing != Standing::Terminating) {
            if let Some(fulfilled) = entry.fits(name, marks) {
                fitting.push((entry.selector.is_none(), Reverse(fulfilled), entry.id));
            }
        }
        // Stable: among equals the order of the ranks stays.
        fitting.sort_by_key(|&(for_everybody, fulfilled, _)| (for_everybody, fulfilled));
        let selected = fitting.first().is_some_and(|&(for_everybody, ..)| !for_everybody);
        Choice { candidates: fitting.into_iter().map(|(.., id)| id).collect(), selected }
    }
}

/// The Nodes whose blocks rest.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// How long a rest is; zero for none.
    delay: Duration,
    /// In the order in which they went.
    gone: VecDeque<(Instant, Uid)>,
}

impl Rests {
    /// Rests of this length.
    pub(super) fn of(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Whether blocks rest at all.
    pub(super) fn are_wanted(&self) -> bool {
        !self.delay.is_zero()
    }

    /// How many Nodes there are.
    pub(super) fn len(&self) -> usize {
        self.gone.len()
    }

    /// The blocks of this Node rest from now on.
    pub(super) fn begin(&mut self, uid: Uid, now: Instant) {
        self.gone.push_back((now + self.delay, uid));
    }

    /// A Node whose blocks have rested for long enough, the first one that went.
    pub(super) fn end(&mut self, now: Instant) -> Option<Uid> {
        let (until, _) = self.gone.front()?;
        if *until > now {
            return None;
        }
        self.gone.pop_front().map(|(_, uid)| uid)
    }

    /// When to look for such a Node next; `None` for never.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        // What goes from now on rests for longer than that.
        let first = self.gone.front().map_or(now + self.delay, |(until, _)| *until);
        self.are_wanted().then_some(first)
    }
}

/// A Node's UID.
pub(crate) type Uid = Arc<str>;

/// Who holds a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    /// A service range; never released.
    Service(IpNet),
    /// A range that is given to nobody; never released.
    Excluded(IpNet),
    /// A Node that is gone; released after a while (`rule:freed-blocks-rest`).
    Resting(Uid),
    /// A Node, by UID and never by name: a name may be used again.
    Node(Uid),
}

#[cfg(test)]
mod tests;
