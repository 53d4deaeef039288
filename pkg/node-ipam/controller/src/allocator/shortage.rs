//! [`Shortage`]: why a Node gets no block.

use std::sync::Arc;

use cidr::{Exhausted, IpNet};
use thiserror::Error;

/// How many ClusterCIDRs a message names.
const NAMED: usize = 5;

/// The reason why a Node gets no block. The texts reach users through Events.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Shortage {
    /// A pool of the flags is full.
    #[error(transparent)]
    Pool(#[from] Exhausted),
    /// Another Node has the range that the cloud names for the Node (`rule:block-has-one-holder`).
    #[error(
        "cannot assign {cidr} to the Node: Node {by} still has it; if the VM of {by} is gone, delete Node {by}"
    )]
    InUse {
        /// The CIDR.
        cidr: IpNet,
        /// The name of the Node that has it.
        by: Arc<str>,
    },
    /// No ClusterCIDR selects the Node.
    #[error(
        "cannot allocate a node CIDR: no ClusterCIDR selects the Node; create one whose nodeSelector \
         matches its labels, or one without nodeSelector"
    )]
    NotSelected,
    /// The best ClusterCIDR with a free block has no finalizer yet (`rule:finalizer-before-use`).
    #[error(
        "cannot allocate a node CIDR: ClusterCIDR {0}, which serves the Node, has no finalizer yet; \
         check that this program may patch ClusterCIDRs"
    )]
    Unheld(String),
    /// Every pool for this Node is full or draining (`rule:draining-pool-gives-nothing`).
    #[error(
        "cannot allocate a node CIDR: every pool for the Node is full or draining; draining: {0}; \
         end a drain (annotation infra-controller-manager/drain of a ClusterCIDR, \
         --drain-cluster-cidrs), delete Nodes, or add a pool"
    )]
    Draining(String),
    /// Every ClusterCIDR for this Node is full.
    #[error(
        "cannot allocate a node CIDR: in every ClusterCIDR that selects the Node at least one range is \
         full: {0}; delete Nodes, or create another ClusterCIDR"
    )]
    AllFull(String),
}

impl Shortage {
    /// Why ClusterCIDRs of these names and states cannot serve a Node that they may be for.
    pub(super) fn of(serving: &[&str], unheld: &[&str], draining: &[&str]) -> Self {
        match (serving, unheld, draining) {
            ([], [], []) => Self::NotSelected,
            ([], [_, ..], _) => Self::Unheld(in_words(unheld)),
            (_, _, [_, ..]) => Self::Draining(in_words(draining)),
            (serving, ..) => Self::AllFull(in_words(serving)),
        }
    }
}

fn in_words(names: &[&str]) -> String {
    let mut words: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = format!("{} more", names.len().saturating_sub(NAMED));
    if names.len() > NAMED {
        words.push(&more);
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_an_operator_can_change() {
        let none: [&str; 0] = [];
        assert_eq!(Shortage::of(&none, &none, &none), Shortage::NotSelected);
        assert_eq!(Shortage::of(&none, &["u"], &["d"]), Shortage::Unheld("u".to_owned()));
        assert_eq!(Shortage::of(&["s"], &["u"], &["d"]), Shortage::Draining("d".to_owned()));
        let six = ["a", "b", "c", "d", "e", "f"];
        let full = Shortage::AllFull("a, b, c, d, e, 1 more".to_owned());
        assert_eq!(Shortage::of(&six, &["u"], &none), full);
        assert_eq!(Shortage::of(&six[..1], &none, &none), Shortage::AllFull("a".to_owned()));
    }
}
