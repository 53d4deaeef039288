//! [`NodeWrites`]: the PATCHes of a Node's pod CIDRs and of its condition, and what became of those
//! without a clear answer.
//!
//! What is written to the status of a Node (`rule:network-is-ready-once`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cidr::IpNet;
use client::{Answer, CallError};
use futures::stream;
use futures::stream::StreamExt as _;
use http::StatusCode;
use jiff::Timestamp;
use kube_api::Node;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use workqueue::Retry;

use crate::api::{NodeApi, Read, ReadError};
use crate::metrics::WriteMetrics;
use crate::outcome::Outcome;
use crate::patch;
use crate::patch::Class;
use crate::second_allocator::Detector;
use crate::suspicion::{Evidence, Suspect, is_stocks};

/// Reads side by side at the stop.
const READS: usize = 64;
/// Between two reads of one Node at the stop, when the first failed.
const READ_AGAIN: Duration = Duration::from_millis(250);

/// Sends PATCHes.
pub(super) struct NodeWrites {
    pub(super) api: NodeApi,
    pub(super) metrics: WriteMetrics,
    pub(super) detector: Arc<Detector>,
    /// Once cancelled, no PATCH leaves any more, but for [`Leaves::AlsoAfterTheStop`].
    pub(super) stop: CancellationToken,
    /// By UID: PATCHes of pod CIDRs of which nothing is known.
    pub(super) open: Mutex<HashMap<Arc<str>, Open>>,
}

/// PATCHes of a Node that the server may yet carry out.
#[derive(Debug)]
pub(super) struct Open {
    node: Node,
    /// What the last of them carries.
    cidrs: Vec<IpNet>,
    outcome: Outcome,
}

/// Until when a PATCH may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// What still waits for the throttle at the stop is never sent.
    UntilTheStop,
    /// It is the second half of what the cloud has carried out already
    /// (`rule:begun-alias-is-finished`).
    AlsoAfterTheStop,
}

/// What became of a write.
#[derive(Debug)]
pub(super) enum Written {
    /// It is on the Node.
    Done,
    /// It never will be, in the server's words.
    Rejected(String, Duration),
    /// Not yet, or the Node is another one by now.
    Not(Retry),
    /// The stop came before it left.
    Stopped,
}

/// What is known of a Node before it is written to.
#[derive(Debug)]
pub(super) enum Before {
    /// No earlier PATCH can be carried out any more.
    Clear,
    /// An earlier one was: these are the Node's pod CIDRs.
    Shows(Vec<String>),
    /// It is not known yet.
    Unknown(Retry),
}

impl NodeWrites {
    /// Settles what became of an earlier PATCH (`rule:unknown-outcome-ends`): by a consistent read
    /// that shows it, or by those that do not and were begun when the server could no longer carry
    /// it out. What was sent may be sent again before that, `planned` being it.
    pub(super) async fn settle(&self, node: &Node, planned: &[IpNet]) -> Before {
        if !self.open.lock().contains_key(&node.uid) {
            return Before::Clear;
        }
        let begun = Instant::now();
        match self.api.read(&node.name, begun).await {
            Ok(Read::Found(found)) if found.uid == node.uid && found.pod_cidrs.is_empty() => {
                self.read_empty(&node.uid, begun, planned)
            }
            Ok(Read::Found(found)) if found.uid == node.uid => {
                self.forget(&node.uid);
                Before::Shows(found.pod_cidrs.iter().map(str::to_owned).collect())
            }
            Ok(Read::Found(_) | Read::Absent) => {
                self.forget(&node.uid);
                Before::Unknown(Retry::expected("the Node is gone"))
            }
            Err(ReadError::Refused { status: StatusCode::TOO_MANY_REQUESTS, pause }) => {
                Before::Unknown(Retry::throttled("the server asked to wait", pause))
            }
            Err(error) => Before::Unknown(Retry::from(error)),
        }
    }

    fn read_empty(&self, uid: &str, begun: Instant, planned: &[IpNet]) -> Before {
        let (mut all, now) = (self.open.lock(), Instant::now());
        let Some(open) = all.get_mut(uid) else { return Before::Clear };
        open.outcome.read_empty(begun, now);
        match open.outcome.until() {
            None => {
                all.remove(uid);
                Before::Clear
            }
            Some(_) if open.cidrs == planned => Before::Clear,
            Some(until) => {
                let retry = Retry::expected("an earlier PATCH may yet be applied");
                Before::Unknown(retry.at_least(until.saturating_duration_since(now)))
            }
        }
    }

