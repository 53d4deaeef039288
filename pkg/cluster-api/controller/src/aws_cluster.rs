//! The AWSCluster controller: creates, keeps and removes what a cluster needs on AWS. The crate
//! `aws-network` decides what to do and `aws` sends it; this module reads and writes the objects.
//! This file holds the caches, the queue and the workers of one run.
//!
//! | file | holds |
//! |---|---|
//! | `aws_clusters.rs` | [`AwsClusters`]: what all reconciles share; status writes and events |
//! | `reconcile.rs` | one reconcile of one AWSCluster |
//! | `owner.rs` | the Cluster that owns an AWSCluster; who keeps a copied owner id |
//! | `identities.rs` | the credentials of the identities that AWSClusters name |
//! | `admission.rs` | the AWS account in which calls are made |
//! | `goal.rs` | what AWS shall have, from the object and its Cluster; pure |
//! | `build.rs`, `removal.rs` | creation and upkeep, with the endpoint; deletion |
//! | `pass.rs` | one pass of a reconciliation, sent or, with `--plan-only`, planned |
//! | `reconciliations.rs` | reconciliations between their passes, and when they go on |
//! | `idle_budget.rs` | when AWS is read for clusters at rest |
//! | `stored_memory.rs` | the planner's memory in the status; pure |
//! | `report.rs`, `write_events.rs` | the status and the events that follow from a pass; pure |
//! | `leaks.rs` | the scan for resources whose AWSCluster is gone |
//! | `spec_mirror.rs` | ids of resources, copied into the spec on request |
//! | `metrics.rs` | the `awscluster_*` metrics |

mod admission;
mod aws_clusters;
mod build;
mod goal;
mod identities;
mod idle_budget;
mod leaks;
mod metrics;
mod owner;
mod pass;
mod reconcile;
mod reconciliations;
mod removal;
mod report;
mod spec_mirror;
mod stored_memory;
mod write_events;

use std::sync::Arc;
use std::time::Duration;

use aws::Account;
use aws_clusters::AwsClusters;
use identities::Identities;
use informer::Informer;
use kube_api::Kind;
use manager::{Context, Failure};
use metrics::AwsClusterMetrics;
use objects::Object;
use reconciliations::Reconciliations;
use workqueue::{Backoff, Jitter, WorkQueue};

use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::Cluster;
use crate::api::{AWS_CLUSTERS, GROUP, INFRASTRUCTURE_GROUP, WATCH_FILTER_LABEL};
use crate::kind_caches::KindCaches;
use crate::options::Options;

/// Backoff of one AWSCluster, without a limit of attempts.
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(300), Jitter::Around(0.3));
/// Time limit of one pass, which waits behind all other clusters of its region.
const PASS_LIMIT: Duration = Duration::from_secs(600);

pub(crate) async fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    let metrics = context.metrics(AwsClusterMetrics::new)?;
    let calls = context.metrics(aws::Metrics::new)?;
    let cache = aws_clusters(context, options);
    let queue = context.queue::<Arc<str>>("awsclusters", BACKOFF);
    let namespace = options.namespace.as_deref();
    let reconcile = Arc::new(AwsClusters {
        cache: cache.clone(),
        client: context.objects(AWS_CLUSTERS),
        clusters: clusters(context, namespace, &queue),
        machines: KindCaches::new(context, namespace, |_, _, _| {}),
        identities: Identities::new(
            context,
            Account::load(options.aws.calls(options.sync_period), calls).await,
            &cache,
            &queue,
            !options.aws.plan_only && !context.settings.dry_run,
        ),
        fence: context.fence.clone(),
        reconciliations: Reconciliations::new(options.aws.idle_read_qps),
        recorder: context.recorder.clone(),
        metrics,
        options: options.aws.clone(),
        sync_period: options.sync_period,
        stop: context.stop.clone(),
    });
    let own_writes = reconcile.client.own_writes().clone();
    let (all, again) = (cache.clone(), queue.clone());
    let scanner = Arc::clone(&reconcile);
    let work = context
        .run(&queue, reconcile)
        .workers(options.aws.concurrency)
        .item_limit(PASS_LIMIT)
        .feed(&cache, |object| Some(Arc::clone(&object.metadata.key)))
        .reads_own_writes(&cache, &own_writes)
        .audit(options.sync_period, move || {
            all.frozen(|objects| objects.keys().for_each(|key| again.add(Arc::clone(key))));
            std::future::ready(())
        })
        .until_stopped();
    let Some(period) = options.aws.leak_scan_period else { return work.await };
    tokio::select! {
        ended = work => ended,
        () = scanner.scan_for_leaks(period) => Ok(()),
    }
}

/// The cache of AWSClusters whose CRD is ours (`rule:clusters-of-others-are-not-touched`).
fn aws_clusters(context: &Context, options: &Options) -> Informer<Object<AwsCluster>> {
    let informers = context.informers.of_our_crds();
    let mut source = informers.source(Kind::Custom(AWS_CLUSTERS));
    source.namespace = options.namespace.as_deref().map(Arc::from);
    let filter = options.watch_filter.as_ref();
    source.labels = filter.map(|value| format!("{WATCH_FILTER_LABEL}={value}").into());
    informers.get_from(source)
}

/// A Cluster wakes the AWSCluster that it refers to.
fn clusters(
    context: &Context,
    namespace: Option<&str>,
    queue: &WorkQueue<Arc<str>>,
) -> KindCaches<Cluster> {
    let queue = queue.clone();
    let clusters = KindCaches::new(context, namespace, move |_, _, cluster: &Object<Cluster>| {
        let Some(reference) = &cluster.body.spec.infrastructure_ref else { return };
        if reference.group() == INFRASTRUCTURE_GROUP && reference.kind == AWS_CLUSTERS.kind {
            let namespace = cluster.metadata.namespace().unwrap_or_default();
            queue.add(Arc::from(format!("{namespace}/{}", reference.name)));
        }
    });
    drop(clusters.get(GROUP, "Cluster"));
    clusters
}
