//! [`CloudNodes`]: the Nodes of a run, what is claimed for them, and what both the copier and the
//! syncer do with one of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cidr::IpNet;
use informer::{Delta, Informer, Subscription};
use kube_api::{CloudNode, Node};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use workqueue::{Next, Retry, WorkQueue};

use super::claims::{Claims, Refusal};
use super::node_events::NodeEvents;
use super::provider::{Cloud, CloudError, VmRanges};
use super::writes::{Before, Leaves, NodeWrites};
use crate::second_allocator::Detector;
use crate::second_allocator::Suspect;
use crate::writer::Written;

/// After a refusal that nothing but somebody's help mends.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Number of blocks that are requested for a Node without a pause; after that, [`REFUSED_PAUSE`]
/// lies between two requests.
const BLOCKS_IN_A_ROW: u32 = 8;

/// Time limit after a stop for requests that the cloud got before. With the time of the PATCH
/// that follows, 5 s, it fits into stock's default for `--controller-shutdown-timeout`, 10 s.
const LAST_CALLS: Duration = Duration::from_secs(4);

/// Interval of reads for a Node that has been without a block for long.
const HELD_LONG: Duration = Duration::from_secs(300);

/// Event reason: Node and VM differ, which only the operator can resolve.
pub(super) const MISMATCH: &str = "CloudCIDRAllocatorMismatch";
/// The cloud has nothing for a Node, or there is no block.
pub(super) const NOT_AVAILABLE: &str = "CIDRNotAvailable";
/// The API server or the cloud refused the write.
pub(super) const FAILED: &str = "CIDRAssignmentFailed";
/// The Node has its pod CIDR, and the condition of its network was refused.
const NOT_READY: &str = "NetworkConditionNotWritten";

/// The Nodes of a run.
pub(super) struct CloudNodes<C: Cloud> {
    pub(super) nodes: Informer<CloudNode>,
    pub(super) queue: WorkQueue<Arc<str>>,
    pub(super) cloud: C,
    pub(super) claims: Arc<Mutex<Claims>>,
    pub(super) writes: NodeWrites,
    pub(super) detector: Arc<Detector>,
    pub(super) node_events: NodeEvents,
    pub(super) vm_read_times: VmReadTimes,
    pub(super) stop: CancellationToken,
    /// Writes to the cloud that the stop cut off.
    pub(super) cut_off: AtomicUsize,
}

/// Why a pass over a Node ends.
pub(super) type Ended = Result<Next, Retry>;

impl<C: Cloud> CloudNodes<C> {
    /// Feeds claims and queue from the watch, in its order; `wants` says which Nodes are worked on
    /// when they change, and `gone` hears of those that are no more.
    pub(super) fn watch(
        self: &Arc<Self>,
        wants: impl Fn(&CloudNode) -> bool + Send + Sync + 'static,
        gone: impl Fn(&Self, &Node) + Send + Sync + 'static,
    ) -> Subscription<CloudNode> {
        let this = Arc::downgrade(self);
        self.nodes.subscribe(move |delta| {
            let Some(this) = this.upgrade() else { return };
            match delta {
                Delta::Updated { old, new } if is_no_news(old, new) => {}
                Delta::Added(node) => this.take_in(node, true),
                Delta::Updated { new, .. } => this.take_in(new, wants(new)),
                Delta::Deleted(node) => {
                    this.let_go(&node.node);
                    gone(&this, &node.node);
                }
                Delta::ListStarts => this.claims.lock().set_in_list(true),
                Delta::ListEnds => this.claims.lock().set_in_list(false),
            }
        })
    }

    fn take_in(&self, node: &CloudNode, is_wanted: bool) {
        let name = &node.node.name;
        // Our own write says nothing new about its VM.
        if !self.claims.lock().shows_ours(&node.node) {
            self.vm_read_times.note(name, Instant::now());
        }
        let effects = self.claims.lock().see(&node.node);
        let may_have_alias = node.node.pod_cidrs.is_empty() && !node.node.deleting;
        let is_read = !may_have_alias || node.provider_id.is_empty();
        self.wake(self.claims.lock().expect_read(&node.node.uid, !is_read));
        if !node.node.pod_cidrs.is_empty() {
            self.writes.forget(&node.node.uid);
        }
        self.wake(effects.wake);
        if let Some(evidence) = effects.foreign {
            self.detector.suspect(Suspect::new(&node.node, evidence));
        }
        if let Some(conflict) = effects.conflict {
            self.node_events.report_conflict(&node.node, &conflict);
        }
        if is_wanted {
            self.queue.add(Arc::clone(name));
        }
    }

    fn let_go(&self, node: &Node) {
        let effects = self.claims.lock().gone(&node.uid);
        self.writes.forget(&node.uid);
        // The name may be another Node's by now, whose `Added` follows.
        self.vm_read_times.forget(&node.name);
        self.wake(effects.wake);
    }

