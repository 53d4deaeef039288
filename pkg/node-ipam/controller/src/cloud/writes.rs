//! [`NodeWrites`]: the PATCHes of a Node's pod CIDRs and of its condition, and what became of those
//! without a clear answer.
//!
//! What is written to the status of a Node.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use cidr::IpNet;
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
use crate::patch::Outcome;
use crate::second_allocator::Detector;
use crate::writer::{READ_AGAIN, READS_AT_STOP, Writer, Written};

/// Sends PATCHes.
pub(super) struct NodeWrites {
    pub(super) api: NodeApi,
    pub(super) metrics: WriteMetrics,
    pub(super) detector: Arc<Detector>,
    /// Once cancelled, no PATCH leaves any more, but for [`Leaves::AlsoAfterTheStop`].
    pub(super) stop: CancellationToken,
    /// By UID: PATCHes of pod CIDRs with an unknown outcome.
    pub(super) open: Mutex<HashMap<Arc<str>, Open>>,
}

/// PATCHes of a Node that the server may yet carry out.
#[derive(Debug)]
pub(super) struct Open {
    node: Node,
    /// The pod CIDRs of the last PATCH.
    cidrs: Vec<IpNet>,
    outcome: Outcome,
}

/// Until when a PATCH may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// A PATCH that still waits for the throttle at the stop is never sent.
    UntilTheStop,
    /// The PATCH is the second half of what the cloud has carried out already
    /// (`rule:begun-alias-is-finished`).
    AlsoAfterTheStop,
}

/// The state of earlier PATCHes before a Node is written to.
#[derive(Debug)]
pub(super) enum Before {
    /// Earlier PATCHes can no longer be applied.
    Clear,
    /// An earlier one was: these are the Node's pod CIDRs.
    Shows(Vec<String>),
    /// Unknown yet whether an earlier PATCH was applied.
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
        let reads = stream::iter(open).for_each_concurrent(READS_AT_STOP, async |node| {
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
        let after_stop = leaves == Leaves::AlsoAfterTheStop;
        let written = self.writer().set_cidrs(node, cidrs, (since, after_stop), check).await;
        match &written {
            Written::Done => {
                self.forget(&node.uid);
                self.metrics.assigned(since.elapsed());
            }
            Written::Unknown(until, _) => self.note(node, cidrs, *until),
            _ => {}
        }
        written
    }

    /// Says on a Node that its network is ready. A PATCH that is applied late says the truth, too, so
    /// an unknown outcome needs no reads.
    pub(super) async fn make_ready(&self, node: &Node, message: &str) -> Written {
        if self.stop.is_cancelled() {
            return Written::Stopped;
        }
        let body: Bytes = body(&node.uid, message, Timestamp::now());
        let answer = self.api.patch_status(&node.name, body, Instant::now()).await;
        let written = self.writer().judge(node, answer, false);
        if matches!(written, Written::Done) {
            self.forget(&node.uid);
        }
        written
    }

    fn writer(&self) -> Writer<'_> {
        let Self { api, metrics, detector, stop, .. } = self;
        Writer { api, metrics, detector, stop }
    }

    /// The server may carry a PATCH of pod CIDRs out until then.
    fn note(&self, node: &Node, cidrs: &[IpNet], until: Option<Instant>) {
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
