//! [`CloudNodes`]: the Nodes of a run whose VMs have ranges, and what both the copier and the syncer ask
//! of the cloud for one of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cidr::IpNet;
use gce::PodRanges;
use informer::{Delta, Subscription};
use kube_api::{CloudNode, Node};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};
use workqueue::{Next, Retry};

use super::provider::{Cloud, CloudError};
use crate::allocator::{AfterRead, Allocator, Assignment, Effects};
use crate::node_events::{FAILED, NOT_AVAILABLE};
use crate::node_work;
use crate::reconciler::{Ended, ReadBack, Reconciler, Work};

/// After a refusal that nothing but somebody's help mends.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Number of blocks that are requested for a Node without a pause; after that, [`REFUSED_PAUSE`]
/// lies between two requests.
const BLOCKS_IN_A_ROW: u32 = 8;

/// Time limit after a stop for requests that the cloud got before. With the time of the PATCH
/// that follows, 5 s, it fits into stock's default for `--controller-shutdown-timeout`, 10 s.
const LAST_CALLS: Duration = Duration::from_secs(4);

/// The Nodes of a run.
pub(super) struct CloudNodes<C: Cloud> {
    /// Claims, cache, queue and writes, which are those of all allocators.
    pub(super) core: Arc<Reconciler<CloudNode>>,
    pub(super) cloud: C,
    pub(super) vm_read_times: VmReadTimes,
    /// Writes to the cloud that the stop cut off.
    pub(super) cut_off: AtomicUsize,
}

impl<C: Cloud> CloudNodes<C> {
    pub(super) fn new(core: Arc<Reconciler<CloudNode>>, cloud: C) -> Arc<Self> {
        let (vm_read_times, cut_off) = (VmReadTimes::default(), AtomicUsize::new(0));
        Arc::new(Self { core, cloud, vm_read_times, cut_off })
    }

