//! [`NodeWrites`]: the PATCHes of a Node's pod CIDRs and of its condition, and what became of those
//! without a clear answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cidr::IpNet;
use client::{Answer, CallError};
use http::StatusCode;
use jiff::Timestamp;
use model::Node;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workqueue::Retry;

use super::condition;
use super::metrics::CloudMetrics;
use crate::api::{NodeApi, Read, ReadError};
use crate::patch::{self, Class};

/// Sends PATCHes.
pub(super) struct NodeWrites {
    pub(super) api: NodeApi,
    pub(super) metrics: CloudMetrics,
    /// Once cancelled, no PATCH leaves any more.
    pub(super) stop: CancellationToken,
    /// By UID: until when the server may carry out a PATCH of which nothing is known.
    pub(super) open: Mutex<HashMap<Arc<str>, Instant>>,
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
    /// Settles what became of an earlier PATCH (`rule:unknown-outcome-ends`): by a consistent read that
    /// shows it, or by one that does not and was begun when the server could no longer carry it
    /// out.
    pub(super) async fn settle(&self, node: &Node) -> Before {
        let Some(until) = self.open.lock().get(&node.uid).copied() else { return Before::Clear };
        let begun = Instant::now();
        match self.api.read(&node.name, begun).await {
            Ok(Read::Found(found)) if found.uid == node.uid => {
                if !found.pod_cidrs.is_empty() {
                    self.forget(&node.uid);
                    return Before::Shows(found.pod_cidrs.iter().map(str::to_owned).collect());
                }
                if begun < until {
                    let retry = Retry::expected("an earlier PATCH may yet be applied");
                    return Before::Unknown(retry.at_least(until - begun));
                }
                self.forget(&node.uid);
                Before::Clear
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

    /// Sets the pod CIDRs of a Node that has waited since then, unless `check` says no when they
    /// are about to leave.
    pub(super) async fn set_cidrs(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        since: Instant,
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Written {
        let (body, stop) = (patch::body(&node.uid, cidrs), self.stop.clone());
        let sent = Arc::new(AtomicBool::new(false));
        let leaves = Arc::clone(&sent);
        let check = move || {
            let may = !stop.is_cancelled() && check();
            leaves.fetch_or(may, Ordering::Relaxed);
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
        let written = self.judge(node, answer);
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
        let body: Bytes = condition::body(&node.uid, message, Timestamp::now());
        let answer = self.api.patch_status(&node.name, body, Instant::now()).await;
        self.judge(node, answer)
    }

    fn judge(&self, node: &Node, answer: Result<Answer, CallError>) -> Written {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.judge_failure(node, error),
        };
        let class = patch::classify(answer.status, answer.retry_after, &answer.body, &node.uid);
        self.metrics.patched(class.label());
        match class {
            Class::Done => {
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
                self.note(node, answer.settled_at);
                Written::Not(Retry::expected(format!("the PATCH may have been applied: {message}")))
            }
        }
    }

    fn judge_failure(&self, node: &Node, error: CallError) -> Written {
        match error {
            CallError::Withdrawn if self.stop.is_cancelled() => Written::Stopped,
            CallError::Withdrawn => Written::Not(Retry::expected(error)),
            CallError::Fenced | CallError::NotSent(_) => {
                self.metrics.patched("not_sent");
                Written::Not(error.into())
            }
            CallError::Timeout { .. } | CallError::Transport { .. } => {
                self.metrics.patched("ambiguous");
                self.note(node, error.settled_at());
                Written::Not(error.into())
            }
        }
    }

    /// The server may carry a PATCH out until then.
    fn note(&self, node: &Node, until: Option<Instant>) {
        let until = until.unwrap_or_else(|| Instant::now() + self.api.applicable_for());
        let mut open = self.open.lock();
        let known = open.entry(Arc::clone(&node.uid)).or_insert(until);
        *known = until.max(*known);
    }

    /// Nothing is open of this Node any more.
    pub(super) fn forget(&self, uid: &str) {
        self.open.lock().remove(uid);
    }

    /// How many PATCHes the server may yet carry out.
    pub(super) fn unknown(&self) -> usize {
        let now = Instant::now();
        self.open.lock().values().filter(|until| **until > now).count()
    }
}
