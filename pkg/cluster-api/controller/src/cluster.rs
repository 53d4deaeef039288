//! The Cluster controller: brings what makes a cluster together, and deletes it in order. This file
//! holds the caches, the queue and the workers of one run.
//!
//! | file | holds |
//! |---|---|
//! | `reconcile.rs` | [`Clusters`]: one reconcile of one Cluster, with its spec and control plane |
//! | `infrastructure_step.rs`, `kubeconfig_step.rs` | its infrastructure; its certificates and kubeconfig |
//! | `deletion.rs` | the deletion of a Cluster and of what it owns |
//! | `report.rs` | what a reconcile found out: status, phase, errors; pure |
//! | `references.rs` | which Clusters refer to an object |
//! | `metrics.rs` | the metrics of Clusters |

mod deletion;
mod infrastructure_step;
mod kubeconfig_step;
mod metrics;
mod reconcile;
mod references;
mod report;

use std::sync::Arc;
use std::time::Duration;

use crate::kubeconfig::Checked;
use informer::Informer;
use kube_api::{Kind, Metadata};
use manager::{Context, Failure};
use metrics::ClusterMetrics;
use objects::{Dynamic, Object};
use reconcile::Clusters;
use references::References;
use workqueue::{Backoff, Jitter, WorkQueue};

use crate::api::cluster::{Cluster, Machine, cluster_key, proves_control_plane};
use crate::api::{CLUSTER_NAME_LABEL, CLUSTERS, GROUP, SECRETS, WATCH_FILTER_LABEL};
use crate::kind_caches::KindCaches;
use crate::options::{Mode, Options};
use crate::ownership;

/// Backoff of one Cluster, without a limit of attempts.
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(100), Duration::from_secs(300), Jitter::Around(0.3));

/// A cache that no Cluster has asked for in so long is dropped.
const IDLE: Duration = Duration::from_secs(3600);

pub(crate) async fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    let metrics = context.metrics(ClusterMetrics::new)?;
    metrics.reset();
    let clusters = clusters(context, options);
    let queue = context.queue::<Arc<str>>("clusters", BACKOFF);
    let references = References::default();
    let namespace = options.namespace.as_deref();
    let secrets = secrets(context, namespace);
    let externals = externals(context, namespace, &queue, &references);
    // Each look at a Cluster asks for the kind that it names.
    let (named, idle) = (externals.clone(), IDLE.max(options.sync_period * 2));
    let reconcile = Arc::new(Clusters {
        cache: clusters.clone(),
        client: context.objects(CLUSTERS),
        externals,
        machines: machines(context, namespace, &queue, &clusters),
        secrets: secrets.clone(),
        secret_client: context.objects(SECRETS),
        references,
        checked: Checked::default(),
        recorder: context.recorder.clone(),
        metrics,
        generate_ca: options.generate_ca,
    });
    let (all, again) = (clusters.clone(), queue.clone());
    let own_writes = reconcile.client.own_writes().clone();
    context
        .run(&queue, reconcile)
        .workers(options.cluster_concurrency)
        .feed(&clusters, |cluster| Some(Arc::clone(&cluster.metadata.key)))
        .feed(&secrets, |secret| cluster_of(secret).map(Arc::from))
        .reads_own_writes(&clusters, &own_writes)
        .audit(options.sync_period, move || {
            named.drop_idle(idle);
            // Not in the random order of the map, so that a run of the simulation can be repeated.
            let mut keys: Vec<_> = all.frozen(|clusters| clusters.keys().cloned().collect());
            keys.sort_unstable();
            for key in keys {
                again.add(key);
            }
            std::future::ready(())
        })
        .until_stopped()
        .await
}

/// In `auto` those whose CRD is ours, also when the controller was asked for by name
/// (`rule:clusters-of-others-are-not-touched`).
fn clusters(context: &Context, options: &Options) -> Informer<Object<Cluster>> {
    let informers = match options.mode {
        Mode::Auto => context.informers.of_our_crds(),
        Mode::Standalone | Mode::Provider => context.informers.of_any_owner(),
    };
    let mut source = informers.source(Kind::Custom(CLUSTERS));
    source.namespace = options.namespace.as_deref().map(Arc::from);
    let filter = options.watch_filter.as_ref();
    source.labels = filter.map(|value| format!("{WATCH_FILTER_LABEL}={value}").into());
    informers.get_from(source)
}

/// Metadata alone: contents are read one by one.
fn secrets(context: &Context, namespace: Option<&str>) -> Informer<Metadata> {
    let mut source = context.informers.source(Kind::BuiltIn(SECRETS));
    source.namespace = namespace.map(Arc::from);
    source.labels = Some(CLUSTER_NAME_LABEL.into());
    context.informers.get_from(source)
}

fn externals(
    context: &Context,
    namespace: Option<&str>,
    queue: &WorkQueue<Arc<str>>,
    references: &References,
) -> KindCaches<Dynamic> {
    let (queue, references) = (queue.clone(), references.clone());
    KindCaches::new(context, namespace, move |group, kind, object| {
        for cluster in ownership::clusters_of(&object.metadata) {
            queue.add(Arc::from(cluster));
        }
        for cluster in references.of(group, kind, &object.metadata.key) {
            queue.add(cluster);
        }
    })
}

/// A Machine is news while its Cluster has no control plane, and while its Cluster is deleted.
fn machines(
    context: &Context,
    namespace: Option<&str>,
    queue: &WorkQueue<Arc<str>>,
    clusters: &Informer<Object<Cluster>>,
) -> KindCaches<Machine> {
    let (queue, clusters) = (queue.clone(), clusters.clone());
    let machines = KindCaches::new(context, namespace, move |_, _, machine: &Object<Machine>| {
        let Some(key) = cluster_key(machine) else { return };
        let Some(cluster) = clusters.get(&key) else { return };
        let proves =
            proves_control_plane(machine) && !cluster.status.control_plane_was_initialized();
        if proves || cluster.metadata.deleting() {
            queue.add(Arc::from(key));
        }
    });
    // Watched from the start: nothing refers to them.
    drop(machines.get(GROUP, "Machine"));
    machines
}

fn cluster_of(secret: &Metadata) -> Option<String> {
    let (namespace, _) = secret.key.split_once('/')?;
    let name = secret.labels.get(CLUSTER_NAME_LABEL)?;
    Some(format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests;
