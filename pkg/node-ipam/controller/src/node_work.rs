//! The work on Nodes, which is the same wherever their pools come from: the claims follow the
//! cache, workers send PATCHes, and a stop settles what was sent.

use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use kube_api::StaticKind;
use manager::{Context, Failure, Informers, Stopped};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tracing::error;
use workqueue::{Backoff, Jitter, Reconcile, WorkQueue};

use crate::allocator::Allocator;
use crate::api::NodeApi;
use crate::metrics::IpamMetrics;
use crate::node_events::NodeEvents;
use crate::options::Options;
use crate::pool_events;
use crate::pool_publisher::PoolPublisher;
use crate::pool_record::CONFIG_MAPS;
use crate::reconciler::{Backlog, CachedNode, Reconciler};
use crate::second_allocator::Detector;
use crate::writer::LastAccepted;

/// The pauses between attempts for one Node, without end.
pub(crate) const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(50), Duration::from_secs(30), Jitter::Around(0.5));
/// How often all claims are compared with the cache (`rule:no-block-is-lost`).
const AUDIT: Duration = Duration::from_secs(600);

/// The first list is given up after this time, and started again.
const FIRST_LIST: Duration = Duration::from_secs(600);

/// One handling of a Node, waits for the throttle included. The server may stop the client for 60
/// s.
const ITEM_LIMIT: Duration = Duration::from_secs(180);

/// The cache of all Nodes, each marked by `--node-selector`. The server selects none: the CIDRs of
/// all Nodes are claims.
pub(crate) fn nodes_of<N: StaticKind>(informers: &Informers, options: &Options) -> Informer<N> {
    let mut source = informers.source(N::KIND);
    source.selector.clone_from(&options.node_selector);
    informers.get_from(source)
}

/// Makes the reconciler of one run, with a queue of this name and these pauses between attempts.
pub(crate) fn reconciler<N: CachedNode>(
    context: &Context,
    (queue, backoff): (&str, Backoff),
    nodes: &Informer<N>,
    allocator: &Arc<Mutex<Allocator>>,
    metrics: IpamMetrics,
    cluster_cidrs: Option<WorkQueue<Arc<str>>>,
) -> Arc<Reconciler<N>> {
    let api = NodeApi::new(context.caller.clone(), context.settings.write_timeout);
    let (recorder, hold) = (context.recorder.clone(), allocator.lock().hold().clone());
    metrics.attach(allocator);
    let found = metrics.second_allocators.clone();
    let detector = Detector::new(api.clone(), recorder.clone(), found, hold);
    Arc::new(Reconciler {
        allocator: Arc::clone(allocator),
        nodes: nodes.clone(),
        queue: context.queue(queue, backoff),
        backlog: Backlog::default(),
        cluster_cidrs,
        detector: Arc::new(detector),
        api,
        events: NodeEvents::new(recorder, Arc::clone(allocator)),
        metrics,
        accepted: LastAccepted::default(),
        dry_run: context.settings.dry_run,
        stop: context.stop.clone(),
    })
}

/// Works on Nodes until the stop by `pass`, once all of them are known and `begin` is over. A Node
/// takes no longer than `limit` at a time.
///
/// # Errors
/// What ends a run.
pub(crate) async fn work<N: CachedNode, R: Reconcile<Key = Arc<str>>>(
    context: &Context,
    reconciler: &Arc<Reconciler<N>>,
    (pass, limit): (Arc<R>, Duration),
    options: &Options,
    begin: impl Future<Output = ()> + Send + 'static,
) -> Result<Stopped, Failure> {
    let (nodes, auditor) = (reconciler.nodes.clone(), Arc::clone(reconciler));
    let detector = Arc::clone(&reconciler.detector);
    let Options { concurrency, on_second_allocator, .. } = *options;
    // A cache that was filled before it was subscribed to brings no list.
    let (cache, allocator) = (nodes.clone(), Arc::clone(&reconciler.allocator));
    let begin = async move {
        begin.await;
        cache.synced_or_dormant().await;
        allocator.lock().start();
    };
    // Every Node of the first list is a claim before a worker starts (`rule:list-before-allocate`).
    let work = context
        .run(&reconciler.queue, pass)
        .workers(concurrency)
        .item_limit(limit)
        .start_filled(&nodes)
        .start_after(begin)
        .start_within(FIRST_LIST)
        .audit(AUDIT, move || {
            audit(&nodes, &auditor);
            std::future::ready(())
        })
        .until_stopped();
    let resting = end_rests(reconciler);
    let watching = async {
        // During a dry run another allocator has to do the work.
        if !context.settings.dry_run {
            detector.watch(on_second_allocator, &context.stop).await;
        }
        Ok(())
    };
    let allocator = &reconciler.allocator;
    let lease = &context.settings.lease;
    let pools = pool_events::report(allocator, &context.recorder, lease, &context.stop);
    let publishing = publish(context, allocator, options);
    let stop = async {
        context.stop.cancelled().await;
        Ok(Instant::now() + context.settings.write_timeout + LAST_READS)
    };
    let ((), (), (), (), (), deadline) =
        tokio::try_join!(work, resting, watching, pools, publishing, stop)?;
    Ok(Stopped { unknown_writes: reconciler.settle_outcomes(deadline).await })
}

