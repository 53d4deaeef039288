//! Registers node-ipam with the manager and runs it: cache, claims, workers, audit.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use informer::{Delta, Informer};
use manager::{Context, Controller, Failure, Permission, Plan, Runner, Setup, Stopped};
use model::Node;
use parking_lot::Mutex;
use pflag::{Problem, Spec, Values};
use tokio::time::Instant;
use tracing::{error, info};
use workqueue::{Backoff, Jitter, WorkQueue, run_workers};

use crate::LOGGER;
use crate::allocator::Allocator;
use crate::api::NodeApi;
use crate::flags::FLAGS;
use crate::metrics::IpamMetrics;
use crate::options::{Judged, Options, judge};
use crate::predecessor;
use crate::reconciler::Reconciler;

/// Per Node, for ever (`node-ipam.md` 1.2).
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(50), Duration::from_secs(30), Jitter::Around(0.5));
/// How often all claims are compared with the cache (`node-ipam.md` 1.2).
const AUDIT: Duration = Duration::from_secs(600);

/// The first list is given up after this time, and tried from anew (`node-ipam.md` 1.1 step 7).
const FIRST_LIST: Duration = Duration::from_secs(600);

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

    fn configure(&self, values: &Values) -> Result<Setup, Vec<Problem>> {
        Ok(match judge(values)? {
            Judged::Off => Setup {
                warnings: Vec::new(),
                plan: Plan::Idle { reason: "--allocate-node-cidrs is false".into() },
            },
            Judged::On { options, warnings } => Setup {
                warnings,
                plan: Plan::Run(Arc::new(Allocation { options, metrics: OnceLock::new() })),
            },
        })
    }
}

struct Allocation {
    options: Options,
    /// Registered by the first run and kept by a restarted one.
    metrics: OnceLock<IpamMetrics>,
}

impl Runner for Allocation {
    fn service_account(&self) -> &'static str {
        // Stock's own account; its ClusterRole exists in every cluster (host.md 4.4).
        "node-controller"
    }

    fn permissions(&self) -> &'static [Permission] {
        const NODES: [Permission; 2] = [
            Permission { verb: "get", group: "", resource: "nodes" },
            Permission { verb: "patch", group: "", resource: "nodes" },
        ];
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
        let metrics = self.metrics(&context)?;
        let allocator = Allocator::new(self.options.pools.clone(), &self.options.service_ranges);
        let allocator = Arc::new(Mutex::new(allocator));
        metrics.attach(&allocator);
        let nodes = context.informers.get::<Node>();
        let queue = WorkQueue::new("cidrallocator_node", BACKOFF, &context.queue_metrics);
        let reconciler = Arc::new(Reconciler {
            allocator: allocator.clone(),
            nodes: nodes.clone(),
            queue: queue.clone(),
            api: NodeApi::new(context.client.clone(), context.patch_timeout),
            recorder: context.recorder.clone(),
            metrics,
            stop: context.stop.clone(),
            last_warning: Mutex::new(None),
        });
        watch(&nodes, &reconciler);
        tokio::select! {
            synced = tokio::time::timeout(FIRST_LIST, nodes.synced()) => {
                synced.map_err(|_| Failure::new("the first list of Nodes did not come in 10 minutes"))?;
            }
            () = context.stop.cancelled() => return Ok(Stopped::default()),
        }
        if self.options.service_ranges.is_empty() {
            info!(
                logger = LOGGER,
                "No --service-cluster-ip-range is given: nothing is kept out of the pools"
            );
        }
        // Every Node of the first list is a claim by now (R7), so allocation may begin.
        info!(logger = LOGGER, nodes = nodes.len(), "Controller starting...");
        let workers = run_workers(
            queue.clone(),
            self.options.concurrency,
            reconciler.clone(),
            context.panics,
        );
        tokio::pin!(workers);
        let ended = tokio::select! {
            ended = &mut workers => ended,
            () = audit(&nodes, &reconciler) => Ok(()),
            () = context.stop.cancelled() => {
                queue.shut_down();
                workers.await
            }
        };
        ended.map_err(|error| Failure::new(error.to_string()))?;
        info!(logger = LOGGER, "Controller terminated");
        Ok(Stopped { unknown_writes: allocator.lock().snapshot().unresolved })
    }

    fn metrics(&self, context: &Context) -> Result<IpamMetrics, Failure> {
        if let Some(metrics) = self.metrics.get() {
            return Ok(metrics.clone());
        }
        let metrics = IpamMetrics::new(&context.registry)
            .map_err(|error| Failure::new(format!("cannot register metrics: {error}")))?;
        Ok(self.metrics.get_or_init(|| metrics).clone())
    }
}

/// Feeds the allocator from the watch, in the order of the watch. What the cluster says is taken in
/// here and not by the workers, so no worker acts on a claim that an event has already ended (D10).
pub(crate) fn watch(nodes: &Informer<Node>, reconciler: &Arc<Reconciler>) {
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
    });
}

/// Compares claims and cache every [`AUDIT`]; never ends.
async fn audit(nodes: &Informer<Node>, reconciler: &Reconciler) {
    loop {
        tokio::time::sleep(AUDIT).await;
        let (mended, effects) = nodes.frozen(|store| {
            let live = store.values().map(AsRef::as_ref);
            reconciler.allocator.lock().audit(live, Instant::now())
        });
        if mended > 0 {
            error!(
                logger = LOGGER,
                mended, "Claims differed from the cache and were mended; please report this"
            );
        }
        reconciler.carry_out(effects);
    }
}
