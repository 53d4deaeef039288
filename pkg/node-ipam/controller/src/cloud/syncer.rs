//! [`Syncer`]: the pass of IPAMFromCluster and IPAMFromCloud over one Node.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cidr::IpNet;
use gce::PodRanges;
use kube_api::{CloudNode, Node};
use parking_lot::Mutex;
use resilience::draw;
use tokio::time::Instant;
use tracing::warn;
use workqueue::{Backoff, Jitter, Next, Reconcile, Retry};

use super::cloud_nodes::CloudNodes;
use super::copying::difference;
use super::provider::Cloud;
use crate::LOGGER;
use crate::node_events::{GARBAGE, MISMATCH, WRONG_MODE};
use crate::options::Direction;
use crate::reconciler::Ended;

/// Upstream's words.
const MESSAGE: &str = "NodeController created an implicit route";
/// When a Node is checked again after a success.
const RESYNC: Duration = Duration::from_secs(30);
/// The pauses after failures in a row.
pub(super) const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(250), Duration::from_secs(10), Jitter::None);
/// After a failure a younger read is wanted.
const YOUNG: Duration = Duration::from_secs(5);

/// Syncs.
pub(super) struct Syncer<C: Cloud> {
    pub(super) all: Arc<CloudNodes<C>>,
    pub(super) direction: Direction,
    /// UIDs of the Nodes that had their first resync.
    pub(super) spread: Arc<Mutex<HashSet<Arc<str>>>>,
}

impl<C: Cloud> Reconcile for Syncer<C> {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let Some(node) = self.all.core.nodes.get(name) else { return Ok(Next::Done) };
        if node.node.deleting {
            return Ok(Next::Done);
        }
        if let Some(ended) = self.all.leave_unselected(&node.node).await {
            return ended;
        }
        if node.provider_id.is_empty() {
            return Err(Retry::expected("the Node has no spec.providerID"));
        }
        match self.sync(&node).await {
            Ok(()) => Ok(Next::After(self.resync(&node.node.uid))),
            Err(ended) => ended,
        }
    }
}

impl<C: Cloud> Syncer<C> {
    async fn sync(&self, node: &CloudNode) -> Result<(), Ended> {
        let has_failed = self.all.core.queue.failures(&node.node.name) > 0;
        let vm = self.all.vm(node, if has_failed { YOUNG } else { RESYNC }).await?;
        if vm.aliases.len() > 1 {
            warn!(logger = LOGGER, node = %node.node.name,
                "The VM has several alias ranges; only the first is used");
        }
        let (has, ours) = {
            let claims = self.all.claims();
            (claims.pod_cidrs(&node.node), claims.routed_block(&node.node.uid))
        };
        if self.direction == Direction::FromCluster {
            let effects = self.all.claims().keep_aliases(&node.node.uid, &vm.aliases);
            self.all.core.carry_out(effects);
        }
        match decide(self.direction, has.first().map(String::as_str), vm.first(), ours) {
            Step::Settled => self.all.make_ready(node, MESSAGE).await,
            Step::Mismatch => {
                self.all.core.events.report(&node.node, MISMATCH, &difference(&has, &vm));
                Ok(())
            }
            Step::WrongMode(why) => {
                let mut why = format!("With {}, {why}", self.direction.name());
                if let Some(alias) = vm.first().filter(|_| has.is_empty()) {
                    let hint = if self.all.claims().is_block(&alias) {
                        "take it off the VM, or make it the pod CIDR of the Node"
                    } else {
                        "it is no block of --cluster-cidr: take it off the VM"
                    };
                    why = format!("{why}: the range is {}; {hint}", cidr::canonical(&alias));
                }
                self.all.core.events.report(&node.node, WRONG_MODE, &why);
                Err(Err(Retry::expected(why)))
            }
            Step::Allocate => self.allocate(node, &vm, ours).await,
            Step::TakeOver(alias) => {
                self.all.write_named(&node.node, &[alias]).await?;
                self.all.make_ready(node, MESSAGE).await
            }
            Step::Route(cidr) => {
                self.all.route(node, cidr, &vm).await?;
                self.all.make_ready(node, MESSAGE).await
            }
        }
    }

