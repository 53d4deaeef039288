//! Registers node-ipam with the manager and runs it: cache, claims, workers, audit.

use std::sync::Arc;
use std::time::Duration;

use cidr::Pool;
use futures::future::BoxFuture;
use informer::{Delta, Informer, Subscription};
use manager::{Configured, Context, Controller, Failure, Permission, Runner, Stopped};
use model::Node;
use parking_lot::Mutex;
use pflag::{Problem, Spec, Values};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use workqueue::{Backoff, Jitter};

use crate::LOGGER;
use crate::allocator::Allocator;
use crate::api::NodeApi;
use crate::flags::FLAGS;
use crate::metrics::IpamMetrics;
use crate::options::{Judged, Options, judge};
use crate::predecessor;
use crate::reconciler::Reconciler;

/// Per Node, for ever (`rule:served-without-another-event`).
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(50), Duration::from_secs(30), Jitter::Around(0.5));
/// How often all claims are compared with the cache (`rule:claims-are-audited`).
const AUDIT: Duration = Duration::from_secs(600);

/// The first list is given up after this time, and tried from anew.
const FIRST_LIST: Duration = Duration::from_secs(600);

/// One handling of a Node, waits for the throttle included. The server may stop the client for 60 s.
const ITEM_LIMIT: Duration = Duration::from_secs(180);

/// Besides the time of a PATCH, for settling the last outcomes after a stop: one second in which a
/// PATCH travels to the server, and two for reads. With 5 s of the PATCH it fits into stock's default
/// for `--controller-shutdown-timeout`, 10 s.
const LAST_READS: Duration = Duration::from_secs(3);

/// The controller as the manager sees it.
pub struct NodeIpam;

impl Controller for NodeIpam {
    fn name(&self) -> &'static str {
        LOGGER
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["nodeipam"]
    }

    fn flags(&self) -> &'static [Spec] {
        FLAGS
    }

    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>> {
        Ok(match judge(values)? {
            Judged::Off => Configured::idle("--allocate-node-cidrs is false"),
            Judged::On { options, warnings } => {
                Configured::run(Allocation { options }).with_warnings(warnings)
            }
        })
    }
}

struct Allocation {
    options: Options,
}

impl Runner for Allocation {
    fn service_account(&self) -> &'static str {
        // Stock's own account; its ClusterRole exists in every cluster.
        "node-controller"
    }

    fn permissions(&self) -> &'static [Permission] {
        const NODES: [Permission; 2] =
            [Permission::new("get", "", "nodes"), Permission::new("patch", "", "nodes")];
        &NODES
    }

    fn event_component(&self) -> &'static str {
        "cidrAllocator"
    }

    fn may_have_predecessor(
        &self,
        client: kube::Client,
    ) -> BoxFuture<'static, Result<bool, Failure>> {
        Box::pin(predecessor::has_assigned(client))
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move { self.allocate(context).await })
    }
}

impl Allocation {
    async fn allocate(&self, context: Context) -> Result<Stopped, Failure> {
        let metrics = context.metrics(IpamMetrics::new)?;
        let allocator = Allocator::new(self.options.pools.clone(), &self.options.service_ranges);
        let allocator = Arc::new(Mutex::new(allocator));
        metrics.attach(&allocator);
        let nodes = context.informers.get::<Node>();
        let queue = context.queue("cidrallocator_node", BACKOFF);
        let reconciler = Arc::new(Reconciler {
            allocator: allocator.clone(),
            nodes: nodes.clone(),
            queue: queue.clone(),
            api: NodeApi::new(context.caller.clone(), context.settings.write_timeout),
            recorder: context.recorder.clone(),
            metrics,
            stop: context.stop.clone(),
        });
        let _watching = watch(&nodes, &reconciler);
        info!(pools = pools_in_words(&self.options.pools), "Cutting pod CIDRs out of these pools");
        if self.options.service_ranges.is_empty() {
            info!("No --service-cluster-ip-range is given: nothing is kept out of the pools");
        }
        // Every Node of the first list is a claim before a worker starts (`rule:list-before-allocate`).
        let auditor = reconciler.clone();
        let work = context
            .run(&queue, reconciler.clone())
            .workers(self.options.concurrency)
            .item_limit(self.item_limit(&context))
            .start_filled(&nodes)
            .start_within(FIRST_LIST)
            .audit(AUDIT, move || {
                audit(&nodes, &auditor);
                std::future::ready(())
            })
            .until_stopped();
        let ((), stopped) = tokio::try_join!(work, moment_of(context.stop))?;
        let deadline = stopped + context.settings.write_timeout + LAST_READS;
        Ok(Stopped { unknown_writes: reconciler.settle_outcomes(deadline).await })
    }

    /// Long enough for a worker to wait for its turn while all others hold a token of the throttle,
    /// or while the server's `Retry-After` stops the client.
    fn item_limit(&self, context: &Context) -> Duration {
        let (qps, _) = context.settings.work_rate;
        let workers = u32::try_from(self.options.concurrency).unwrap_or(u32::MAX);
        let turn = Duration::try_from_secs_f64(2.0 * f64::from(workers) / qps).unwrap_or_default();
        ITEM_LIMIT.max(turn)
    }
}

/// For the log: what the flags came to.
fn pools_in_words(pools: &[Pool]) -> String {
    let words = pools
        .iter()
        .map(|pool| format!("{} in {} blocks of /{}", pool.cidr(), pool.blocks(), pool.mask()));
    words.collect::<Vec<_>>().join(", ")
}

async fn moment_of(stop: CancellationToken) -> Result<Instant, Failure> {
    stop.cancelled().await;
    Ok(Instant::now())
}

/// Feeds the allocator from the watch, in the order of the watch. What the cluster says is taken in
/// here and not by the workers, so no worker acts on a claim that an event has already ended.
pub(crate) fn watch(nodes: &Informer<Node>, reconciler: &Arc<Reconciler>) -> Subscription<Node> {
    let reconciler = Arc::downgrade(reconciler);
    nodes.subscribe(move |delta| {
        let Some(reconciler) = reconciler.upgrade() else { return };
        let effects = match delta {
            Delta::Updated { old, new }
                if old.pod_cidrs == new.pod_cidrs && old.deleting == new.deleting =>
            {
                return;
            }
            Delta::Added(node) | Delta::Updated { new: node, .. } => {
                reconciler.allocator.lock().observe(node, Instant::now())
            }
            Delta::Deleted(node) => reconciler.allocator.lock().gone(&node.uid),
            Delta::ListStarts => {
                reconciler.allocator.lock().set_in_list(true);
                return;
            }
            Delta::ListEnds => {
                reconciler.allocator.lock().set_in_list(false);
                return;
            }
        };
        reconciler.carry_out(effects);
    })
}

/// Compares claims and cache (`rule:claims-are-audited`).
pub(crate) fn audit(nodes: &Informer<Node>, reconciler: &Reconciler) {
    let (mended, effects) = nodes.frozen(|store| {
        let live = store.values().map(AsRef::as_ref);
        reconciler.allocator.lock().audit(live, Instant::now())
    });
    if mended > 0 {
        error!(mended, "Claims differed from the cache and were mended; please report this");
    }
    reconciler.carry_out(effects);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_what_the_flags_came_to() {
        let pools = [("10.244.0.0/16", 24), ("fd00::/56", 64)]
            .map(|(cidr, mask)| Pool::new(cidr.parse().unwrap(), mask, 16).unwrap());
        assert_eq!(
            pools_in_words(&pools),
            "10.244.0.0/16 in 256 blocks of /24, fd00::/56 in 256 blocks of /64"
        );
    }
}
