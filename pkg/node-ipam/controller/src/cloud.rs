//! Pod CIDRs that a cloud knows of: the CloudAllocator copies what the VM of a Node has been given;
//! IPAMFromCloud does so too and goes on looking; IPAMFromCluster gives out blocks and has the
//! cloud route them. Claims, PATCHes and reads are those of all allocators (`allocator`, `reconciler`).
//!
//! This file runs each of them, and has the condition that says that the network of a Node is ready.
//!
//! | file | holds |
//! |---|---|
//! | `provider.rs` | [`Cloud`](provider::Cloud): what is asked of a cloud |
//! | `cloud_nodes.rs` | the Nodes of a run, and the calls of the cloud for one of them |
//! | `copying.rs` | the CloudAllocator: what it does for a Node, and its pass over one |
//! | `syncer.rs` | IPAMFromCluster and IPAMFromCloud: what they do for a Node, and their pass over one |

mod cloud_nodes;
mod copying;
mod provider;
mod syncer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use gce::Client;
use informer::Subscription;
use jiff::Timestamp;
use kube_api::CloudNode;
use manager::{Context, Failure, Stopped};
use parking_lot::Mutex;
use prometheus::Registry;
use resilience::wall_now;
use serde_json::json;
use tokio::time::Instant;
use tracing::info;
use workqueue::{Backoff, Next, Reconcile, Retry};

use crate::allocator::{Allocator, CloudSource};
use crate::metrics::{IpamMetrics, PoolsOf};
use crate::node_events::NOT_READY;
use crate::options::{Direction, Families, Mode, Options};
use crate::reconciler::Ended;
use crate::writer::Written;
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

impl<C: Cloud> CloudNodes<C> {
    /// Says on a Node that its network is ready, unless it says so already: every write goes to all
    /// watchers of Nodes. A PATCH that is applied late says the truth, too, so an unknown outcome
    /// needs no reads.
    async fn make_ready(&self, node: &CloudNode, message: &str) -> Result<(), Ended> {
        if node.network_is_ready {
            return Ok(());
        }
        if self.core.stop.is_cancelled() {
            return Err(Ok(Next::Done));
        }
        let node = &node.node;
        let body = ready_body(&node.uid, message, wall_now());
        let answer = self.core.api.patch_status(&node.name, body, Instant::now()).await;
        match self.core.writer().judge(node, answer, false) {
            Written::Done => Ok(()),
            Written::Stopped => Err(Ok(Next::Done)),
            Written::Changed => Err(Err(Retry::expected("the Node has changed since it was read"))),
            Written::Not(retry) | Written::Withdrawn(retry) | Written::Unknown(_, retry) => {
                Err(Err(retry))
            }
            Written::Rejected(why, pause) => {
                self.core.events.report(node, NOT_READY, &why);
                Err(Err(Retry::expected(why).at_least(pause)))
            }
        }
    }
}

/// The body of the strategic merge patch that says that the network of a Node is ready; conditions
/// are merged by their type. It is sent only when the condition says something else or is missing,
/// so the time of its last change is now.
fn ready_body(uid: &str, message: &str, now: Timestamp) -> Bytes {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({
        "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
        "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    let body = json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}});
    Bytes::from(body.to_string())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod condition_tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_condition_has_stocks_form() {
        let now = "2026-11-22T10:11:12.345Z".parse().unwrap();
        let body: Value = serde_json::from_slice(&ready_body("u", "the message", now)).unwrap();
        let expected = json!({
            "metadata": {"uid": "u"},
            "status": {"conditions": [{
                "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
                "message": "the message", "lastHeartbeatTime": "2026-11-22T10:11:12Z",
                "lastTransitionTime": "2026-11-22T10:11:12Z",
            }]},
        });
        assert_eq!(body, expected);
    }
}
