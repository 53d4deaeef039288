//! [`Writer`]: sends one PATCH of a Node's pod CIDRs and judges its answer. All allocators write with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cidr::IpNet;
use client::{Answer, CallError};
use kube_api::Node;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workqueue::Retry;

use crate::api::NodeApi;
use crate::metrics::IpamMetrics;
use crate::patch::{self, Class};
use crate::second_allocator::Detector;
use crate::second_allocator::{Evidence, Suspect, was_set_before};

/// Consistent reads that run at the same time when a stop settles unknown outcomes.
pub(crate) const READS_AT_STOP: usize = 64;
/// The pause between two reads of one Node at the stop, when the first failed.
pub(crate) const READ_AGAIN: Duration = Duration::from_millis(250);

/// A Node that has waited for `Retry-After` already returns in this fraction of it.
const SOONER: u32 = 10;

/// Everything that a write needs.
pub(crate) struct Writer<'a> {
    pub(crate) api: &'a NodeApi,
    pub(crate) metrics: &'a IpamMetrics,
    pub(crate) detector: &'a Detector,
    pub(crate) accepted: &'a LastAccepted,
    /// Once cancelled, no PATCH leaves any more, unless the caller says so.
    pub(crate) stop: &'a CancellationToken,
}

/// The result of a PATCH.
#[derive(Debug)]
pub(crate) enum Written {
    /// The Node has what was sent.
    Done,
    /// Refused: the Node is gone, replaced, or has other CIDRs; a read tells which.
    Changed,
    /// Refused, and no earlier retry than after this pause helps; the text is the server's.
    Rejected(String, Duration),
    /// Unwritten: throttled, fenced, or not sent.
    Not(Retry),
    /// Unsent, because `check` said no.
    Withdrawn(Retry),
    /// The server may have applied it, or may yet do so until then, if that is known.
    Unknown(Option<Instant>, Retry),
    /// The stop came before it was sent.
    Stopped,
}

impl Writer<'_> {
    /// Sets the pod CIDRs of a Node that has waited since then, unless `check` says no when the PATCH
    /// is about to leave. At the stop a PATCH that still waits for the throttle is never sent, unless
    /// it `may_leave_after_stop`; one that has left is awaited.
    pub(crate) async fn set_cidrs(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        (since, may_leave_after_stop): (Instant, bool),
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Written {
        let (body, stop) = (patch::body(&node.uid, cidrs), self.stop.clone());
        let has_left = Arc::new(AtomicBool::new(may_leave_after_stop));
        let left = Arc::clone(&has_left);
        let check = move || {
            let may = (may_leave_after_stop || !stop.is_cancelled()) && check();
            left.fetch_or(may, Ordering::Relaxed);
            may
        };
        let send = self.api.patch(&node.name, body, since, check);
        tokio::pin!(send);
        let answer = tokio::select! {
            biased;
            answer = &mut send => answer,
            () = self.stop.cancelled() => {
                if !has_left.load(Ordering::Relaxed) {
                    return Written::Stopped;
                }
                send.await
            }
        };
        let written = self.judge(node, answer, true);
        if matches!(written, Written::Done) {
            self.accepted.note();
        }
        written
    }

    /// Judges and counts the answer to a PATCH of a Node. The answer to one that `sets_cidrs` also says
    /// whether another allocator set the same ones before.
    pub(crate) fn judge(
        &self,
        node: &Node,
        answer: Result<Answer, CallError>,
        sets_cidrs: bool,
    ) -> Written {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.judge_failure(error),
        };
        let class = patch::classify(answer.status, answer.retry_after, &answer.body, &node.uid);
        self.metrics.patched(class.label());
        match class {
            Class::Done => {
                if sets_cidrs && was_set_before(&answer.body) {
                    self.detector.suspect(Suspect::new(node, Evidence::SawEmpty));
                }
                Written::Done
            }
            Class::Missing | Class::Replaced | Class::Taken => Written::Changed,
            Class::Rejected { message, pause } => Written::Rejected(message, pause),
            Class::Throttled { retry_after } => Written::Not(throttled(retry_after)),
            Class::Ambiguous { message } => {
                let retry = Retry::expected(format!(
                    "the PATCH may have been applied, reading the Node: {message}"
                ));
                Written::Unknown(answer.settled_at, retry)
            }
        }
    }

    fn judge_failure(&self, error: CallError) -> Written {
        match error {
            CallError::Withdrawn if self.stop.is_cancelled() => Written::Stopped,
            CallError::Withdrawn => Written::Withdrawn(Retry::expected(error)),
            CallError::Fenced | CallError::NotSent(_) => {
                self.metrics.patched("not_sent");
                Written::Not(error.into())
            }
            CallError::Timeout { .. } | CallError::Transport { .. } => {
                self.metrics.patched("ambiguous");
                Written::Unknown(error.settled_at(), error.into())
            }
        }
    }
}

/// The server refused a PATCH or a read by 429 (`rule:first-starved-first-served`).
pub(crate) fn throttled(retry_after: Option<Duration>) -> Retry {
    Retry::throttled("the server asked to wait", retry_after)
}

/// When the API server last accepted a PATCH of pod CIDRs, of any Node.
#[derive(Debug, Default)]
pub(crate) struct LastAccepted(Mutex<Option<Instant>>);

impl LastAccepted {
    fn note(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    /// Shortens the pause after a 429 for a Node whose first 429 was so long ago: while the server
    /// accepts PATCHes of other Nodes, it must not wait for one whole `Retry-After` after the other
    /// (`rule:first-starved-first-served`).
    pub(crate) fn shorten(&self, retry: Retry, waited: Duration) -> Retry {
        let (now, asked) = (Instant::now(), retry.pause());
        let accepts = self.0.lock().is_some_and(|at| now.saturating_duration_since(at) < asked);
        if accepts && waited >= asked { retry.at_least(asked / SOONER) } else { retry }
    }
}
