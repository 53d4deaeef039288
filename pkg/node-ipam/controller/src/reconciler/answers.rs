//! Acts on the answer to a PATCH, and on the consistent reads that settle an unknown outcome, during
//! work and at the stop (`rule:unknown-outcome-ends`, `rule:stop-settles-outcomes`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use futures::stream::{self, StreamExt as _};
use http::StatusCode;
use kube_api::Node;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::info;
use workqueue::{Next, Retry};

use super::{CachedNode, Ended, ReadBack, Reconciler, Work};
use crate::LOGGER;
use crate::allocator::Uid;
use crate::api::ReadError;
use crate::node_events::FAILED;
use crate::writer::{READ_AGAIN, READS_AT_STOP, Written, throttled};

impl<N: CachedNode> Reconciler<N> {
    /// `Ok` when the Node has what was sent.
    pub(super) async fn act_on(&self, work: &Work<'_>, written: Written) -> Result<(), Ended> {
        let node = work.node;
        match &written {
            Written::Unknown(until, _) => self.allocator.lock().lost(&node.uid, *until),
            Written::Changed | Written::Rejected(..) | Written::Not(_) => {
                self.allocator.lock().refused(&node.uid);
            }
            Written::Done | Written::Withdrawn(_) | Written::Stopped => {}
        }
        match written {
            Written::Done => {
                self.bound(node, work.cidrs);
                Ok(())
            }
            Written::Changed => {
                let empty = Err(Retry::expected("the Node still has no pod CIDR"));
                Err(self.read_back(node, work.since).await.next(empty))
            }
            Written::Rejected(message, pause) => {
                self.events.report(node, FAILED, &message);
                Err(Err(Retry::expected(message).at_least(pause)))
            }
            Written::Not(retry) if retry.is_throttled() => {
                let now = Instant::now();
                let first = self.allocator.lock().throttled_first(&node.uid, now);
                Err(Err(self.accepted.shorten(retry, now.saturating_duration_since(first))))
            }
            Written::Not(retry) | Written::Withdrawn(retry) | Written::Unknown(_, retry) => {
                Err(Err(retry))
            }
            Written::Stopped => Err(Ok(Next::Done)),
        }
    }

    fn bound(&self, node: &Node, cidrs: &[IpNet]) {
        let took = self.allocator.lock().bound(&node.uid, Instant::now());
        if let Some(took) = took {
            self.metrics.assigned(took);
        }
        if self.dry_run {
            info!(logger = LOGGER, cidrs = %Listed(cidrs), "Would set node PodCIDR");
        } else {
            info!(v = 2, logger = LOGGER, cidrs = %Listed(cidrs), "Set node PodCIDR");
        }
    }
}

/// CIDRs with commas between them; costs nothing where the line is not written.
struct Listed<'a>(&'a [IpNet]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(cidr::canonical).collect::<Vec<_>>().join(","))
    }
}

impl<N: CachedNode> Reconciler<N> {
    /// A consistent read after an answer that leaves the truth open.
    pub(crate) async fn read_back(&self, node: &Node, since: Instant) -> ReadBack {
        let (begun, is_begun) = (Instant::now(), self.is_begun(node));
        let read = tokio::select! {
            read = self.api.read(&node.name, since) => read,
            () = self.stop.cancelled(), if !is_begun => return ReadBack::Unread(Ok(Next::Done)),
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