/// Publishes the pools until the stop, through a client of its own: thousands of PATCHes may wait for
/// the throttle of the Nodes.
async fn publish(
    context: &Context,
    allocator: &Mutex<Allocator>,
    options: &Options,
) -> Result<(), Failure> {
    // A dry run stores nothing, and the leader has a record.
    if context.settings.dry_run || !options.publish_pools {
        return Ok(());
    }
    let client = context.clients.for_purpose("node-ipam-records", (-1.0, 1))?;
    let objects = context.objects_of(client, CONFIG_MAPS);
    let namespace = &context.settings.lease.namespace;
    let publisher = PoolPublisher::new(objects, namespace, Arc::clone(&context.identity));
    publisher.publish(allocator, &context.stop).await
}

/// Long enough for a worker to wait for its turn while all others hold a token of the throttle,
/// or while the server's `Retry-After` stops the client.
pub(crate) fn item_limit(context: &Context, options: &Options) -> Duration {
    let (qps, _) = context.settings.work_rate;
    let workers = u32::try_from(options.concurrency).unwrap_or(u32::MAX);
    let turn = Duration::try_from_secs_f64(2.0 * f64::from(workers) / qps).unwrap_or_default();
    ITEM_LIMIT.max(turn)
}

/// Besides the time of a PATCH, for settling the last outcomes after a stop: one second in which a
/// PATCH travels to the server, and two for reads. With 5 s of the PATCH it fits into stock's
/// default for `--controller-shutdown-timeout`, 10 s.
const LAST_READS: Duration = Duration::from_secs(3);

/// Frees the blocks that were set aside when their time is over, until the stop.
pub(crate) async fn end_rests<N: CachedNode>(reconciler: &Reconciler<N>) -> Result<(), Failure> {
    let ending = async {
        loop {
            let next = reconciler.allocator.lock().next_rested(Instant::now());
            let Some(next) = next else { return };
            sleep_until(next).await;
            let effects = reconciler.allocator.lock().end_rests(Instant::now());
            reconciler.carry_out(effects);
        }
    };
    reconciler.stop.run_until_cancelled(ending).await;
    Ok(())
}

/// Feeds the allocator from the watch, in the order of the watch. What the cluster says is taken in
/// here and not by the workers, so no worker acts on a claim that an event has already ended.
pub(crate) fn watch<N: CachedNode>(
    nodes: &Informer<N>,
    reconciler: &Arc<Reconciler<N>>,
) -> Subscription<N> {
    let reconciler = Arc::downgrade(reconciler);
    nodes.subscribe(move |delta| {
        let Some(reconciler) = reconciler.upgrade() else { return };
        let effects = match delta {
            Delta::Updated { old, new } if is_no_news(&**old, &**new) => return,
            Delta::Added(node) | Delta::Updated { new: node, .. } => {
                reconciler.allocator.lock().observe(&**node, Instant::now())
            }
            Delta::Deleted(node) => {
                let node = node.as_ref().as_ref();
                reconciler.allocator.lock().gone(&node.uid, Instant::now())
            }
            Delta::ListStarts => {
                reconciler.allocator.lock().set_in_list(true);
                return;
            }
            Delta::ListEnds => {
                let mut allocator = reconciler.allocator.lock();
                allocator.set_in_list(false);
                reconciler.backlog.add(allocator.take_listed());
                drop(allocator);
                reconciler.backlog.feed(&reconciler.queue);
                return;
            }
        };
        reconciler.carry_out(effects);
    })
}

/// Whether an update shows nothing that claims or selection depend on.
pub(crate) fn is_no_news<N: CachedNode>(old: &N, new: &N) -> bool {
    let (before, after) = (old.as_ref(), new.as_ref());
    before.pod_cidrs == after.pod_cidrs
        && before.deleting == after.deleting
        && before.is_selected == after.is_selected
        && old.marks() == new.marks()
}

/// Compares claims and cache (`rule:no-block-is-lost`).
pub(crate) fn audit<N: CachedNode>(nodes: &Informer<N>, reconciler: &Reconciler<N>) {
    let (mended, effects) = nodes.frozen(|store| {
        let mut live: Vec<&N> = store.values().map(AsRef::as_ref).collect();
        live.sort_unstable_by(|one, other| one.as_ref().name.cmp(&other.as_ref().name));
        reconciler.allocator.lock().audit(live.into_iter(), Instant::now())
    });
    if mended > 0 {
        error!(
            corrected = mended,
            "The claims of Nodes differed from their pod CIDRs and were corrected; this is a defect, please report it"
        );
    }
    reconciler.carry_out(effects);
}
