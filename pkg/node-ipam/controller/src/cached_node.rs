//! [`CachedNode`]: a Node as the cache of either allocator has it.

use std::sync::Arc;

use kube_api::{Cached, LabelledNode, Node, NodeMarks};

/// What the allocator and the reconciler read of a cached Node.
pub(crate) trait CachedNode: Cached + AsRef<Node> {
    /// What it is selected by, where that matters and while it has no CIDRs.
    fn marks(&self) -> Option<&Arc<NodeMarks>>;
}

/// The RangeAllocator gives every Node of the same pools.
impl CachedNode for Node {
    fn marks(&self) -> Option<&Arc<NodeMarks>> {
        None
    }
}

impl CachedNode for LabelledNode {
    fn marks(&self) -> Option<&Arc<NodeMarks>> {
        self.marks.as_ref()
    }
}