    /// The claims of all Nodes; not to be held across a call.
    pub(super) fn claims(&self) -> MutexGuard<'_, Allocator> {
        self.core.allocator.lock()
    }

    /// Feeds claims and queue from the watch, in its order; `wants` says which Nodes are worked on
    /// when they change, and `gone` hears of those that are no more.
    pub(super) fn watch(
        self: &Arc<Self>,
        wants: impl Fn(&CloudNode) -> bool + Send + Sync + 'static,
        gone: impl Fn(&Self, &Node) + Send + Sync + 'static,
    ) -> Subscription<CloudNode> {
        let this = Arc::downgrade(self);
        self.core.nodes.subscribe(move |delta| {
            let Some(this) = this.upgrade() else { return };
            match delta {
                Delta::Updated { old, new } if is_no_news(old, new) => {}
                Delta::Added(node) => this.take_in(node, true),
                Delta::Updated { new, .. } => this.take_in(new, wants(new)),
                Delta::Deleted(node) => {
                    this.let_go(&node.node);
                    gone(&this, &node.node);
                }
                Delta::ListStarts => this.claims().set_in_list(true),
                Delta::ListEnds => {
                    let mut claims = this.claims();
                    claims.set_in_list(false);
                    // Each was added to the queue when it came.
                    drop(claims.take_listed());
                }
            }
        })
    }

    fn take_in(&self, node: &CloudNode, is_wanted: bool) {
        let (name, uid, now) = (&node.node.name, &node.node.uid, Instant::now());
        let mut claims = self.claims();
        // Our own write says nothing new about its VM.
        if !claims.shows_ours(&node.node) {
            self.vm_read_times.note(name, now);
        }
        let effects = claims.observe(node, now);
        let is_served = node.node.is_selected && !node.node.deleting;
        let is_empty = node.node.pod_cidrs.is_empty() && is_served;
        let read = if is_empty && !node.provider_id.is_empty() {
            claims.expect_vm_read(uid);
            Effects::default()
        } else {
            claims.vm_was_read(uid)
        };
        drop(claims);
        self.core.carry_out(effects);
        self.core.carry_out(read);
        if is_wanted && node.node.is_selected {
            self.core.queue.add(Arc::clone(name));
        }
    }

    fn let_go(&self, node: &Node) {
        let effects = self.claims().gone(&node.uid, Instant::now());
        // The name may be another Node's by now, whose `Added` follows.
        self.vm_read_times.forget(&node.name);
        self.core.carry_out(effects);
    }

    /// Ends the pass over a Node that is not selected: all that is left to do is to settle its PATCH.
    /// `None` for all other Nodes, and while the cloud may have routed a block for it.
    pub(super) async fn leave_unselected(&self, node: &Node) -> Option<Ended> {
        if node.is_selected || self.claims().routed_block(&node.uid).is_some() {
            return None;
        }
        let effects = self.claims().end_unselected(&node.uid);
        self.core.carry_out(effects);
        if self.claims().open_until(&node.uid).is_none() {
            return Some(Ok(Next::Done));
        }
        Some(self.core.read_back(node, Instant::now()).await.next(Ok(Next::Done)))
    }

    /// Reads the ranges of a Node's VM, as of a read that is not older than `age` and than the Node's
    /// last change. An error is told where somebody has to hear of it.
    pub(super) async fn vm(&self, node: &CloudNode, age: Duration) -> Result<PodRanges, Ended> {
        let name = &node.node.name;
        let not_before = self.vm_read_times.not_before(name, age, Instant::now());
        let reading = self.cloud.ranges(&node.provider_id, not_before);
        let Some(read) = self.core.stop.run_until_cancelled(reading).await else {
            return Err(Ok(Next::Done));
        };
        // A VM that cannot be read holds up no other Node.
        if !matches!(read, Err(CloudError::Throttled { .. })) {
            let effects = self.claims().vm_was_read(&node.node.uid);
            self.core.carry_out(effects);
        }
        read.map_err(|error| Err(self.failed(&node.node, error, NOT_AVAILABLE)))
    }

    /// Reports an error of the cloud and decides when to try again: throttling makes no event, a final
    /// refusal or a missing right waits a minute.
    fn failed(&self, node: &Node, error: CloudError, reason: &'static str) -> Retry {
        match error {
            CloudError::Throttled { reason, pause } => Retry::throttled(reason, pause),
            CloudError::Absent(why) => {
                self.core.events.report(node, NOT_AVAILABLE, &why);
                Retry::expected(why)
            }
            CloudError::Refused(why) => {
                self.core.events.report(node, reason, &why);
                Retry::new(why).at_least(REFUSED_PAUSE)
            }
            CloudError::RangeRefused(why) => {
                self.core.events.report(node, reason, &why);
                let tries = self.core.queue.failures(&node.name);
                let may_change = node.pod_cidrs.is_empty() && tries < BLOCKS_IN_A_ROW;
                let pause = if may_change { Duration::ZERO } else { REFUSED_PAUSE };
                Retry::new(why).at_least(pause)
            }
            CloudError::Withdrawn => Retry::expected(CloudError::Withdrawn),
            CloudError::Failed(why) => Retry::new(why),
        }
    }

    /// Waits until no earlier PATCH of a Node can be applied (`rule:unknown-outcome-ends`); where the
    /// same is sent again, one read is enough. `Err` while that is unknown.
    pub(super) async fn settle(&self, node: &Node, is_same: bool) -> Result<(), Ended> {
        if self.claims().open_until(&node.uid).is_none() {
            return Ok(());
        }
        match self.core.read_back(node, Instant::now()).await {
            ReadBack::Empty(AfterRead::Send) => {}
            // The watch brings what it shows.
            other => return Err(other.next(Ok(Next::Done))),
        }
        match self.claims().open_until(&node.uid) {
            Some(until) if !is_same => {
                let retry = Retry::expected("an earlier PATCH may yet be applied");
                Err(Err(retry.at_least(until.saturating_duration_since(Instant::now()))))
            }
            _ => Ok(()),
        }
    }

    /// What is claimed for a Node and may be sent, with the time since when it has waited; a shortage is reported.
    pub(super) fn claimed(
        &self,
        node: &Node,
        (assignment, effects): (Assignment, Effects),
    ) -> Result<(Vec<IpNet>, Instant), Ended> {
        self.core.carry_out(effects);
        match assignment {
            Assignment::Send { cidrs, since, .. } => Ok((cidrs, since)),
            Assignment::Starved(shortage) => {
                self.core.events.report_shortage(node, &shortage);
                Err(Err(Retry::expected(shortage)))
            }
            Assignment::TooEarly | Assignment::Settled => {
                Err(Err(Retry::expected("cannot tell yet which Node has which pod CIDRs")))
            }
        }
    }

    /// Has the cloud route a range to the VM of a Node, which has what was read of it. Once that
    /// has begun it is awaited beyond the stop (`rule:begun-alias-is-finished`).
    pub(super) async fn route(
        &self,
        node: &CloudNode,
        range: IpNet,
        vm: &PodRanges,
    ) -> Result<(), Ended> {
        let (uid, left) = (&node.node.uid, AtomicBool::new(false));
        let is_wanted = || {
            let may = !self.core.stop.is_cancelled()
                && !self.core.nodes.is_doubted()
                && self.claims().begin_route(uid, &range, Instant::now());
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
                    self.claims().route_refused(uid);
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
            () = self.core.stop.cancelled() => {}
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

    /// Writes to a Node what the cloud names for it. `Ok` when it is there.
    pub(super) async fn write_named(&self, node: &Node, cidrs: &[IpNet]) -> Result<(), Ended> {
        self.core.check_hold()?;
        let is_same = self.claims().claim(&node.uid) == cidrs;
        self.settle(node, is_same).await?;
        let assigned = self.claims().assign_exact(&node.uid, cidrs);
        let (cidrs, since) = self.claimed(node, assigned)?;
        self.write(node, &cidrs, since).await
    }

    /// Writes what is claimed for a Node to it. `Ok` when it is there.
    pub(super) async fn write(
        &self,
        node: &Node,
        cidrs: &[IpNet],
        since: Instant,
    ) -> Result<(), Ended> {
        let written = self.core.write(&Work { node, cidrs, since }).await;
        self.sweep(node);
        written
    }

    /// Forgets what a pass has noted of a Node that was deleted meanwhile; no later pass would.
    fn sweep(&self, node: &Node) {
        if !self.claims().is_live(&node.uid) {
            self.vm_read_times.forget(&node.name);
        }
    }
}

/// Heartbeats by the thousand change nothing that counts.
fn is_no_news(old: &CloudNode, new: &CloudNode) -> bool {
    node_work::is_no_news(old, new)
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
