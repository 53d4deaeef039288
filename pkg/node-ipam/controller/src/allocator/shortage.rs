//! [`Shortage`]: why there is no block for a Node. The texts reach users through Events.

use cidr::Exhausted;
use thiserror::Error;

/// Why there is no block for a Node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Shortage {
    /// A pool of the flags is full.
    #[error(transparent)]
    Pool(#[from] Exhausted),
    /// No ClusterCIDR is for this Node.
    #[error(
        "cannot allocate a node CIDR: no ClusterCIDR selects the Node; create one whose nodeSelector \
         matches its labels, or one without nodeSelector"
    )]
    NotSelected,
    /// The closest one with a free block gives out nothing yet (`rule:finalizer-before-use`).
    #[error(
        "cannot allocate a node CIDR: the ClusterCIDR that is to serve the Node has no finalizer yet: \
         {0}; see whether this program may patch ClusterCIDRs"
    )]
    Unheld(String),
    /// None of those for this Node can serve it.
    #[error(
        "cannot allocate a node CIDR: no ClusterCIDR that selects the Node has a free block of each \
         of its ranges: {0}; delete nodes, or create another ClusterCIDR"
    )]
    AllFull(String),
}
