//! The consistent reads that settle an unknown outcome, during work and at the stop (`rule:unknown-outcome-ends`,
//! `rule:stop-settles-outcomes`).

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use http::StatusCode;
use kube_api::Node;
use tokio::time::{Instant, sleep_until, timeout_at};
use workqueue::{Next, Retry};

use super::{CachedNode, ReadBack, Reconciler};
use crate::allocator::Uid;
use crate::api::ReadError;
use crate::writer::{READ_AGAIN, READS_AT_STOP, throttled};

impl<N: CachedNode> Reconciler<N> {
    /// A consistent read after an answer that leaves the truth open.
    pub(crate) async fn read_back(&self, node: &Node, since: Instant) -> ReadBack {
        let (begun, is_begun) = (Instant::now(), self.is_begun(node));
        let read = tokio::select! {
            biased;
            () = self.stop.cancelled(), if !is_begun => return ReadBack::Unread(Ok(Next::Done)),
            read = self.api.read(&node.name, since) => read,
        };
        match read {
            Ok(read) => self.take_in(&node.uid, read, begun),
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
        let reads = stream::iter(open)
            .for_each_concurrent(READS_AT_STOP, |(name, uid)| self.settle(name, uid));
        // What is not settled then is counted below.
        let _in_time = timeout_at(deadline, reads).await.is_ok();
        self.allocator.lock().open_outcomes().len()
    }

    /// One read at once, which may show that the PATCH was applied, and those that settle it when
    /// the server can no longer apply it.
    async fn settle(&self, name: Arc<str>, uid: Uid) {
        loop {
            let begun = Instant::now();
            let next = match self.api.read(&name, begun).await {
                Ok(read) => match self.take_in(&uid, read, begun) {
                    ReadBack::Empty(_) => match self.allocator.lock().open_until(&uid) {
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

    fn take_in(&self, uid: &Uid, read: Option<Node>, begun: Instant) -> ReadBack {
        match read {
            Some(found) if found.uid == *uid => {
                if found.pod_cidrs.is_empty() {
                    let answered = Instant::now();
                    let (after, effects) = self.allocator.lock().read_empty(uid, begun, answered);
                    self.carry_out(effects);
                    return ReadBack::Empty(after);
                }
                let effects = self.allocator.lock().observe_read(&found, Instant::now());
                self.carry_out(effects);
            }
            _ => {
                let effects = self.allocator.lock().gone(uid, Instant::now());
                self.carry_out(effects);
            }
        }
        ReadBack::Settled
    }
}
