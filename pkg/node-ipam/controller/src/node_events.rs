//! [`NodeEvents`]: what the owner of a Node reads in `kubectl describe`: an event at once when a state is
//! entered, and then rarely.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use kube_api::Node;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use crate::LOGGER;
use crate::allocator::{Allocator, Notice, Shortage};

/// A state that lasts is reported again this often.
pub(crate) const REMIND: Duration = Duration::from_secs(300);

/// Event reason: there is no free block, or the cloud has nothing for a Node.
pub(crate) const NOT_AVAILABLE: &str = "CIDRNotAvailable";
/// The API server or the cloud refused the write, or another Node has what is to be written.
pub(crate) const FAILED: &str = "CIDRAssignmentFailed";
/// The Node has its pod CIDR, and the condition of its network was refused.
pub(crate) const NOT_READY: &str = "NetworkConditionNotWritten";
/// Node and VM differ, which only the operator can resolve.
pub(crate) const MISMATCH: &str = "CloudCIDRAllocatorMismatch";
/// Node and VM are as this allocator must not leave them.
pub(crate) const WRONG_MODE: &str = "CloudCIDRAllocatorInvalidMode";
/// The pod CIDR of a Node that is gone was no CIDR.
pub(crate) const GARBAGE: &str = "CloudCIDRAllocatorInvalidPodCIDR";

/// Reports problems of Nodes to their owners.
pub(crate) struct NodeEvents {
    recorder: Recorder,
    /// Knows when an event was last recorded.
    allocator: Arc<Mutex<Allocator>>,
}

impl NodeEvents {
    pub(crate) fn new(recorder: Recorder, allocator: Arc<Mutex<Allocator>>) -> Self {
        Self { recorder, allocator }
    }

    /// Reports the state of a live Node.
    pub(crate) fn report(&self, node: &Node, reason: &'static str, why: &str) {
        if self.allocator.lock().due(&node.uid, reason, REMIND, Instant::now()) {
            self.record(node, reason, why);
        }
    }

    /// Reports why a Node gets no CIDRs.
    pub(crate) fn report_shortage(&self, node: &Node, shortage: &Shortage) {
        let is_in_use = matches!(shortage, Shortage::InUse { .. });
        self.report(node, if is_in_use { FAILED } else { NOT_AVAILABLE }, &shortage.to_string());
    }

    /// Warns the owner of a Node.
    pub(crate) fn warn(&self, notice: Notice) {
        if self.allocator.lock().notice_due(&notice, REMIND, Instant::now()) {
            let node = ObjectRef::node(&notice.name, &notice.uid);
            // The recorder logs it as well.
            self.recorder.event(node, EventType::Warning, notice.reason, notice.message);
        }
    }

    /// Records the state of a Node, also one that is gone, whenever it was last recorded.
    pub(crate) fn record(&self, node: &Node, reason: &'static str, why: &str) {
        let state = if node.pod_cidrs.is_empty() {
            "Node has no pod CIDR"
        } else {
            "Pod CIDR of the Node needs attention"
        };
        // The span of the reconcile has the name of the Node.
        warn!(logger = LOGGER, reason, err = why, "{state}");
        let message = format!("Node {} status is now: {reason}: {why}", node.name);
        let object = ObjectRef::node(&node.name, &node.uid);
        self.recorder.event(object, EventType::Normal, reason, message);
    }
}