    pub(super) fn wake(&self, names: Vec<Arc<str>>) {
        for name in names {
            self.queue.add(name);
        }
    }

    /// Reads the ranges of a Node's VM, as of a read that is not older than `age` and than the Node's
    /// last change. An error is told where somebody has to hear of it.
    pub(super) async fn vm(&self, node: &CloudNode, age: Duration) -> Result<VmRanges, Ended> {
        let name = &node.node.name;
        let not_before = self.vm_read_times.not_before(name, age, Instant::now());
        let reading = self.cloud.ranges(&node.provider_id, not_before);
        match self.stop.run_until_cancelled(reading).await {
            None => Err(Ok(Next::Done)),
            Some(Ok(vm)) => {
                self.wake(self.claims.lock().expect_read(&node.node.uid, false));
                Ok(vm)
            }
            Some(Err(error)) => {
                // A VM that cannot be read holds up no other Node.
                if !matches!(error, CloudError::Throttled { .. }) {
                    self.wake(self.claims.lock().expect_read(&node.node.uid, false));
                }
                Err(Err(self.failed(&node.node, error, NOT_AVAILABLE)))
            }
        }
    }

    /// Reports an error of the cloud and decides when to try again: throttling makes no event, a final
    /// refusal or a missing right waits a minute.
    pub(super) fn failed(&self, node: &Node, error: CloudError, reason: &'static str) -> Retry {
        match error {
            CloudError::Throttled { reason, pause } => Retry::throttled(reason, pause),
            CloudError::Absent(why) => {
                self.node_events.report(node, NOT_AVAILABLE, &why);
                Retry::expected(why)
            }
            CloudError::Refused(why) => {
                self.node_events.report(node, reason, &why);
                Retry::new(why).at_least(REFUSED_PAUSE)
            }
            CloudError::RangeRefused(why) => {
                self.node_events.report(node, reason, &why);
                let tries = self.queue.failures(&node.name);
                let may_change = node.pod_cidrs.is_empty() && tries < BLOCKS_IN_A_ROW;
                let pause = if may_change { Duration::ZERO } else { REFUSED_PAUSE };
                Retry::new(why).at_least(pause)
            }
            CloudError::Withdrawn => Retry::expected("it may not be sent any more"),
            CloudError::Failed(why) => Retry::new(why),
        }
    }

    /// Reports a claim that cannot be made.
    pub(super) fn refused(&self, node: &Node, refusal: Refusal) -> Retry {
        match &refusal {
            Refusal::NotNow => {}
            Refusal::Held { .. } => self.node_events.report(node, FAILED, &refusal.to_string()),
            Refusal::Full(_) => self.node_events.report(node, NOT_AVAILABLE, &refusal.to_string()),
        }
        Retry::expected(refusal)
    }

    /// `Err` while no Node is given anything (`rule:second-allocator-is-told`).
    pub(super) fn check_hold(&self) -> Result<(), Ended> {
        match self.detector.hold.left(Instant::now()) {
            Some(wait) => Err(Ok(Next::After(wait.min(HELD_LONG)))),
            None => Ok(()),
        }
    }