    /// The cloud routes the block before the Node has it: a Node that starts pods without a route
    /// loses their packets.
    async fn allocate(
        &self,
        node: &CloudNode,
        vm: &PodRanges,
        ours: Option<IpNet>,
    ) -> Result<(), Ended> {
        if ours.is_none() || vm.first() != ours {
            self.all.core.check_hold()?;
        }
        let uid = &node.node.uid;
        let is_absent = ours.is_some_and(|ours| !vm.aliases.contains(&ours));
        let is_changed = is_absent && self.all.claims().is_route_refused(uid);
        // No PATCH of a refused block may be applied once the Node has another one.
        self.all.settle(&node.node, !is_changed).await?;
        if is_changed {
            let effects = self.all.claims().change_block(uid, Instant::now());
            self.all.core.carry_out(effects);
        }
        let assigned = self.all.claims().assign(uid);
        let (cidrs, since) = self.all.claimed(&node.node, assigned)?;
        // The pool gives one block.
        let block = cidrs.first().copied();
        if let Some(block) = block.filter(|_| vm.first() != block) {
            self.all.route(node, block, vm).await?;
        }
        self.all.write(&node.node, &cidrs, since).await?;
        self.all.make_ready(node, MESSAGE).await
    }

    /// The first resyncs are spread, so that all Nodes of the start do not come back at once.
    fn resync(&self, uid: &Arc<str>) -> Duration {
        let mut spread = self.spread.lock();
        // A Node that went during its pass was taken out already.
        if self.all.claims().is_live(uid) && spread.insert(Arc::clone(uid)) {
            RESYNC.mul_f64(draw())
        } else {
            RESYNC
        }
    }
}

/// A Node is gone: its claim is freed already, and what could not be read is told.
pub(super) fn ended<C: Cloud>(all: &CloudNodes<C>, node: &Node) {
    if let Some(garbage) = node.pod_cidrs.iter().find(|text| cidr::parse(text).is_err()) {
        all.core.events.record(node, GARBAGE, &format!("its pod CIDR was {garbage:?}"));
    }
}

/// The work to do for a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A block is allocated, routed by the cloud, and written to the Node.
    Allocate,
    /// This alias becomes the Node's pod CIDR.
    TakeOver(IpNet),
    /// This pod CIDR is routed by the cloud.
    Route(IpNet),
    /// Node and VM are equal: only the condition may be wrong.
    Settled,
    /// This mode does not go that way: told, an error, tried again.
    WrongMode(&'static str),
    /// Node and VM differ: an event and no error, because only the operator can repair it.
    Mismatch,
}

/// Decides; `has` is the pod CIDR of the Node as it is written there, `alias` the first range of
/// its VM, `ours` what this process has reserved for the Node.
pub(super) fn decide(
    direction: Direction,
    has: Option<&str>,
    alias: Option<IpNet>,
    ours: Option<IpNet>,
) -> Step {
    match (has, alias, direction) {
        (None, None, Direction::FromCluster) => Step::Allocate,
        // It was routed by us, and not yet written to the Node (`rule:reserved-block-is-kept`).
        (None, Some(alias), Direction::FromCluster) if Some(alias) == ours => Step::Allocate,
        (None, Some(_), Direction::FromCluster) => {
            Step::WrongMode("a VM must have no alias range before its Node has a pod CIDR")
        }
        (None, None, Direction::FromCloud) => {
            Step::WrongMode("a VM must have an alias range, which its Node gets; it has none")
        }
        (None, Some(alias), Direction::FromCloud) => Step::TakeOver(alias),
        (Some(has), None, Direction::FromCluster) => match cidr::parse(has) {
            Ok(has) => Step::Route(has),
            Err(_) => Step::Mismatch,
        },
        (Some(_), None, Direction::FromCloud) => {
            Step::WrongMode("a VM must have the pod CIDR of its Node as alias range; it has none")
        }
        (Some(has), Some(alias), _) if cidr::parse(has).is_ok_and(|has| has == alias) => {
            Step::Settled
        }
        (Some(_), Some(_), _) => Step::Mismatch,
    }
}

#[cfg(test)]
mod tests;
