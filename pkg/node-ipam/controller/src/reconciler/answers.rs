//! What each class of answer to a PATCH leads to.

use std::fmt;

use cidr::IpNet;
use client::CallError;
use kube_api::Node;
use tokio::time::Instant;
use tracing::info;
use workqueue::{Next, Retry};

use super::CachedNode;
use super::read_result::throttled;
use super::{Reconciler, Work};
use crate::LOGGER;
use crate::patch::Class;

impl<N: CachedNode> Reconciler<N> {
    pub(super) async fn act_on(
        &self,
        work: &Work<'_>,
        class: Class,
        settled_at: Option<Instant>,
    ) -> Result<Next, Retry> {
        let node = work.node;
        self.metrics.patched(class.label());
        match class {
            Class::Done => {}
            Class::Ambiguous { .. } => self.allocator.lock().lost(&node.uid, settled_at),
            _ => self.allocator.lock().refused(&node.uid),
        }
        match class {
            Class::Done => {
                self.bound(node, work.cidrs);
                Ok(Next::Done)
            }
            Class::Missing | Class::Replaced | Class::Taken => {
                let empty = Err(Retry::expected("the Node still has no pod CIDR"));
                self.read_back(work).await.next(empty)
            }
            Class::Rejected { message, pause } => {
                self.tell(node, "CIDRAssignmentFailed", &message);
                Err(Retry::expected(message).at_least(pause))
            }
            Class::Throttled { retry_after } => Err(throttled(retry_after)),
            Class::Ambiguous { message } => {
                let reason =
                    format!("the PATCH may have been applied, reading the Node: {message}");
                Err(Retry::expected(reason))
            }
        }
    }

    pub(super) fn act_on_failure(&self, node: &Node, error: CallError) -> Result<Next, Retry> {
        match error {
            // The allocator said no at the last moment: ask it again.
            CallError::Withdrawn if self.stop.is_cancelled() => Ok(Next::Done),
            CallError::Withdrawn => Err(Retry::expected(error)),
            CallError::Fenced | CallError::NotSent(_) => {
                self.metrics.patched("not_sent");
                self.allocator.lock().refused(&node.uid);
                Err(error.into())
            }
            CallError::Timeout { .. } | CallError::Transport { .. } => {
                self.metrics.patched("ambiguous");
                self.allocator.lock().lost(&node.uid, error.settled_at());
                Err(error.into())
            }
        }
    }

    fn bound(&self, node: &Node, cidrs: &[IpNet]) {
        let took = self.allocator.lock().bound(&node.uid, Instant::now());
        if let Some(took) = took {
            self.metrics.assigned(took);
        }
        if self.dry_run {
            info!(logger = LOGGER, node = %node.name, cidrs = %Listed(cidrs), "Would set node PodCIDR");
        } else {
            info!(v = 2, logger = LOGGER, node = %node.name,
                cidrs = %Listed(cidrs), "Set node PodCIDR");
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
