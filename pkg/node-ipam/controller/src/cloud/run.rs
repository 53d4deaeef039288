//! One run of the CloudAllocator, of IPAMFromCluster or of IPAMFromCloud.
//!
//! Metrics of Nodes whose pod CIDRs a cloud knows of: those
//! of the other allocators, and that none is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gce::Client;
use informer::Subscription;
use kube_api::CloudNode;
use manager::{Context, Failure, Stopped};
use parking_lot::Mutex;
use prometheus::{IntCounterVec, Opts, Registry};
use tracing::{error, info};
use workqueue::{Backoff, Reconcile};

use super::claims::Claims;
use super::cloud_nodes::{CloudNodes, VmReadTimes};
use super::copying::Copier;
use super::node_events::NodeEvents;
use super::provider::{Cloud, GoogleCloud};
use super::syncer::{Syncer, TIMER};
use super::writes::NodeWrites;
use super::{copying, syncer};
use crate::LOGGER;
use crate::api::NodeApi;
use crate::metrics::{PoolsOf, StateMetrics, WriteMetrics};
use crate::options::{Direction, Families, Mode};
use crate::second_allocator::Hold;
use crate::second_allocator::deadline_of_outcomes;
use crate::second_allocator::{Detector, OnSecondAllocator};

/// How often all claims are compared with the cache.
const AUDIT: Duration = Duration::from_secs(600);
/// The first list is given up after this time, and started again.
const FIRST_LIST: Duration = Duration::from_secs(600);
/// One pass over a Node: an operation of the cloud takes up to two minutes, and calls wait for each
/// other.
const ITEM_LIMIT: Duration = Duration::from_secs(300);

/// Options that the allocators of all sources have in common.
#[derive(Clone, Debug)]
pub(crate) struct RunOptions {
    /// Most Nodes that are worked on at once.
    pub(crate) concurrency: usize,
    /// How long the blocks of a deleted Node stay unused.
    pub(crate) reuse_delay: Duration,
    /// The reaction to a second allocator.
    pub(crate) on_second_allocator: OnSecondAllocator,
    /// The hold of all runs of this process.
    pub(crate) hold: Hold,
}

/// Runs until it is asked to stop.
///
/// # Errors
/// What ends a run.
pub(crate) async fn run(
    context: &Context,
    google: &gce::Config,
    mode: &Mode,
    options: &RunOptions,
) -> Result<Stopped, Failure> {
    let calls = context.metrics(gce::Metrics::new)?;
    let env = |name: &str| std::env::var(name).ok();
    let dry_run = context.settings.dry_run;
    let client = Client::new(google.clone(), calls, context.fence.clone(), dry_run, &env);
    let cloud = GoogleCloud::new(client.map_err(Failure::new)?);
    match mode {
        Mode::Copy(families) => copy(context, cloud, families, options).await,
        Mode::Sync { direction, pool, reserved } => {
            let claims = Claims::new(Some(pool.clone()), reserved);
            let claims = claims.resting_for(options.reuse_delay);
            sync(context, cloud, *direction, claims, options).await
        }
    }
}

async fn copy<C: Cloud>(
    context: &Context,
    cloud: C,
    families: &Families,
    options: &RunOptions,
) -> Result<Stopped, Failure> {
    let queue = "cloudCIDRAllocator";
    let all = nodes(context, cloud, queue, copying::BACKOFF, Claims::new(None, &[]), options)?;
    let watching = all.watch(copying::wants, |_, _| {});
    info!(logger = LOGGER, "Copying pod CIDRs from the VMs of Nodes");
    let copier = Copier { all: Arc::clone(&all), families: families.clone() };
    work(context, &all, copier, watching, options).await
}

async fn sync<C: Cloud>(
    context: &Context,
    cloud: C,
    direction: Direction,
    claims: Claims,
    options: &RunOptions,
) -> Result<Stopped, Failure> {
    let all = nodes(context, cloud, "ipam_node", TIMER.backoff(), claims, options)?;
    let spread = Arc::<Mutex<_>>::default();
    let syncer = Syncer { all: Arc::clone(&all), direction, spread: Arc::clone(&spread) };
    let gone = move |all: &CloudNodes<C>, node: &kube_api::Node| {
        spread.lock().remove(&node.uid);
        syncer::ended(all, node);
    };
    let watching = all.watch(|_| true, gone);
    info!(
        logger = LOGGER,
        mode = direction.name(),
        "Keeping pod CIDRs of Nodes and alias ranges of their VMs equal"
    );
    work(context, &all, syncer, watching, options).await
}

