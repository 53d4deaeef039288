//! The condition NetworkUnavailable of a Node, which is False when the Node is done.

use bytes::Bytes;
use jiff::Timestamp;
use kube_api::CloudNode;
use serde_json::json;
use tokio::time::Instant;
use workqueue::{Next, Retry};

use super::cloud_nodes::CloudNodes;
use super::provider::Cloud;
use crate::node_events::NOT_READY;
use crate::reconciler::Ended;
use crate::writer::Written;

impl<C: Cloud> CloudNodes<C> {
    /// Says on a Node that its network is ready, unless it says so already: every write goes to all
    /// watchers of Nodes. A PATCH that is applied late says the truth, too, so an unknown outcome
    /// needs no reads.
    pub(super) async fn make_ready(&self, node: &CloudNode, message: &str) -> Result<(), Ended> {
        if node.network_is_ready {
            return Ok(());
        }
        if self.core.stop.is_cancelled() {
            return Err(Ok(Next::Done));
        }
        let node = &node.node;
        let body = body(&node.uid, message, Timestamp::now());
        let answer = self.core.api.patch_status(&node.name, body, Instant::now()).await;
        match self.core.writer().judge(node, answer, false) {
            Written::Done => Ok(()),
            Written::Stopped => Err(Ok(Next::Done)),
            Written::Changed => Err(Err(Retry::expected("the Node has changed since it was read"))),
            Written::Not(retry) | Written::Withdrawn(retry) | Written::Unknown(_, retry) => {
                Err(Err(retry))
            }
            Written::Rejected(why, pause) => {
                self.core.events.report(node, NOT_READY, &why);
                Err(Err(Retry::expected(why).at_least(pause)))
            }
        }
    }
}

/// The body of the strategic merge patch that says that the network of a Node is ready; conditions
/// are merged by their type. It is sent only when the condition says something else or is missing,
/// so the time of its last change is now.
fn body(uid: &str, message: &str, now: Timestamp) -> Bytes {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({
        "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
        "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    let body = json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}});
    Bytes::from(body.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_condition_has_stocks_form() {
        let now = "2026-11-22T10:11:12.345Z".parse().unwrap();
        let body: Value = serde_json::from_slice(&body("u", "the message", now)).unwrap();
        let expected = json!({
            "metadata": {"uid": "u"},
            "status": {"conditions": [{
                "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
                "message": "the message", "lastHeartbeatTime": "2026-11-22T10:11:12Z",
                "lastTransitionTime": "2026-11-22T10:11:12Z",
            }]},
        });
        assert_eq!(body, expected);
    }
}
