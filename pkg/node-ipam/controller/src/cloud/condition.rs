//! What is written to the status of a Node (`rule:network-is-ready-once`).

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::json;

/// The body of the strategic merge patch that says that the network of a Node is ready; conditions
/// are merged by their type. It is sent only when the condition says something else or is missing,
/// so the time of its last change is now.
pub(super) fn body(uid: &str, message: &str, now: Timestamp) -> Bytes {
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
