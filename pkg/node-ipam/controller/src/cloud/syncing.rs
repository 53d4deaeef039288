//! What IPAMFromCluster and IPAMFromCloud do for a Node, by what the Node and its VM have. No I/O.

use std::time::Duration;

use cidr::IpNet;
use workqueue::{Backoff, Jitter};

/// Which of the two is right where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Nodes get blocks of the pool, and the cloud is told.
    FromCluster,
    /// Nodes get what the cloud has given their VMs.
    FromCloud,
}

impl Direction {
    /// The value of `--cidr-allocator-type`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FromCluster => "IPAMFromCluster",
            Self::FromCloud => "IPAMFromCloud",
        }
    }
}

/// What is to be done for a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A block is allocated, routed by the cloud, and written to the Node.
    Allocate,
    /// This alias becomes the Node's pod CIDR.
    TakeOver(IpNet),
    /// This pod CIDR is routed by the cloud.
    Route(IpNet),
    /// They are equal: nothing but the condition may be wrong.
    Settled,
    /// This mode does not go that way: told, an error, tried again.
    WrongMode(&'static str),
    /// They differ: told, and no error, for the operator has to mend it
    /// (`rule:cloud-and-node-disagree`).
    Mismatch,
}

/// Decides; `has` is the pod CIDR of the Node as it is written there, `alias` the first range of
/// its VM, `ours` what this process has reserved for the Node.
pub(super) fn decide(
    direction: Direction,
    has: Option<&str>,
    alias: Option<IpNet>,
    ours: Option<IpNet>,
) -> Step {
    match (has, alias, direction) {
        (None, None, Direction::FromCluster) => Step::Allocate,
        // It was routed by us, and not yet written to the Node (`rule:reserved-block-is-kept`).
        (None, Some(alias), Direction::FromCluster) if Some(alias) == ours => Step::Allocate,
        (None, Some(_), Direction::FromCluster) => {
            Step::WrongMode("its VM has an alias range, and the Node no pod CIDR")
        }
        (None, None, Direction::FromCloud) => Step::WrongMode("its VM has no alias range"),
        (None, Some(alias), Direction::FromCloud) => Step::TakeOver(alias),
        (Some(has), None, Direction::FromCluster) => match cidr::parse(has) {
            Ok(has) => Step::Route(has),
            Err(_) => Step::Mismatch,
        },
        (Some(_), None, Direction::FromCloud) => {
            Step::WrongMode("the Node has a pod CIDR, and its VM no alias range")
        }
        (Some(has), Some(alias), _) if cidr::parse(has).is_ok_and(|has| has == alias) => {
            Step::Settled
        }
        (Some(_), Some(_), _) => Step::Mismatch,
    }
}

/// When a Node is looked at again (`rule:nodes-are-resynced`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timer {
    /// After a pass that worked.
    pub(super) resync: Duration,
    /// After the first of those in a row that did not.
    pub(super) first: Duration,
    /// The longest wait after one of them.
    pub(super) max: Duration,
}

/// Upstream's.
pub(super) const TIMER: Timer = Timer {
    resync: Duration::from_secs(30),
    first: Duration::from_millis(250),
    max: Duration::from_secs(10),
};

impl Timer {
    /// The waits after failures.
    pub(super) const fn backoff(self) -> Backoff {
        Backoff::doubling(self.first, self.max, Jitter::None)
    }
}

#[cfg(test)]
mod tests;
