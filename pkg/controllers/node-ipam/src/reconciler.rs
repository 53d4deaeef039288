//! One pass over one Node: ask the allocator what to send, send it, act on the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cidr::IpNet;
use client::CallError;
use events::{EventType, ObjectRef, Recorder};
use informer::Informer;
use model::Node;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use workqueue::{Next, Reconcile, Retry, WorkQueue};

use crate::LOGGER;
use crate::allocator::{Allocator, Assignment, Effects};
use crate::api::{NodeApi, Read, ReadError};
use crate::metrics::IpamMetrics;
use crate::patch::{self, Class};

/// An unassigned Node's state is told again this often (`node-ipam.md` 4.3).
pub const REMIND: Duration = Duration::from_secs(300);

/// Works on Nodes by name. The allocator is shared with the watch handler.
pub struct Reconciler {
    /// All claims; locked for microseconds, never across a call.
    pub allocator: Arc<Mutex<Allocator>>,
    /// The cache of Nodes.
    pub nodes: Informer<Node>,
    /// Where woken Nodes go.
    pub queue: WorkQueue<Arc<str>>,
    /// The API calls.
    pub api: NodeApi,
    /// For events on Nodes.
    pub recorder: Recorder,
    /// Counts what cannot be read off the allocator.
    pub metrics: IpamMetrics,
    /// Once cancelled, no PATCH leaves any more.
    pub stop: CancellationToken,
}

impl Reconcile for Reconciler {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        // A Node that is gone has been released by the watch handler.
        let Some(node) = self.nodes.get(name) else { return Ok(Next::Done) };
        let (assignment, effects) = self.allocator.lock().assign(&node.uid);
        self.carry_out(effects);
        match assignment {
            Assignment::Settled => Ok(Next::Done),
            Assignment::Starved(exhausted) => {
                self.tell(&node, "CIDRNotAvailable", &exhausted.to_string());
                Ok(Next::After(REMIND))
            }
            Assignment::Send { cidrs, unresolved } => self.settle(&node, cidrs, unresolved).await,
        }
    }
}

impl Reconciler {
    /// Passes on what the allocator wants told and done.
    pub fn carry_out(&self, effects: Effects) {
        if let Some(took) = effects.assigned {
            self.metrics.assigned(took);
        }
        for notice in effects.notices {
            if !self.allocator.lock().notice_due(&notice, REMIND, Instant::now()) {
                continue;
            }
            // The recorder logs it as well.
            let node = ObjectRef::node(&notice.name, &notice.uid);
            self.recorder.event(node, EventType::Warning, notice.reason, notice.message);
        }
        for (pool, blocks) in effects.skipped {
            self.metrics.skipped(&pool, blocks);
        }
        for name in effects.wake {
            self.queue.add(name);
        }
    }

    async fn settle(
        &self,
        node: &Node,
        cidrs: Vec<IpNet>,
        unresolved: bool,
    ) -> Result<Next, Retry> {
        if unresolved {
            match self.look_again(node).await {
                // Nothing is sent to a Node that is leaving; its DELETE settles the rest.
                Look::StillEmpty if node.deleting => return Ok(Next::Done),
                Look::StillEmpty => {}
                Look::Settled(next) => return next,
            }
            let effects = self.allocator.lock().still_empty(&node.uid);
            if !effects.wake.is_empty() {
                self.carry_out(effects);
                return Ok(Next::Done);
            }
        }
        let sent = Arc::new(AtomicBool::new(false));
        let answer = {
            let send = self.send(node, &cidrs, sent.clone());
            tokio::pin!(send);
            tokio::select! {
                answer = &mut send => answer,
                // What still waits for the throttle is never sent; what is on its way is awaited.
                () = self.stop.cancelled() => {
                    if !sent.load(Ordering::Relaxed) {
                        return Ok(Next::Done);
                    }
                    send.await
                }
            }
        };
        match answer {
            Ok(class) => {
                self.metrics.patched(class.label());
                self.act_on(node, &cidrs, unresolved, class).await
            }
            Err(error) => self.act_on_failure(node, unresolved, error),
        }
    }

