//! Events, metrics and log lines that follow from the work on a Node.

use events::{EventType, ObjectRef};
use kube_api::Node;
use tokio::time::Instant;
use tracing::warn;

use super::{REMIND, Reconciler};
use crate::LOGGER;
use crate::allocator::Effects;
use crate::cached_node::CachedNode;

impl<N: CachedNode> Reconciler<N> {
    /// Passes on what the allocator wants told and done.
    pub(crate) fn carry_out(&self, effects: Effects) {
        if let Some(took) = effects.assigned {
            self.metrics.assigned(took);
        }
        if let Some(suspect) = effects.foreign {
            self.detector.suspect(suspect);
        }
        for notice in effects.notices {
            if !self.allocator.lock().notice_due(&notice, REMIND, Instant::now()) {
                continue;
            }
            // The recorder logs it as well.
            let node = ObjectRef::node(&notice.name, &notice.uid);
            self.recorder.event(node, EventType::Warning, notice.reason, notice.message);
        }
        for search in effects.skipped {
            self.metrics.skipped(&search);
        }
        for (range, object) in effects.ended {
            self.metrics.ended(&range, &object);
        }
        if let Some(cluster_cidrs) = &self.cluster_cidrs {
            effects.released.into_iter().for_each(|name| cluster_cidrs.add(name));
        }
        for name in effects.wake {
            self.queue.add(name);
        }
    }

    /// An event on an unassigned Node, at once when the state is entered and then rarely.
    pub(super) fn tell(&self, node: &Node, reason: &'static str, why: &str) {
        if self.allocator.lock().due(&node.uid, reason, REMIND, Instant::now()) {
            warn!(logger = LOGGER, node = %node.name, reason, err = why,
                "Node has no pod CIDR");
            let message = format!("Node {} status is now: {reason}: {why}", node.name);
            let object = ObjectRef::node(&node.name, &node.uid);
            self.recorder.event(object, EventType::Normal, reason, message);
        }
    }
}