    /// Settles by reads what is open, until `deadline`; how many stay unknown. Called when no
    /// worker runs any more (`rule:stop-settles-outcomes`).
    pub(super) async fn settle_all(&self, deadline: Instant) -> usize {
        let open: Vec<_> = self.open.lock().values().map(|open| open.node.clone()).collect();
        let reads = stream::iter(open).for_each_concurrent(READS, async |node| {
            while let Before::Unknown(retry) = self.settle(&node, &[]).await {
                sleep(retry.pause().max(READ_AGAIN)).await;
            }
        });
        // What is not settled then is counted below.
        let _in_time = timeout_at(deadline, reads).await.is_ok();
        self.open.lock().len()
    }

    /// Sets the pod CIDRs of a Node that has waited since then, unless `check` says no when they
    /// are about to leave.
    pub(super) async fn set_cidrs(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        (since, leaves): (Instant, Leaves),
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Written {
        let (body, stop) = (patch::body(&node.uid, cidrs), self.stop.clone());
        let sent = Arc::new(AtomicBool::new(leaves == Leaves::AlsoAfterTheStop));
        let left = Arc::clone(&sent);
        let check = move || {
            let may = (leaves == Leaves::AlsoAfterTheStop || !stop.is_cancelled()) && check();
            left.fetch_or(may, Ordering::Relaxed);
            may
        };
        let send = self.api.patch(&node.name, body, since, check);
        tokio::pin!(send);
        let answer = tokio::select! {
            answer = &mut send => answer,
            // What still waits for the throttle is never sent; what is on its way is awaited.
            () = self.stop.cancelled() => {
                if !sent.load(Ordering::Relaxed) {
                    return Written::Stopped;
                }
                send.await
            }
        };
        let written = self.judge(node, cidrs, answer);
        if matches!(written, Written::Done) {
            self.metrics.assigned(since.elapsed());
        }
        written
    }

    /// Says on a Node that its network is ready.
    pub(super) async fn make_ready(&self, node: &Node, message: &str) -> Written {
        if self.stop.is_cancelled() {
            return Written::Stopped;
        }
        let body: Bytes = body(&node.uid, message, Timestamp::now());
        let answer = self.api.patch_status(&node.name, body, Instant::now()).await;
        // One that is applied late says what is true anyway.
        self.judge(node, &[], answer)
    }

    /// What an answer means to a write of these pod CIDRs, or of none.
    fn judge(&self, node: &Node, cidrs: &[IpNet], answer: Result<Answer, CallError>) -> Written {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.judge_failure(node, cidrs, error),
        };
        let class = patch::classify(answer.status, answer.retry_after, &answer.body, &node.uid);
        self.metrics.patched(class.label());
        match class {
            Class::Done => {
                if !cidrs.is_empty() && is_stocks(&answer.body) {
                    self.detector.suspect(Suspect::new(node, Evidence::SawEmpty));
                }
                self.forget(&node.uid);
                Written::Done
            }
            Class::Missing | Class::Replaced | Class::Taken => {
                Written::Not(Retry::expected("the Node has changed meanwhile"))
            }
            Class::Rejected { message, pause } => Written::Rejected(message, pause),
            Class::Throttled { retry_after } => {
                Written::Not(Retry::throttled("the server asked to wait", retry_after))
            }
            Class::Ambiguous { message } => {
                self.note(node, cidrs, answer.settled_at);
                Written::Not(Retry::expected(format!("the PATCH may have been applied: {message}")))
            }
        }
    }

    fn judge_failure(&self, node: &Node, cidrs: &[IpNet], error: CallError) -> Written {
        match error {
            CallError::Withdrawn if self.stop.is_cancelled() => Written::Stopped,
            CallError::Withdrawn => Written::Not(Retry::expected(error)),
            CallError::Fenced | CallError::NotSent(_) => {
                self.metrics.patched("not_sent");
                Written::Not(error.into())
            }
            CallError::Timeout { .. } | CallError::Transport { .. } => {
                self.metrics.patched("ambiguous");
                self.note(node, cidrs, error.settled_at());
                Written::Not(error.into())
            }
        }
    }

    /// The server may carry a PATCH of pod CIDRs out until then.
    fn note(&self, node: &Node, cidrs: &[IpNet], until: Option<Instant>) {
        if cidrs.is_empty() {
            return;
        }
        let until = until.unwrap_or_else(|| Instant::now() + self.api.applicable_for());
        let mut all = self.open.lock();
        let open = all.entry(Arc::clone(&node.uid)).or_insert_with(|| Open {
            node: node.clone(),
            cidrs: Vec::new(),
            outcome: Outcome::default(),
        });
        cidrs.clone_into(&mut open.cidrs);
        open.outcome.lost(Some(until));
    }

    /// Nothing is open of this Node any more.
    pub(super) fn forget(&self, uid: &str) {
        self.open.lock().remove(uid);
    }
}

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
