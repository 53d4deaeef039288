//! [`Owner`]: who holds a claim.

use std::sync::Arc;

use cidr::IpNet;

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