fn nodes<C: Cloud>(
    context: &Context,
    cloud: C,
    queue: &str,
    backoff: Backoff,
    claims: Claims,
    options: &RunOptions,
) -> Result<Arc<CloudNodes<C>>, Failure> {
    let metrics = context.metrics(|registry| CloudMetrics::new(registry, queue))?;
    let claims = Arc::new(Mutex::new(claims));
    metrics.state.attach(&claims);
    let api = NodeApi::new(context.caller.clone(), context.settings.write_timeout);
    let (recorder, found) = (context.recorder.clone(), metrics.writes.second_allocators.clone());
    let detector = Detector::new(api.clone(), recorder, found, options.hold.clone());
    let detector = Arc::new(detector);
    let writes = NodeWrites {
        api,
        metrics: metrics.writes,
        detector: Arc::clone(&detector),
        stop: context.stop.clone(),
        open: Mutex::default(),
    };
    Ok(Arc::new(CloudNodes {
        nodes: context.informers.get::<CloudNode>(),
        queue: context.queue(queue, backoff),
        cloud,
        claims,
        writes,
        detector,
        node_events: NodeEvents::new(context.recorder.clone()),
        vm_read_times: VmReadTimes::default(),
        stop: context.stop.clone(),
        cut_off: AtomicUsize::new(0),
    }))
}

/// Works on the Nodes until the stop, once all of them are known (`rule:list-before-allocate`).
async fn work<C: Cloud, R: Reconcile<Key = Arc<str>>>(
    context: &Context,
    all: &Arc<CloudNodes<C>>,
    reconcile: R,
    watching: Subscription<CloudNode>,
    options: &RunOptions,
) -> Result<Stopped, Failure> {
    let auditor = Arc::clone(all);
    let work = context
        .run(&all.queue, Arc::new(reconcile))
        .workers(options.concurrency)
        .item_limit(ITEM_LIMIT)
        .start_filled(&all.nodes)
        .start_within(FIRST_LIST)
        .audit(AUDIT, move || {
            audit(&auditor);
            std::future::ready(())
        })
        .until_stopped();
    let looking = async {
        all.detector.watch(options.on_second_allocator, &context.stop).await;
        Ok(())
    };
    let ((), (), deadline) = tokio::try_join!(work, looking, deadline_of_outcomes(context))?;
    drop(watching);
    let cut_off = all.cut_off.load(Ordering::Relaxed);
    Ok(Stopped { unknown_writes: cut_off + all.writes.settle_all(deadline).await })
}

/// Compares claims and cache (`rule:no-block-is-lost`).
fn audit<C: Cloud>(all: &CloudNodes<C>) {
    let mended = all.nodes.frozen(|store| {
        let live = store.values().map(|node| &node.node);
        all.claims.lock().audit(live)
    });
    if mended > 0 {
        error!(mended, "Claims differed from the cache and were mended; please report this");
    }
}

/// Registered once per process. Clones are the same.
#[derive(Clone)]
pub(super) struct CloudMetrics {
    pub(super) state: StateMetrics,
    pub(super) writes: WriteMetrics,
}

impl CloudMetrics {
    /// Registers everything; `queue` is the name of the work queue.
    pub(super) fn new(registry: &Registry, queue: &str) -> Result<Self, prometheus::Error> {
        let dropped = IntCounterVec::new(
            Opts::new(
                "workqueue_dropped_objects",
                "Nodes that were given up after too many attempts, which never happens here.",
            ),
            &["name"],
        )?;
        dropped.with_label_values(&[queue]);
        registry.register(Box::new(dropped))?;
        let state = StateMetrics::new(registry, PoolsOf::Flags)?;
        Ok(Self { state, writes: WriteMetrics::new(registry)? })
    }
}