    /// Sends the PATCH; `sent` is set when it leaves.
    async fn send(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        sent: Arc<AtomicBool>,
    ) -> Result<Class, CallError> {
        let body = patch::body(&node.uid, cidrs);
        let (allocator, stop) = (self.allocator.clone(), self.stop.clone());
        let (uid, planned) = (node.uid.clone(), cidrs.to_vec());
        let check = move || {
            let go = !stop.is_cancelled() && allocator.lock().begin_send(&uid, &planned);
            sent.store(go, Ordering::Relaxed);
            go
        };
        let answer = self.api.patch(&node.name, body, check).await?;
        Ok(patch::classify(answer.status, answer.retry_after, &answer.body))
    }

    async fn act_on(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        before: bool,
        class: Class,
    ) -> Result<Next, Retry> {
        if !matches!(class, Class::Done | Class::Ambiguous { .. }) {
            self.allocator.lock().not_written(&node.uid, before);
        }
        match class {
            Class::Done => {
                let took = self.allocator.lock().bound(&node.uid, Instant::now());
                if let Some(took) = took {
                    self.metrics.assigned(took);
                }
                info!(v = 2, logger = LOGGER, node = %node.name,
                    cidrs = texts(cidrs), "Set node PodCIDR");
                Ok(Next::Done)
            }
            Class::Missing | Class::Replaced | Class::Taken => match self.look_again(node).await {
                Look::Settled(next) => next,
                Look::StillEmpty => Err(Retry::expected("the Node still has no pod CIDR")),
            },
            Class::Rejected { message, pause } => {
                self.tell(node, "CIDRAssignmentFailed", &message);
                Err(Retry::expected(message).at_least(pause))
            }
            Class::Throttled { pause } => Err(Retry::throttled("the server asked to wait", pause)),
            Class::Ambiguous { message } => {
                let reason =
                    format!("the PATCH may have been applied, reading the Node: {message}");
                Err(Retry::expected(reason))
            }
        }
    }

    fn act_on_failure(&self, node: &Node, before: bool, error: CallError) -> Result<Next, Retry> {
        match error {
            // The allocator said no at the last moment: ask it again.
            CallError::Withdrawn if self.stop.is_cancelled() => Ok(Next::Done),
            CallError::Withdrawn => Err(Retry::expected(error)),
            CallError::Fenced | CallError::NotSent(_) => {
                self.metrics.patched("not_sent");
                self.allocator.lock().not_written(&node.uid, before);
                Err(error.into())
            }
            CallError::Timeout { .. } | CallError::Transport { .. } => {
                self.metrics.patched("ambiguous");
                Err(error.into())
            }
        }
    }

    /// A consistent read after an answer that leaves the truth open.
    async fn look_again(&self, node: &Node) -> Look {
        let read = tokio::select! {
            read = self.api.read(&node.name) => read,
            () = self.stop.cancelled() => return Look::Settled(Ok(Next::Done)),
        };
        match read {
            Ok(Read::Found(found)) if found.uid == node.uid => {
                if found.pod_cidrs.is_empty() {
                    return Look::StillEmpty;
                }
                let effects = self.allocator.lock().observe_read(&found, Instant::now());
                self.carry_out(effects);
                Look::Settled(Ok(Next::Done))
            }
            Ok(Read::Found(_) | Read::Absent) => {
                let effects = self.allocator.lock().gone(&node.uid);
                self.carry_out(effects);
                Look::Settled(Ok(Next::Done))
            }
            Err(error) => {
                let at_least = match &error {
                    ReadError::Refused { pause: Some(pause), .. } => *pause,
                    _ => Duration::ZERO,
                };
                Look::Settled(Err(Retry::from(error).at_least(at_least)))
            }
        }
    }

    /// An event on an unassigned Node, at once when the state is entered and then rarely.
    fn tell(&self, node: &Node, reason: &'static str, why: &str) {
        if self.allocator.lock().due(&node.uid, reason, REMIND, Instant::now()) {
            warn!(logger = LOGGER, node = %node.name, reason, err = why,
                "Node has no pod CIDR");
            let message = format!("Node {} status is now: {reason}: {why}", node.name);
            let object = ObjectRef::node(&node.name, &node.uid);
            self.recorder.event(object, EventType::Normal, reason, message);
        }
    }
}

enum Look {
    /// The Node is alive and has no CIDRs.
    StillEmpty,
    /// Everything that the read said is carried out.
    Settled(Result<Next, Retry>),
}

fn texts(cidrs: &[IpNet]) -> String {
    cidrs.iter().map(cidr::canonical).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
