//! [`Claim`]: what a replica says in its lease, and whom a cluster belongs to by that.

use crate::write_gate::{hash, mix};

/// The replicas that one replica shares clusters out among, sorted, itself included.
pub type View = Vec<Box<str>>;

/// Content of a replica's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The replica that holds the lease.
    pub replica: Box<str>,
    /// Anything that differs after each renewal.
    pub renewal: u64,
    /// By which it probes; empty when it has released its lease, and claims nothing.
    pub view: View,
    /// The replica knows all replicas that may be probing; false while it is new.
    pub settled: bool,
}

/// The replica of `view` to which the cluster with this hash belongs.
pub(crate) fn owner(cluster: u64, view: &[Box<str>]) -> Option<&str> {
    let weight = |replica: &str| mix(cluster ^ hash(replica));
    view.iter().map(|replica| &**replica).max_by_key(|replica| (weight(replica), *replica))
}
