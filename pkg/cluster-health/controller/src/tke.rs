//! TKEStack's Clusters and Machines: credentials, probes, status, and the details that are read apart
//! from the probes.
//!
//! This file watches the objects and runs the workers of details and Machines.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`Tke`]: the flavour, as the engine sees it |
//! | `access.rs` | the addresses of a Cluster, and the inputs of its client |
//! | `credentials.rs` | reads and chooses ClusterCredentials |
//! | `cluster_details.rs` | [`DetailStore`](cluster_details::DetailStore): what is known of each Cluster apart from its published health |
//! | `details.rs`, `summary.rs` | versions, summaries and other details, read apart from the probes |
//! | `node_lists.rs` | one list of the Nodes of each Cluster at a time |
//! | `facts.rs` | version, summary, Nodes and credential of a Cluster, and their conditions |
//! | `summary_metrics.rs` | [`SummaryMetrics`]: the sums as metrics |
//! | `machines.rs` | the health of the Machines of each Cluster |
//! | `machine_reconciler.rs` | when the Machines of a Cluster are observed |
//! | `status.rs` | the status that is written, and reading it back |

use std::sync::Arc;
use std::time::Duration;

use cluster_details::SUMMARY_LIMIT_MAX;
use credentials::Fetch;
use details::{DetailReconciler, DetailTask};
use futures::future::BoxFuture;
use kube_api::Kind;
use machine_reconciler::{MachineReconciler, lookup, watch_machines};
use machines::MachineHealth;
use manager::{Context, Failure};
use node_lists::NodeLists;
use tokio::try_join;
use workqueue::{Backoff, Jitter};

use crate::api::tke::{CLUSTER_CREDENTIALS, MACHINES};
use crate::engine::follow::{Reading, report};
use crate::engine::{
    Companions, CredentialKind, FlavourRegistry, Followed, SecretScope, Source, Watched,
    watch_clusters,
};

pub(crate) mod access;
mod cluster_details;
pub(crate) mod credentials;
mod details;
mod facts;
mod flavour;
mod machine_reconciler;
mod machines;
mod node_lists;
mod status;
mod summary;
mod summary_metrics;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use flavour::Tke;
pub(crate) use summary_metrics::SummaryMetrics;

/// The time limit of a task: that of the longest one, a summary.
const TASK_LIMIT: Duration = SUMMARY_LIMIT_MAX.saturating_add(Duration::from_secs(30));

/// Grants what is read of Secrets.
const MANIFEST_OF_SECRETS: &str = "config/rbac/cluster-health.yaml";
/// Grants what is read of TKEStack's kinds.
const MANIFEST: &str = "config/rbac/cluster-health-tke.yaml";
/// Clusters that are looked at at the same time.
const WORKERS: usize = 16;
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(200), Duration::from_secs(30), Jitter::Around(0.5));

impl Source for Tke {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let watched = Watched {
            namespace: None,
            secrets: SecretScope::Namespace(self.options.secret_namespace.clone()),
            credentials: Some(CredentialKind {
                kind: CLUSTER_CREDENTIALS,
                reader: |client| Box::new(Fetch::new(client)),
            }),
            manifest: MANIFEST,
            secrets_manifest: MANIFEST_OF_SECRETS,
            queue: "cluster_health_tke",
            workers: WORKERS,
            purpose: "cluster-health-credentials",
        };
        let flavour = Arc::clone(&self);
        let companions = move |followed: &Followed<'_, Self>| companions(&flavour, followed);
        Box::pin(watch_clusters(self, context, registry, watched, companions))
    }
}

/// The workers of details and Machines, which share the lists of Nodes.
fn companions(flavour: &Tke, followed: &Followed<'_, Tke>) -> Companions {
    let Followed { context, registry, objects, .. } = *followed;
    let tasks = context.queue::<DetailTask>("cluster_health_tke_facts", BACKOFF);
    let queue = context.queue::<Arc<str>>("cluster_health_tke_machines", BACKOFF);
    flavour.follow(registry.clone(), tasks.clone(), queue.clone());
    let (options, informers) = (&flavour.options, &context.informers);
    // `None` when Machines are not looked after.
    let machines = (!options.machine_period.is_zero()).then(|| {
        let machines = informers.get_from(informers.source(Kind::Custom(MACHINES)));
        report(context, &machines, MANIFEST);
        machines
    });
    let schema_is_ours = Arc::new(informers.schema_is_ours(&MACHINES));
    let health = MachineHealth::new(
        (lookup(machines.as_ref()), schema_is_ours),
        registry.clone(),
        context.recorder.clone(),
        Arc::clone(options),
    );
    let lists = Arc::new(NodeLists {
        prober: Arc::clone(&flavour.prober),
        details: Arc::clone(&flavour.details),
        registry: registry.clone(),
        options: Arc::clone(options),
        machines: Arc::new(health),
    });
    let details = DetailReconciler { lists: Arc::clone(&lists), metrics: flavour.metrics.clone() };
    let (clusters, context) = (objects.clone(), context.clone());
    let cached = objects.clone();
    let reconciler = MachineReconciler { clusters: Box::new(move |name| cached.get(name)), lists };
    let concurrency = options.summary_concurrency;
    let run = async move {
        let gather = context
            .run(&tasks, Arc::new(Reading::new(details, &context.stop)))
            .workers(concurrency)
            .item_limit(TASK_LIMIT)
            .until_stopped();
        let look = watch_machines(&context, &clusters, machines, &queue, reconciler);
        try_join!(gather, look)?;
        Ok(())
    };
    Companions { ready: Box::pin(std::future::ready(())), run: Box::pin(run) }
}