    /// Has the cloud route a range to the VM of a Node, which has what was read of it. Once that
    /// has begun it is awaited beyond the stop (`rule:begun-alias-is-finished`).
    pub(super) async fn route(
        &self,
        node: &CloudNode,
        range: IpNet,
        vm: &VmRanges,
    ) -> Result<(), Ended> {
        let (claims, stop) = (Arc::clone(&self.claims), self.stop.clone());
        let (uid, left) = (Arc::clone(&node.node.uid), AtomicBool::new(false));
        let is_given = node.node.pod_cidrs.is_empty();
        let is_wanted = || {
            let is_held = is_given && self.check_hold().is_err();
            let may = !is_held
                && !stop.is_cancelled()
                && !self.nodes.is_doubted()
                && claims.lock().may_send(&uid, &[range]);
            left.fetch_or(may, Ordering::Relaxed);
            may
        };
        let adding = self.cloud.add_range(&node.provider_id, range, vm, &is_wanted);
        let added = self.finish(adding, &left).await;
        // What was read before does not show it.
        self.vm_read_times.note(&node.node.name, Instant::now());
        self.sweep(&node.node);
        match added {
            None => Err(Ok(Next::Done)),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                if matches!(error, CloudError::RangeRefused(_)) {
                    self.claims.lock().refuse(&node.node.uid);
                }
                Err(Err(self.failed(&node.node, error, FAILED)))
            }
        }
    }

    /// Waits after a stop for a request that has left, for a limited time. `None` if it did not end, or
    /// if no request had left.
    async fn finish<T>(&self, begun: impl Future<Output = T>, left: &AtomicBool) -> Option<T> {
        tokio::pin!(begun);
        tokio::select! {
            done = &mut begun => return Some(done),
            () = self.stop.cancelled() => {}
        }
        if !left.load(Ordering::Relaxed) {
            return None;
        }
        let done = timeout(LAST_CALLS, begun).await.ok();
        if done.is_none() {
            self.cut_off.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// Writes what is claimed for a Node to it. `Ok` when it is there.
    pub(super) async fn write_cidrs(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        leaves: Leaves,
    ) -> Result<(), Ended> {
        let (claims, uid, planned) =
            (Arc::clone(&self.claims), Arc::clone(&node.uid), cidrs.to_vec());
        // What the cloud has carried out already is finished.
        let hold = (leaves == Leaves::UntilTheStop).then(|| self.detector.hold.clone());
        let nodes = self.nodes.clone();
        let check = move || {
            let is_held = hold.as_ref().is_some_and(|hold| hold.left(Instant::now()).is_some());
            !is_held && !nodes.is_doubted() && claims.lock().may_send(&uid, &planned)
        };
        let since = self.claims.lock().since(&node.uid);
        let written = self.writes.set_cidrs(node, cidrs, (since, leaves), check).await;
        self.sweep(node);
        self.done(node, written, FAILED)?;
        self.claims.lock().written(&node.uid);
        Ok(())
    }

    /// Forgets what a pass has noted of a Node that was deleted meanwhile; no later pass would.
    fn sweep(&self, node: &Node) {
        if !self.claims.lock().is_live(&node.uid) {
            self.writes.forget(&node.uid);
            self.vm_read_times.forget(&node.name);
        }
    }

    /// Says on a Node that its network is ready, unless it says so already: every write goes to all
    /// watchers of Nodes.
    pub(super) async fn make_ready(&self, node: &CloudNode, message: &str) -> Result<(), Ended> {
        if node.network_is_ready {
            return Ok(());
        }
        let written = self.writes.make_ready(&node.node, message).await;
        self.done(&node.node, written, NOT_READY)
    }

    /// Waits until no earlier PATCH of the Node can take effect, except one of the planned CIDRs; `Err`
    /// while that is unknown.
    pub(super) async fn settle(&self, node: &Node, planned: &[IpNet]) -> Result<(), Ended> {
        match self.writes.settle(node, planned).await {
            Before::Clear => Ok(()),
            // The watch brings it.
            Before::Shows(cidrs) => {
                Err(Err(Retry::expected(format!("the Node has {cidrs:?} by now"))))
            }
            Before::Unknown(retry) => Err(Err(retry)),
        }
    }

    fn done(&self, node: &Node, written: Written, reason: &'static str) -> Result<(), Ended> {
        match written {
            Written::Done => Ok(()),
            Written::Stopped => Err(Ok(Next::Done)),
            Written::Changed => Err(Err(Retry::expected("the Node has changed meanwhile"))),
            Written::Not(retry) | Written::Withdrawn(retry) | Written::Unknown(_, retry) => {
                Err(Err(retry))
            }
            Written::Rejected(why, pause) => {
                self.node_events.report(node, reason, &why);
                Err(Err(Retry::expected(why).at_least(pause)))
            }
        }
    }
}

/// Heartbeats by the thousand change nothing that counts.
fn is_no_news(old: &CloudNode, new: &CloudNode) -> bool {
    old.node.pod_cidrs == new.node.pod_cidrs
        && old.node.deleting == new.node.deleting
        && old.provider_id == new.provider_id
        && old.network_is_ready == new.network_is_ready
        && old.network_taint == new.network_taint
}

/// When each Node last changed in what counts, by name. What was read of its VM before says nothing
/// about it: a new VM may have the same name.
#[derive(Debug, Default)]
pub(super) struct VmReadTimes(Mutex<HashMap<Arc<str>, Instant>>);

impl VmReadTimes {
    /// A Node has changed, or its VM was changed by us.
    pub(super) fn note(&self, name: &Arc<str>, now: Instant) {
        self.0.lock().insert(Arc::clone(name), now);
    }

    /// A Node is gone.
    pub(super) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// The earliest moment of a read that counts, if it may be no older than `age`.
    pub(super) fn not_before(&self, name: &str, age: Duration, now: Instant) -> Instant {
        let oldest = now.checked_sub(age).unwrap_or(now);
        self.0.lock().get(name).copied().unwrap_or(now).max(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_counts_when_it_was_begun_after_the_last_change_and_is_not_too_old() {
        const S: fn(u64) -> Duration = Duration::from_secs;
        tokio::time::advance(S(1000)).await;
        let (seen, start, a) = (VmReadTimes::default(), Instant::now(), Arc::from("a"));
        assert_eq!(seen.not_before("a", S(30), start), start, "nothing is known of it");
        seen.note(&a, start);
        assert_eq!(seen.not_before("a", S(30), start + S(10)), start);
        assert_eq!(seen.not_before("a", S(30), start + S(40)), start + S(10));
        seen.note(&a, start + S(35));
        assert_eq!(seen.not_before("a", S(30), start + S(40)), start + S(35));
        seen.forget("a");
        assert_eq!(seen.not_before("a", S(30), start + S(40)), start + S(40));
    }
}
