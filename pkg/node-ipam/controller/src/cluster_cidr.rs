//! ClusterCIDRs: objects that map Nodes to the ranges of their pod CIDRs
//! (`--cidr-allocator-type=MultiCIDRRangeAllocator`).
//!
//! Without I/O: `spec` holds the fields of the kind, `selector` decides which Nodes an object
//! selects, `plan` makes pools of a spec or says what is wrong with it, orders objects, and builds
//! the object for the flags. With I/O: `reconciler` works on one object; this file runs the
//! MultiCIDRRangeAllocator: its caches, its queues, the object of the flags.

pub(crate) mod plan;
mod reconciler;
pub(crate) mod selector;
mod spec;

use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use kube_api::{Kind, LabelledNode};
use manager::{Context, Failure, Stopped};
use objects::{Created, Draft, Object, ObjectClient};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use workqueue::{Backoff, Jitter, WorkQueue};

use crate::allocator::{Allocator, Effects, SeenClusterCidr, ServingState};
use crate::metrics::{IpamMetrics, PoolsOf};
use crate::options::{ClusterCidrOptions, Options};
use crate::reconciler::CachedNode;
use crate::reconciler::Reconciler;
use crate::{LOGGER, node_work};
use plan::Rules;
use reconciler::{ClusterCidrReconciler, STATUS_EVERY};
use spec::{CLUSTER_CIDRS, ClusterCidrBody};

pub(crate) use plan::Plan;
pub(crate) use spec::{ClusterCidr, ClusterCidrSpec, DRAIN, FINALIZER, object_ref};

/// Backoff of one ClusterCIDR, without an end.
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(100), Duration::from_secs(30), Jitter::Around(0.3));
/// ClusterCIDRs worked on at once.
const WORKERS: usize = 4;
/// Between two attempts to make the object of the flags.
const MAKE_AGAIN: Duration = Duration::from_secs(5);
/// How long Nodes wait at the start for ClusterCIDRs that are not in use yet.
const SETTLING: Duration = Duration::from_secs(10);

/// Runs until it is asked to stop.
///
/// # Errors
/// What ends a run.
pub(crate) async fn run(
    context: &Context,
    options: &Options,
    of: &ClusterCidrOptions,
) -> Result<Stopped, Failure> {
    let metrics = context.metrics(|registry| IpamMetrics::new(registry, PoolsOf::ClusterCidrs))?;
    let allocator = Allocator::of_cluster_cidrs(&options.service_ranges, of.label_wait);
    let allocator = allocator.without(&options.excluded).resting_for(options.reuse_delay);
    let allocator = Arc::new(Mutex::new(allocator.holding_by(options.hold.clone())));
    // Whose CRD it is does not matter: the flag has named what it is for.
    let informers = context.informers.of_any_owner();
    let source = informers.source(Kind::Custom(CLUSTER_CIDRS));
    let cache = informers.get_from::<Object<ClusterCidr>>(source);
    let nodes = node_work::nodes_of::<LabelledNode>(&context.informers, options);
    let queue = context.queue::<Arc<str>>("multi_cidr_range_allocator_cidr", BACKOFF);
    let name = ("multi_cidr_range_allocator_node", node_work::BACKOFF);
    let objects = Some(queue.clone());
    let reconciler = node_work::reconciler(context, name, &nodes, &allocator, metrics, objects);
    let changed = Arc::new(Notify::new());
    let _cluster_cidrs = watch(&cache, &reconciler, &queue, of.rules, &changed);
    // What Nodes hold is judged by all ranges there are.
    let known = cache.synced_or_dormant();
    if context.stop.run_until_cancelled(known).await.is_none() {
        return Ok(Stopped::default());
    }
    let _nodes = node_work::watch(&nodes, &reconciler);
    let client = context.objects::<ClusterCidr>(CLUSTER_CIDRS);
    if cache.is_dormant() {
        let what =
            "ClusterCIDRs are not served: apply their CRD of config/crd, or set --install-crds";
        warn!(logger = LOGGER, "{what}");
    }
    let first = make_default(context, of.default.clone(), &cache, client.clone());
    let cluster_cidrs = Arc::new(ClusterCidrReconciler {
        cache,
        client,
        allocator: Arc::clone(&allocator),
        recorder: context.recorder.clone(),
        rules: of.rules,
        said: Mutex::default(),
    });
    let cluster_cidrs = reconcile(context, cluster_cidrs, &queue, &nodes);
    let begin = settled(allocator, first, changed);
    let pass = (Arc::clone(&reconciler), node_work::item_limit(context, options));
    let working = node_work::work(context, &reconciler, pass, options, begin);
    let ((), stopped) = tokio::try_join!(cluster_cidrs, working)?;
    Ok(stopped)
}

/// Works on ClusterCIDRs until the stop, once it is known what Nodes have.
async fn reconcile(
    context: &Context,
    reconciler: Arc<ClusterCidrReconciler>,
    queue: &WorkQueue<Arc<str>>,
    nodes: &Informer<LabelledNode>,
) -> Result<(), Failure> {
    let (cache, own_writes) = (reconciler.cache.clone(), reconciler.client.own_writes().clone());
    let (all, again, looking) = (cache.clone(), queue.clone(), Arc::clone(&reconciler));
    context
        .run(queue, reconciler)
        .workers(WORKERS)
        .start_filled(nodes)
        .reads_own_writes(&cache, &own_writes)
        .audit(STATUS_EVERY, move || {
            let mut outdated = all.frozen(|store| {
                let outdated = store.values().filter(|object| looking.is_outdated(object));
                outdated.map(|object| Arc::clone(&object.metadata.key)).collect::<Vec<_>>()
            });
            outdated.sort_unstable();
            for name in outdated {
                again.add(name);
            }
            std::future::ready(())
        })
        .until_stopped()
        .await
}

