//! [`NodeList`]: what one list of Nodes says.

use super::node::{Node, NodeTotals};
use super::roster::Roster;
use crate::paging::{Abort, Collect};

/// What one list of Nodes says: what they add up to, and which machine each is on.
#[derive(Debug)]
pub(crate) struct NodeList {
    pub(crate) totals: NodeTotals,
    pub(crate) roster: Roster,
}

impl Collect for NodeList {
    type Item = Node;

    fn add(&mut self, node: Node) -> Result<(), Abort> {
        self.totals.count(&node);
        self.roster.add(node);
        Ok(())
    }
}
