//! Problems with the CIDRs of live Nodes (`rule:a-bad-node-stops-only-itself`), and [`Effects`]: the events,
//! metrics and wake-ups that follow from a change of state.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cidr::{Conflict, IpNet, Pool};
use kube_api::Node;
use tokio::time::Instant;

use super::unassigned_nodes::EventTimes;
use crate::ledger::{Owner, Uid};
use crate::second_allocator::Suspect;

/// Findings by Node; a Node without any takes no room.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// How many CIDRs of a Node lie outside all pools.
    external: HashMap<Uid, usize>,
    /// How many texts of a Node cannot be parsed.
    garbage: HashMap<Uid, usize>,
    /// How many CIDRs of a Node overlap a service range.
    in_services: HashMap<Uid, usize>,
    /// How many others each Node overlaps; every pair counts twice. Which ones they are the ledger
    /// knows: of thousands with one CIDR a list for each would be the square of them.
    conflicts: HashMap<Uid, usize>,
    event_times: HashMap<Uid, EventTimes>,
}

impl Findings {
    pub(super) fn set_external(&mut self, uid: &Uid, cidrs: usize) {
        set(&mut self.external, uid, cidrs);
    }

    pub(super) fn set_garbage(&mut self, uid: &Uid, texts: usize) {
        set(&mut self.garbage, uid, texts);
    }

    pub(super) fn add_in_services(&mut self, uid: &Uid) {
        *self.in_services.entry(uid.clone()).or_default() += 1;
    }

    /// A pair that was not counted before. True when it is the first one of `other`.
    pub(super) fn add_conflict(&mut self, one: &Uid, other: &Uid) -> bool {
        *self.conflicts.entry(one.clone()).or_default() += 1;
        let of_other = self.conflicts.entry(other.clone()).or_default();
        *of_other += 1;
        *of_other == 1
    }

    /// Whether a pair of the Node is counted.
    pub(super) fn has_conflict(&self, uid: &str) -> bool {
        self.conflicts.contains_key(uid)
    }

    /// Whether an event of this reason is due for a Node: the first at once, then one per `every`.
    pub(super) fn due(
        &mut self,
        uid: &Uid,
        reason: &'static str,
        every: Duration,
        now: Instant,
    ) -> bool {
        self.event_times.entry(uid.clone()).or_default().due(reason, every, now)
    }

    /// The Node's CIDRs are about to change: what was found about the old ones has ended, also for
    /// those that it overlaps.
    pub(super) fn clear<'a>(&mut self, uid: &str, overlapped: impl Iterator<Item = &'a Uid>) {
        self.external.remove(uid);
        self.garbage.remove(uid);
        self.in_services.remove(uid);
        for other in overlapped {
            let Some(count) = self.conflicts.get_mut(other) else { continue };
            *count -= 1;
            if *count == 0 {
                self.conflicts.remove(other);
                self.forget_told(other, CONFLICT);
            }
        }
        self.conflicts.remove(uid);
        self.forget_told(uid, CONFLICT);
    }

    /// Forgets a deleted Node, after [`Self::clear`].
    pub(super) fn remove(&mut self, uid: &str) {
        self.event_times.remove(uid);
    }

    /// Pairs of Nodes that overlap.
    pub(super) fn conflicts(&self) -> usize {
        self.conflicts.values().sum::<usize>() / 2
    }

    /// CIDRs outside all pools, or not parsable.
    pub(super) fn external(&self) -> usize {
        self.external.values().sum::<usize>() + self.garbage.values().sum::<usize>()
    }

    /// CIDRs that overlap a service range.
    pub(super) fn in_services(&self) -> usize {
        self.in_services.values().sum()
    }

    /// Nodes whose times of events are kept.
    #[cfg(test)]
    pub(super) fn told_nodes(&self) -> usize {
        self.event_times.len()
    }

    fn forget_told(&mut self, uid: &str, reason: &'static str) {
        if let Some(told) = self.event_times.get_mut(uid) {
            told.forget(reason);
        }
    }
}

/// Reason of the notices on two Nodes that overlap.
pub(super) const CONFLICT: &str = "PodCIDRConflict";
const ONE_OF_TWO: &str = "pod CIDRs cannot be changed: delete and re-create one of the two";
const ALL_BUT_ONE: &str = "pod CIDRs cannot be changed: delete and re-create all but one of them";

/// A Warning event on one Node, also logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The Node's name.
    pub(crate) name: Arc<str>,
    /// The Node's UID.
    pub(crate) uid: Uid,
    /// The event's reason.
    pub(crate) reason: &'static str,
    /// One sentence for people.
    pub(crate) message: String,
}

impl Notice {
    fn new(name: &Arc<str>, uid: &Uid, reason: &'static str, message: String) -> Self {
        Self { name: name.clone(), uid: uid.clone(), reason, message }
    }
}