/// Begins to create `default-cluster-cidr` from the flags, unless it exists: one flag moves a cluster
/// from the RangeAllocator. The first attempt tells the UID of the object that it made.
fn make_default(
    context: &Context,
    spec: Option<ClusterCidrSpec>,
    cache: &Informer<Object<ClusterCidr>>,
    client: ObjectClient<ClusterCidr>,
) -> oneshot::Receiver<Option<Arc<str>>> {
    let (tried, first) = oneshot::channel();
    // Where the kind is not served, Nodes need not wait.
    let mut tried = Some(tried).filter(|_| !cache.is_dormant());
    let (cache, stop) = (cache.clone(), context.stop.clone());
    context.spawn(async move {
        let Some(spec) = spec else { return };
        let making = async {
            cache.synced().await;
            loop {
                let there = cache.get(plan::NAME).is_some();
                let made = if there { Some(None) } else { make(&client, &spec).await };
                let _awaited = tried.take().map(|tried| tried.send(made.clone().flatten()));
                match made {
                    Some(_) => return,
                    None => sleep(MAKE_AGAIN).await,
                }
            }
        };
        // Cut off by the stop, it is made by the next leader.
        stop.run_until_cancelled(making).await;
    });
    first
}

/// `None`: it could not be made. Otherwise there is one, with its UID if it was made by this.
async fn make(
    client: &ObjectClient<ClusterCidr>,
    spec: &ClusterCidrSpec,
) -> Option<Option<Arc<str>>> {
    let mut draft = Draft::new(ClusterCidrBody { spec: spec.clone() });
    draft.metadata.finalizers.push(FINALIZER.to_owned());
    match client.create_if_absent(plan::NAME, &draft).await {
        Ok(Created::New(object)) => {
            info!(logger = LOGGER, name = plan::NAME, "Created a ClusterCIDR from --cluster-cidr");
            Some(Some(Arc::clone(&object.metadata.uid)))
        }
        Ok(Created::Existing(_)) => Some(None),
        Err(error) => {
            warn!(logger = LOGGER, err = %error, "Cannot create a ClusterCIDR from \
                --cluster-cidr; trying again. If the error names an unknown field, the installed CRD \
                is older or of another program: apply the CRD in config/crd");
            None
        }
    }
}

/// Over when the ClusterCIDRs of the start are in use, so that no Node is told that there is
/// nothing for it, or given a block of a lesser one, while a better one is about to be used.
async fn settled(
    allocator: Arc<Mutex<Allocator>>,
    first: oneshot::Receiver<Option<Arc<str>>>,
    changed: Arc<Notify>,
) {
    let settling = async {
        // `None` where the flags name no ClusterCIDR: the sender is dropped.
        let made = first.await.ok().flatten();
        loop {
            let unknown = |uid: &Arc<str>| allocator.lock().use_of(uid).is_none();
            if !made.as_ref().is_some_and(unknown) && !allocator.lock().has_unheld() {
                return;
            }
            changed.notified().await;
        }
    };
    // Those that are not in use by then are left out until they are.
    drop(timeout(SETTLING, settling).await);
}

/// Tells of every change, and adds the object to `queue`; `changed` hears of it afterwards.
pub(super) fn watch<N: CachedNode>(
    objects: &Informer<Object<ClusterCidr>>,
    reconciler: &Arc<Reconciler<N>>,
    queue: &WorkQueue<Arc<str>>,
    rules: Rules,
    changed: &Arc<Notify>,
) -> Subscription<Object<ClusterCidr>> {
    let reconciler = Arc::downgrade(reconciler);
    let (queue, changed) = (queue.clone(), Arc::clone(changed));
    objects.subscribe(move |delta| {
        let Some(reconciler) = reconciler.upgrade() else { return };
        let (object, effects) = match delta {
            Delta::Added(object) | Delta::Updated { new: object, .. } => {
                (object, see(&mut reconciler.allocator.lock(), object, rules))
            }
            Delta::Deleted(object) => {
                let mut allocator = reconciler.allocator.lock();
                (object, allocator.cluster_cidr_gone(&object.metadata.uid))
            }
            Delta::ListStarts | Delta::ListEnds => return,
        };
        reconciler.carry_out(effects);
        queue.add(Arc::clone(&object.metadata.key));
        changed.notify_one();
    })
}

fn see(allocator: &mut Allocator, object: &Object<ClusterCidr>, rules: Rules) -> Effects {
    let metadata = &object.metadata;
    let Ok(plan) = Plan::of(&object.body.spec, rules) else {
        return allocator.cluster_cidr_gone(&metadata.uid);
    };
    allocator.see_cluster_cidr(SeenClusterCidr {
        name: Arc::clone(&metadata.key),
        uid: Arc::clone(&metadata.uid),
        state: state(object),
        spec: object.body.spec.clone(),
        plan,
    })
}

/// Whether a ClusterCIDR gives out blocks.
pub(crate) fn state(object: &Object<ClusterCidr>) -> ServingState {
    let metadata = &object.metadata;
    let is_drained = || metadata.annotations.get(DRAIN).is_some_and(|drain| drain == "true");
    if metadata.deleting() {
        ServingState::Terminating
    } else if !metadata.has_finalizer(FINALIZER) {
        ServingState::Unheld
    } else if is_drained() {
        ServingState::Draining
    } else {
        ServingState::Serving
    }
}
