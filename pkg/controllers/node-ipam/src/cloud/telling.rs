//! [`Teller`]: events on Nodes, at once and then rarely (`rule:one-event-per-state-and-period`).

use std::sync::Arc;
use std::time::Duration;

use backoff::KeyedLogGate;
use events::{EventType, ObjectRef, Recorder};
use model::Node;
use tokio::time::Instant;
use tracing::warn;

use crate::LOGGER;

/// A state that lasts is told again this often.
const REMIND: Duration = Duration::from_secs(300);

/// Tells of Nodes.
pub(super) struct Teller {
    recorder: Recorder,
    gate: KeyedLogGate<(Arc<str>, &'static str)>,
}

impl Teller {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self { recorder, gate: KeyedLogGate::new(REMIND) }
    }

    /// An event on a Node, and a line in the log, once in a while for each reason.
    pub(super) fn tell(&self, node: &Node, reason: &'static str, why: &str) {
        if self.gate.pass((Arc::clone(&node.uid), reason), Instant::now()).is_none() {
            return;
        }
        warn!(logger = LOGGER, node = %node.name, reason, err = why,
            "Node and cloud are not at one");
        let message = format!("Node {} status is now: {reason}: {why}", node.name);
        let object = ObjectRef::node(&node.name, &node.uid);
        self.recorder.event(object, EventType::Normal, reason, message);
    }
}
