//! Pod CIDRs that a cloud knows of: the CloudAllocator copies what the VM of a Node has been given;
//! IPAMFromCloud does so too and goes on looking; IPAMFromCluster gives out blocks and has the
//! cloud route them. Claims, PATCHes and reads are those of all allocators (`allocator`, `reconciler`).
//!
//! This file runs each of them.
//!
//! | file | holds |
//! |---|---|
//! | `provider.rs` | [`Cloud`](provider::Cloud): what is asked of a cloud |
//! | `cloud_nodes.rs` | the Nodes of a run, and the calls of the cloud for one of them |
//! | `condition.rs` | the condition that says that the network of a Node is ready |
//! | `copying.rs` | the CloudAllocator: what it does for a Node, and its pass over one |
//! | `syncer.rs` | IPAMFromCluster and IPAMFromCloud: what they do for a Node, and their pass over one |

mod cloud_nodes;
mod condition;
mod copying;
mod provider;
mod syncer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gce::Client;
use informer::Subscription;
use kube_api::CloudNode;
use manager::{Context, Failure, Stopped};
use parking_lot::Mutex;
use prometheus::Registry;
use tracing::info;
use workqueue::{Backoff, Reconcile};

use crate::allocator::{Allocator, CloudSource};
use crate::metrics::{IpamMetrics, PoolsOf};
use crate::options::{Direction, Families, Mode, Options};
use crate::{LOGGER, node_work};
use cloud_nodes::CloudNodes;
use copying::Copier;
use provider::{Cloud, GoogleCloud};
use syncer::Syncer;

/// One pass over a Node: an operation of the cloud takes up to two minutes, and calls wait for each
/// other.
const ITEM_LIMIT: Duration = Duration::from_secs(300);

/// Runs until it is asked to stop.
///
/// # Errors
/// What ends a run.
pub(crate) async fn run(
    context: &Context,
    google: &gce::Config,
    mode: &Mode,
    options: &Options,
) -> Result<Stopped, Failure> {
    let calls = context.metrics(gce::Metrics::new)?;
    let env = |name: &str| std::env::var(name).ok();
    let dry_run = context.settings.dry_run;
    let client = Client::new(google.clone(), calls, context.fence.clone(), dry_run, &env);
    let cloud = GoogleCloud::new(client.map_err(Failure::new)?);
    match mode {
        Mode::Copy(families) => copy(context, cloud, families, options).await,
        Mode::Sync { direction, pool, reserved } => {
            let pool = Some(pool.clone());
            let allocator = Allocator::of_cloud(source(*direction), pool, reserved);
            let allocator = allocator.resting_for(options.reuse_delay);
            sync(context, cloud, *direction, allocator, options).await
        }
    }
}

/// Who decides what a Node gets.
pub(super) fn source(direction: Direction) -> CloudSource {
    match direction {
        Direction::FromCluster => CloudSource::Routed,
        Direction::FromCloud => CloudSource::Exact,
    }
}

async fn copy<C: Cloud>(
    context: &Context,
    cloud: C,
    families: &Families,
    options: &Options,
) -> Result<Stopped, Failure> {
    let queue = ("cloudCIDRAllocator", copying::BACKOFF);
    let allocator = Allocator::of_cloud(CloudSource::Exact, None, &[]);
    let all = nodes(context, cloud, queue, allocator, options)?;
    let watching = all.watch(copying::wants, |_, _| {});
    info!(logger = LOGGER, "Copying pod CIDRs from the VMs of Nodes");
    let copier = Copier { all: Arc::clone(&all), families: families.clone() };
    work(context, &all, copier, watching, options).await
}

async fn sync<C: Cloud>(
    context: &Context,
    cloud: C,
    direction: Direction,
    allocator: Allocator,
    options: &Options,
) -> Result<Stopped, Failure> {
    let all = nodes(context, cloud, ("ipam_node", syncer::BACKOFF), allocator, options)?;
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
    queue: (&str, Backoff),
    allocator: Allocator,
    options: &Options,
) -> Result<Arc<CloudNodes<C>>, Failure> {
    let metrics = context.metrics(|registry| register(registry, queue.0))?;
    let allocator = Arc::new(Mutex::new(allocator.holding_by(options.hold.clone())));
    let nodes = node_work::nodes_of::<CloudNode>(&context.informers, options);
    let core = node_work::reconciler(context, queue, &nodes, &allocator, metrics, None);
    Ok(CloudNodes::new(core, cloud))
}

/// Works on the Nodes until the stop, once all of them are known (`rule:list-before-allocate`).
async fn work<C: Cloud, R: Reconcile<Key = Arc<str>>>(
    context: &Context,
    all: &Arc<CloudNodes<C>>,
    pass: R,
    watching: Subscription<CloudNode>,
    options: &Options,
) -> Result<Stopped, Failure> {
    let pass = (Arc::new(pass), ITEM_LIMIT);
    let working = node_work::work(context, &all.core, pass, options, std::future::ready(()));
    let Stopped { unknown_writes } = working.await?;
    drop(watching);
    Ok(Stopped { unknown_writes: unknown_writes + all.cut_off.load(Ordering::Relaxed) })
}

/// Registers everything, once per process; `queue` is the name of the work queue.
fn register(registry: &Registry, queue: &str) -> Result<IpamMetrics, prometheus::Error> {
    let help = "Nodes that were given up after too many attempts, which never happens here.";
    let dropped = metrics::counter(registry, "workqueue_dropped_objects", help, &["name"])?;
    dropped.with_label_values(&[queue]);
    IpamMetrics::new(registry, PoolsOf::Flags)
}

#[cfg(test)]
mod tests;