/// The consequences of a change of state; the caller carries them out after unlocking.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Effects {
    /// Events to record.
    pub(crate) notices: Vec<Notice>,
    /// Names of Nodes to work on.
    pub(crate) wake: Vec<Arc<str>>,
    /// A Node of ours was seen assigned before its PATCH was answered, after this time.
    pub(crate) assigned: Option<Duration>,
    /// A Node whose CIDRs no PATCH of ours can have written.
    pub(crate) foreign: Option<Suspect>,
    /// For each block that was allocated, how it was found.
    pub(crate) skipped: Vec<Skipped>,
    /// Names of ClusterCIDRs that are being deleted and have no holders any more.
    pub(crate) released: Vec<Arc<str>>,
    /// Ranges that are no pools any more, with the names of their ClusterCIDRs.
    pub(crate) ended: Vec<(IpNet, Arc<str>)>,
}

/// A search for a free block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The pool.
    pub(crate) pool: IpNet,
    /// The name of the ClusterCIDR that the pool is of, if it is of one.
    pub(crate) object: Option<Arc<str>>,
    /// Used blocks that were stepped over.
    pub(crate) blocks: u128,
}

impl Effects {
    pub(super) fn merge(&mut self, other: Self) {
        self.notices.extend(other.notices);
        self.wake.extend(other.wake);
        self.foreign = other.foreign.or(self.foreign.take());
        self.skipped.extend(other.skipped);
        self.released.extend(other.released);
        self.ended.extend(other.ended);
        self.assigned = self.assigned.or(other.assigned);
    }
}

fn set(counts: &mut HashMap<Uid, usize>, uid: &Uid, count: usize) {
    if count > 0 {
        counts.insert(uid.clone(), count);
    } else if !counts.is_empty() {
        counts.remove(uid);
    }
}

pub(super) fn out_of_range(
    node: &Node,
    external: &[IpNet],
    garbage: &[String],
    pools: &[Pool],
) -> Notice {
    let strange: Vec<String> = external
        .iter()
        .map(cidr::canonical)
        .chain(garbage.iter().map(|text| format!("{text:?} (not a CIDR)")))
        .collect();
    let pools: Vec<String> = pools.iter().map(|pool| cidr::canonical(&pool.cidr())).collect();
    let outside = match &pools[..] {
        [] => String::new(),
        pools => format!(", outside the cluster CIDR {}", pools.join(", ")),
    };
    let message = format!(
        "Node {} has pod CIDR {}{outside}; this program does not change it",
        node.name,
        strange.join(", "),
    );
    Notice::new(&node.name, &node.uid, "PodCIDROutOfRange", message)
}

/// A CIDR of the Node overlaps a service range.
pub(super) fn in_services(node: &Node, mine: &IpNet, range: &IpNet) -> Notice {
    let message = format!(
        "Pod CIDR {} of Node {} overlaps the service range {}: a Pod on this Node may get the \
             address of a Service; delete and re-create the Node",
        cidr::canonical(mine),
        node.name,
        cidr::canonical(range),
    );
    Notice::new(&node.name, &node.uid, "PodCIDROverlapsServices", message)
}

/// The Node overlaps another one, whose name is `other`, and so many more.
pub(super) fn conflict_of_new(
    node: &Node,
    other: &str,
    conflict: &Conflict<Owner>,
    more: usize,
) -> Notice {
    let (rest, cure) = match more {
        0 => (String::new(), ONE_OF_TWO),
        1 => (" and a pod CIDR of another Node".to_owned(), ALL_BUT_ONE),
        more => (format!(" and pod CIDRs of {more} other Nodes"), ALL_BUT_ONE),
    };
    let (mine, theirs) = (cidr::canonical(&conflict.mine), cidr::canonical(&conflict.theirs));
    let message = format!(
        "Pod CIDR {mine} of Node {} overlaps {theirs} of Node {other}{rest}; {cure}",
        node.name
    );
    Notice::new(&node.name, &node.uid, CONFLICT, message)
}

/// The notice of an overlap on the Node that was there before.
pub(super) fn conflict_of_other(
    node: &Node,
    other: &Uid,
    other_name: &Arc<str>,
    conflict: &Conflict<Owner>,
) -> Notice {
    let (mine, theirs) = (cidr::canonical(&conflict.mine), cidr::canonical(&conflict.theirs));
    let message = format!(
        "Pod CIDR {theirs} of Node {other_name} overlaps {mine} of Node {}; {ONE_OF_TWO}",
        node.name
    );
    Notice::new(other_name, other, CONFLICT, message)
}

pub(super) fn nearly_full(name: &Arc<str>, uid: &Uid, pool: &Pool, line: u8) -> Notice {
    let left = match pool.free() {
        0 => "no further Node can get a pod CIDR".to_owned(),
        1 => "one more Node can get a pod CIDR".to_owned(),
        free => format!("{free} more Nodes can get a pod CIDR"),
    };
    let message = format!(
        "Cluster CIDR {} with node mask /{} has {} of {} blocks in use, over {line} %; \
             {left}",
        cidr::canonical(&pool.cidr()),
        pool.mask(),
        pool.used(),
        pool.blocks(),
    );
    Notice::new(name, uid, "PodCIDRPoolNearlyFull", message)
}
