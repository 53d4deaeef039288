//! [`Copier`]: the CloudAllocator's pass over one Node: what the cloud has given its VM becomes its
//! pod CIDRs.

use std::sync::Arc;
use std::time::Duration;

use kube_api::CloudNode;
use workqueue::{Backoff, Jitter, Next, Reconcile, Retry};

use super::cloud_nodes::{CloudNodes, Ended, MISMATCH, NOT_AVAILABLE};
use super::copying::{Decision, decide};
use super::families::Families;
use super::provider::{Cloud, VmRanges};
use super::writes::Leaves;

/// Upstream's words.
const MESSAGE: &str = "NodeController create implicit route";
/// A Node that differs from its VM is looked at again this often.
const RECHECK: Duration = Duration::from_secs(60);
/// A look again at a VM that had nothing needs a read as young as this.
const YOUNG: Duration = Duration::from_secs(5);

/// Of one Node, for ever.
pub(super) const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(250), Duration::from_secs(15), Jitter::Around(0.5));
/// After so many failures in a row a Node is tried once in a minute.
const MANY_FAILURES: u32 = 20;
const SELDOM: Duration = Duration::from_secs(60);

/// Copies.
pub(super) struct Copier<C: Cloud> {
    pub(super) all: Arc<CloudNodes<C>>,
    pub(super) families: Families,
}

/// Whether a Node that changed is worked on: it has no pod CIDRs, or its network is not said to be
/// ready.
pub(super) fn wants(node: &CloudNode) -> bool {
    node.node.pod_cidrs.is_empty() || !node.network_is_ready || node.network_taint
}

impl<C: Cloud> Reconcile for Copier<C> {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let Some(node) = self.all.nodes.get(name) else { return Ok(Next::Done) };
        // Without its VM nothing can be done; the update that names it brings the Node back.
        if node.node.deleting || node.provider_id.is_empty() {
            return Ok(Next::Done);
        }
        match self.copy(&node).await {
            Ok(next) | Err(Ok(next)) => Ok(next),
            Err(Err(retry)) => Err(self.paced(name, retry)),
        }
    }
}

impl<C: Cloud> Copier<C> {
    async fn copy(&self, node: &CloudNode) -> Result<Next, Ended> {
        // What we have written was read of the VM just then.
        let is_ours = self.all.claims.lock().shows_ours(&node.node);
        let vm = self.all.vm(node, if is_ours { RECHECK } else { YOUNG }).await?;
        let has = self.all.claims.lock().pod_cidrs(&node.node);
        match decide(&has, &vm, &self.families) {
            Decision::NotAvailable => {
                let why = "its VM has no alias range and no IPv6 range";
                self.all.teller.tell(&node.node, NOT_AVAILABLE, why);
                Err(Err(Retry::expected(why)))
            }
            Decision::Lacking(lack) => Err(Err(Retry::expected(lack))),
            Decision::Mismatch => {
                self.all.teller.tell(&node.node, MISMATCH, &difference(&has, &vm));
                Ok(Next::After(RECHECK))
            }
            Decision::Settled => {
                self.all.make_ready(node, MESSAGE).await?;
                Ok(Next::Done)
            }
            Decision::Assign(cidrs) => {
                self.all.check_hold()?;
                self.all.settle(&node.node, &cidrs).await?;
                let taken = self.all.claims.lock().take(&node.node, &cidrs);
                taken.map_err(|refusal| Err(self.all.refused(&node.node, refusal)))?;
                self.all.write_cidrs(&node.node, &cidrs, Leaves::UntilTheStop).await?;
                self.all.make_ready(node, MESSAGE).await?;
                Ok(Next::Done)
            }
        }
    }

    /// What fails for long is tried seldom, and for ever.
    fn paced(&self, name: &Arc<str>, retry: Retry) -> Retry {
        if self.all.queue.failures(name) < MANY_FAILURES {
            return retry;
        }
        let pause = retry.pause().max(SELDOM);
        retry.at_least(pause)
    }
}

/// For people: what the Node has, and its VM.
pub(super) fn difference(has: &[String], vm: &VmRanges) -> String {
    let ranges: Vec<_> = vm.aliases.iter().chain(&vm.ipv6).map(cidr::canonical).collect();
    format!(
        "the Node has {}, and its VM {}; pod CIDRs cannot be changed: give the VM what the Node has, \
         or re-create the Node",
        has.join(", "),
        ranges.join(", ")
    )
}
