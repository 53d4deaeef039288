//! One pass over one Node: ask the allocator what to send, send it, act on the answer. The passes of
//! the allocators that ask a cloud send, read and settle by the same [`Reconciler`]. [`Backlog`] holds
//! the Nodes of a list until the queue has room for them.

mod reads;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use informer::Informer;
use kube_api::{Cached, CloudNode, LabelledNode, Node, NodeMarks};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;
use workqueue::{Next, Reconcile, Retry, WorkQueue};

use super::allocator::{AfterRead, Allocator, Assignment, Effects, Shortage};
use super::api::NodeApi;
use super::metrics::IpamMetrics;
use super::node_events::{FAILED, NodeEvents, REMIND};
use super::second_allocator::Detector;
use super::writer::{LastAccepted, Writer, Written};
use crate::LOGGER;

/// While the server's history is in doubt nothing is sent; it is looked at again after this time.
const DOUBT_PAUSE: Duration = Duration::from_secs(1);

/// A Node whose ClusterCIDR has no finalizer is looked at again this often: others may serve it after
/// a while.
const UNHELD: Duration = Duration::from_secs(10);

/// Works on Nodes by name. The allocator is shared with the watch handler.
pub(crate) struct Reconciler<N: CachedNode> {
    /// All claims; locked for microseconds, never across a call.
    pub(crate) allocator: Arc<Mutex<Allocator>>,
    /// The cache of Nodes.
    pub(crate) nodes: Informer<N>,
    /// Where woken Nodes go.
    pub(crate) queue: WorkQueue<Arc<str>>,
    /// Nodes of a list that the queue has no room for yet.
    pub(crate) backlog: Backlog,
    /// Receives the ClusterCIDRs without holders, if pools come from ClusterCIDRs.
    pub(crate) cluster_cidrs: Option<WorkQueue<Arc<str>>>,
    /// Whether somebody else gives out pod CIDRs.
    pub(crate) detector: Arc<Detector>,
    /// The API calls.
    pub(crate) api: NodeApi,
    /// For events on Nodes.
    pub(crate) events: NodeEvents,
    /// Counts what cannot be read off the allocator.
    pub(crate) metrics: IpamMetrics,
    /// Whether the API server accepts PATCHes while it refuses others by 429.
    pub(crate) accepted: LastAccepted,
    /// The API server does not store what is sent.
    pub(crate) dry_run: bool,
    /// Once cancelled, no PATCH leaves any more.
    pub(crate) stop: CancellationToken,
}

/// Why a pass over a Node ends before its work is done.
pub(crate) type Ended = Result<Next, Retry>;

/// One write.
pub(crate) struct Work<'a> {
    pub(crate) node: &'a Node,
    pub(crate) cidrs: &'a [IpNet],
    /// When the Node was first seen without CIDRs.
    pub(crate) since: Instant,
}

impl<N: CachedNode> Reconcile for Reconciler<N> {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        self.backlog.feed(&self.queue);
        // A Node that is gone has been released by the watch handler.
        let Some(cached) = self.nodes.get(name) else { return Ok(Next::Done) };
        let node = cached.as_ref().as_ref();
        if self.nodes.is_doubted() {
            return Ok(Next::After(DOUBT_PAUSE));
        }
        if let Err(held) = self.check_hold() {
            return held;
        }
        let now = Instant::now();
        if let Some(until) = self.allocator.lock().awaits_labels(&node.uid, now) {
            return Ok(Next::After(until.saturating_duration_since(now)));
        }
        let (assignment, effects) = self.allocator.lock().assign(&node.uid);
        self.carry_out(effects);
        match assignment {
            Assignment::Settled => Ok(Next::Done),
            Assignment::TooEarly => Ok(Next::After(DOUBT_PAUSE)),
            Assignment::Starved(shortage) => {
                self.events.report_shortage(node, &shortage);
                let is_unheld = matches!(shortage, Shortage::Unheld(_));
                Ok(Next::After(if is_unheld { UNHELD } else { REMIND }))
            }
            Assignment::Send { cidrs, unresolved, since } => {
                let work = Work { node, cidrs: &cidrs, since };
                if unresolved {
                    match self.read_back(node, since).await {
                        ReadBack::Empty(AfterRead::Send) => {}
                        other => return other.next(Ok(Next::Done)),
                    }
                }
                self.write(&work).await.map_or_else(|ended| ended, |()| Ok(Next::Done))
            }
        }
    }
}

impl<N: CachedNode> Reconciler<N> {
    /// `Err` while no Node is given anything (`rule:second-allocator-is-told`).
    pub(crate) fn check_hold(&self) -> Result<(), Ended> {
        match self.detector.hold.left(Instant::now()) {
            Some(wait) => Err(Ok(Next::After(wait.min(REMIND)))),
            None => Ok(()),
        }
    }

