//! Consistent reads: what became of a PATCH whose answer left that open, during work and at the
//! stop (`rule:read-before-resend`, `rule:stop-settles-outcomes`).

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use http::StatusCode;
use tokio::time::{Instant, sleep_until, timeout_at};
use workqueue::{Next, Retry};

use super::CachedNode;
use super::read_result::{ReadBack, throttled};
use super::{Reconciler, Work};
use crate::allocator::OpenOutcome;
use crate::api::{Read, ReadError};

/// Reads side by side at the stop.
const READS: usize = 64;
/// Between two reads of one Node at the stop, when the first failed.
const READ_AGAIN: Duration = Duration::from_millis(250);

impl<N: CachedNode> Reconciler<N> {
    /// A consistent read after an answer that leaves the truth open.
    pub(super) async fn read_back(&self, work: &Work<'_>) -> ReadBack {
        let begun = Instant::now();
        let read = tokio::select! {
            read = self.api.read(&work.node.name, work.since) => read,
            () = self.stop.cancelled() => return ReadBack::Unread(Ok(Next::Done)),
        };
        match read {
            Ok(read) => self.take_in(&work.node.uid, read, begun),
            Err(ReadError::Refused { status: StatusCode::TOO_MANY_REQUESTS, pause }) => {
                ReadBack::Unread(Err(throttled(pause)))
            }
            Err(error) => {
                let at_least = match &error {
                    ReadError::Refused { pause: Some(pause), .. } => *pause,
                    _ => Duration::ZERO,
                };
                ReadBack::Unread(Err(Retry::from(error).at_least(at_least)))
            }
        }
    }

    /// Settles by reads what became of the PATCHes of unknown outcome, until `deadline`. Called
    /// when no worker runs any more; returns how many stay unknown.
    pub(crate) async fn settle_outcomes(&self, deadline: Instant) -> usize {
        let open = self.allocator.lock().open_outcomes();
        let reads = stream::iter(open).for_each_concurrent(READS, |open| self.settle(open));
        // What is not settled then is counted below.
        let _in_time = timeout_at(deadline, reads).await.is_ok();
        self.allocator.lock().open_outcomes().len()
    }

    /// One read at once, which may show that the PATCH was applied, and those that settle it when
    /// the server can no longer apply it.
    async fn settle(&self, open: OpenOutcome) {
        loop {
            let begun = Instant::now();
            let next = match self.api.read(&open.name, begun).await {
                Ok(read) => match self.take_in(&open.uid, read, begun) {
                    ReadBack::Empty(_) => match self.allocator.lock().open_until(&open.uid) {
                        Some(until) => until,
                        None => return,
                    },
                    _ => return,
                },
                Err(_) => Instant::now() + READ_AGAIN,
            };
            sleep_until(next).await;
        }
    }

    fn take_in(&self, uid: &std::sync::Arc<str>, read: Read, begun: Instant) -> ReadBack {
        match read {
            Read::Found(found) if found.uid == *uid => {
                if found.pod_cidrs.is_empty() {
                    let answered = Instant::now();
                    let (after, effects) = self.allocator.lock().read_empty(uid, begun, answered);
                    self.carry_out(effects);
                    return ReadBack::Empty(after);
                }
                let effects = self.allocator.lock().observe_read(&found, Instant::now());
                self.carry_out(effects);
            }
            Read::Found(_) | Read::Absent => {
                let effects = self.allocator.lock().gone(uid, Instant::now());
                self.carry_out(effects);
            }
        }
        ReadBack::Settled
    }
}
