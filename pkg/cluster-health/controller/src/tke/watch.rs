//! Watches Clusters with their ClusterCredentials and Secrets, and runs the workers of details and
//! Machines beside.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use manager::{Context, Failure};
use workqueue::{Backoff, Jitter};

use super::credentials::Fetch;
use super::detail_workers::DetailWorkers;
use super::details::DetailTask;
use super::flavour::Tke;
use crate::api::tke::CLUSTER_CREDENTIALS;
use crate::engine::{Companions, CredentialKind, Followed, Registry, Source, Watched, follow};
use crate::missing_rights::report;

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
        registry: Registry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let watched = Watched {
            namespace: None,
            secrets_namespace: self.options.secret_namespace.clone(),
            credentials: Some(CredentialKind {
                kind: CLUSTER_CREDENTIALS,
                reader: |client| Box::new(Fetch::new(client)),
            }),
            manifest: MANIFEST,
            queue: "cluster_health_tke",
            workers: WORKERS,
            purpose: "cluster-health-credentials",
        };
        let flavour = Arc::clone(&self);
        let companions = move |followed: &Followed<'_, Self>| Ok(companions(&flavour, followed));
        Box::pin(follow(self, context, registry, watched, companions))
    }
}

/// The workers of details and Machines.
fn companions(flavour: &Tke, followed: &Followed<'_, Tke>) -> Companions {
    let Followed { context, registry, objects, .. } = *followed;
    let tasks = context.queue::<DetailTask>("cluster_health_tke_facts", BACKOFF);
    let machines = context.queue::<Arc<str>>("cluster_health_tke_machines", BACKOFF);
    flavour.follow(registry.clone(), tasks.clone(), machines.clone());
    let workers = DetailWorkers::new(context, flavour, registry, objects);
    report(context, workers.denied().into_iter().collect(), MANIFEST);
    let (context, objects) = (context.clone(), objects.clone());
    let run = async move { workers.run(&context, &tasks, &machines, &objects).await };
    Companions { ready: Box::pin(std::future::ready(())), run: Box::pin(run) }
}
