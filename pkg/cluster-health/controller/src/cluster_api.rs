//! The flavour `capi`: the Clusters of Cluster API, whose kubeconfigs their control plane providers keep in Secrets.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`ClusterApi`]: the Clusters as the engine sees them |
//! | `access.rs` | how a cluster is reached |

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Context, Failure};

use crate::api::cluster_api::{CLUSTERS, CRD};
use crate::engine::{
    Companions, FlavourRegistry, Followed, SecretScope, SharedKind, Source, Watched,
    watch_shared_clusters,
};

pub(crate) mod access;
mod flavour;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use flavour::{ClusterApi, ClusterApiOptions};

/// Grants what is read and written here.
const MANIFEST: &str = "config/rbac/cluster-health-capi.yaml";
/// Grants the Secrets of one namespace.
const MANIFEST_OF_SECRETS: &str =
    "config/rbac/namespaces/member-secrets.yaml, in each namespace of Clusters";
/// Secrets that are read at the same time.
const WORKERS: usize = 64;

impl Source for ClusterApi {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let watched = Watched {
            namespace: self.watched_namespace(),
            secrets: SecretScope::InUse,
            credentials: None,
            manifest: MANIFEST,
            secrets_manifest: MANIFEST_OF_SECRETS,
            queue: "cluster_health_capi",
            workers: WORKERS,
            purpose: "cluster-health-secrets",
        };
        let watched = (watched, SharedKind { crd: CRD, versions: &CLUSTERS });
        let served = Arc::clone(&self);
        let serve = move |kind| served.serve(kind);
        Box::pin(watch_shared_clusters(self, context, registry, watched, serve, companions))
    }
}

/// Nothing but probes.
fn companions(_: &Followed<'_, ClusterApi>) -> Companions {
    Companions { ready: Box::pin(ready(())), run: Box::pin(ready(Ok(()))) }
}