    /// Sends the PATCH and acts on its answer. `Ok` when the Node has what was sent.
    pub(crate) async fn write(&self, work: &Work<'_>) -> Result<(), Ended> {
        let Work { node, cidrs, since } = *work;
        let (allocator, nodes) = (self.allocator.clone(), self.nodes.clone());
        let (uid, planned) = (node.uid.clone(), cidrs.to_vec());
        let (metrics, applicable_for) = (self.metrics.clone(), self.api.applicable_for());
        let check = move || {
            // A Node that came back with an older history may hold the block
            // (`rule:list-before-allocate`).
            if nodes.is_doubted() {
                return false;
            }
            let now = Instant::now();
            let departure = allocator.lock().begin_send(&uid, &planned, now, now + applicable_for);
            let Some(departure) = departure else { return false };
            if let Some(delay) = departure.own_delay {
                metrics.left_first(delay);
            }
            true
        };
        let is_begun = self.is_begun(node);
        let written = self.writer().set_cidrs(node, cidrs, (since, is_begun), check).await;
        self.act_on(work, written).await
    }

    /// Acts on the answer to a PATCH; `Ok` when the Node has what was sent.
    async fn act_on(&self, work: &Work<'_>, written: Written) -> Result<(), Ended> {
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

    /// Sends and judges PATCHes.
    pub(crate) fn writer(&self) -> Writer<'_> {
        let Self { api, metrics, detector, accepted, stop, .. } = self;
        Writer { api, metrics, detector, accepted, stop }
    }

    /// Whether a PATCH is the second half of what the cloud has carried out already, and is sent also
    /// after the stop (`rule:begun-alias-is-finished`).
    fn is_begun(&self, node: &Node) -> bool {
        self.allocator.lock().routed_block(&node.uid).is_some()
    }
}

/// CIDRs with commas between them; costs nothing where the line is not written.
struct Listed<'a>(&'a [IpNet]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(cidr::canonical).collect::<Vec<_>>().join(","))
    }
}

/// A cached Node as the allocator and the reconciler read it.
pub(crate) trait CachedNode: Cached + AsRef<Node> {
    /// The labels and taints that select it, where that matters and while it has no CIDRs.
    fn marks(&self) -> Option<&Arc<NodeMarks>> {
        None
    }
}

/// The RangeAllocator gives every Node of the same pools.
impl CachedNode for Node {}

impl CachedNode for LabelledNode {
    fn marks(&self) -> Option<&Arc<NodeMarks>> {
        self.marks.as_ref()
    }
}

/// The cloud says what a Node gets.
impl CachedNode for CloudNode {}

impl<N: CachedNode> Reconciler<N> {
    /// Passes on what the allocator wants told and done.
    pub(crate) fn carry_out(&self, effects: Effects) {
        if let Some(took) = effects.assigned {
            self.metrics.assigned(took);
        }
        if let Some(suspect) = effects.foreign {
            self.detector.suspect(suspect);
        }
        for notice in effects.notices {
            self.events.warn(notice);
        }
        for search in effects.skipped {
            self.metrics.skipped(&search);
        }
        for (range, object) in effects.ended {
            self.metrics.ended(&range, &object);
        }
        if let Some(cluster_cidrs) = &self.cluster_cidrs {
            effects.released.into_iter().for_each(|name| cluster_cidrs.add(name));
        }
        for name in effects.wake {
            self.queue.add(name);
        }
    }
}

/// At most so many keys wait in the queue while there are more: enough for all workers at any speed. A key
/// takes ten times as much room there as here, and at a start all Nodes of a cluster may
/// need work.
pub(crate) const IN_QUEUE: usize = 2048;

/// Names of the Nodes of a list on their way into the queue, in the order of the list.
#[derive(Default)]
pub(crate) struct Backlog(Mutex<VecDeque<Arc<str>>>);

impl Backlog {
    /// Adds Nodes behind the others.
    pub(crate) fn add(&self, names: Vec<Arc<str>>) {
        let mut backlog = self.0.lock();
        if backlog.is_empty() {
            *backlog = names.into();
        } else {
            backlog.extend(names);
        }
    }

    /// Moves as many Nodes into the queue as it has room for. Called when there are more of them,
    /// and before each is handled.
    pub(crate) fn feed(&self, queue: &WorkQueue<Arc<str>>) {
        let mut backlog = self.0.lock();
        if backlog.is_empty() {
            return;
        }
        while queue.len() < IN_QUEUE
            && let Some(name) = backlog.pop_front()
        {
            queue.add(name);
        }
        if backlog.is_empty() {
            *backlog = VecDeque::new();
        }
    }
}

/// The result of a consistent read.
#[derive(Debug)]
pub(crate) enum ReadBack {
    /// The Node is alive and has no CIDRs; the allocator says what follows.
    Empty(AfterRead),
    /// Everything that the read said is carried out.
    Settled,
    /// The read failed, or the stop came.
    Unread(Ended),
}

impl ReadBack {
    /// The answer to the queue; `resend` is for a PATCH that may be sent (again).
    pub(crate) fn next(self, resend: Ended) -> Ended {
        match self {
            Self::Empty(AfterRead::Send) => resend,
            Self::Empty(AfterRead::Wait(until)) => {
                Ok(Next::After(until.saturating_duration_since(Instant::now())))
            }
            Self::Empty(AfterRead::Reassign | AfterRead::Settled) | Self::Settled => Ok(Next::Done),
            Self::Unread(next) => next,
        }
    }
}

#[cfg(test)]
mod tests;
