//! [`NodeEvents`]: events on Nodes, at once and then rarely.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use kube_api::Node;
use resilience::KeyedLogGate;
use tokio::time::Instant;
use tracing::warn;

use super::claims::Conflict;
use crate::LOGGER;

const CONFLICT: &str = "PodCIDRConflict";
/// A state that lasts is reported again this often.
const REMIND: Duration = Duration::from_secs(300);

/// Reports problems of Nodes to their owners.
pub(super) struct NodeEvents {
    recorder: Recorder,
    gate: KeyedLogGate<(Arc<str>, &'static str)>,
}

impl NodeEvents {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self { recorder, gate: KeyedLogGate::new(REMIND) }
    }

    /// An event on a Node, and a line in the log, once in a while for each reason.
    pub(super) fn report(&self, node: &Node, reason: &'static str, why: &str) {
        if self.gate.pass((Arc::clone(&node.uid), reason), Instant::now()).is_none() {
            return;
        }
        warn!(logger = LOGGER, node = %node.name, reason, err = why,
            "Pod CIDR of the Node and range of its VM differ, or one is missing");
        let message = format!("Node {} status is now: {reason}: {why}", node.name);
        let object = ObjectRef::node(&node.name, &node.uid);
        self.recorder.event(object, EventType::Normal, reason, message);
    }

    /// A warning on both Nodes of a pair that overlaps.
    pub(super) fn report_conflict(&self, node: &Node, conflict: &Conflict) {
        let (mine, theirs) = (cidr::canonical(&conflict.mine), cidr::canonical(&conflict.theirs));
        let (other, uid) = &conflict.other;
        self.overlap((&node.name, &node.uid, &mine), (other, &theirs));
        self.overlap((other, uid, &theirs), (&node.name, &mine));
    }

    fn overlap(&self, (name, uid, mine): (&str, &Arc<str>, &str), (other, theirs): (&str, &str)) {
        if self.gate.pass((Arc::clone(uid), CONFLICT), Instant::now()).is_none() {
            return;
        }
        let message = format!(
            "Pod CIDR {mine} of Node {name} overlaps {theirs} of Node {other}; pod CIDRs cannot be \
             changed: delete and re-create one of the two"
        );
        warn!(logger = LOGGER, node = %name, reason = CONFLICT, err = message, "Nodes overlap");
        self.recorder.event(ObjectRef::node(name, uid), EventType::Warning, CONFLICT, message);
    }
}
