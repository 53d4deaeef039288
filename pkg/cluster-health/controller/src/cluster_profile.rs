//! ClusterProfiles of the Cluster Inventory API: how each cluster is reached, and the part of its status that is ours.
//! Other programs own the objects and write the rest (`rule:a-shared-status-is-shared`).
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the flags |
//! | `flavour.rs` | [`ClusterProfiles`]: the flavour, as the engine sees it |
//! | `access.rs` | how a cluster is reached |
//! | `versions.rs` | the versions of clusters; reading them |
//! | `status.rs` | conditions and property, and reading them back |

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Context, Failure};

use crate::api::cluster_profile::{CLUSTER_PROFILES, CRD};
use crate::engine::{
    Companions, FlavourRegistry, Followed, SecretScope, SharedKind, Source, Watched,
    watch_shared_clusters,
};

pub(crate) mod access;
mod flavour;
pub(crate) mod options;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod versions;

pub(crate) use flavour::ClusterProfiles;

/// Grants what is read and written here.
const MANIFEST: &str = "config/rbac/cluster-health-clusterprofile.yaml";
/// Secrets that are read at the same time.
const WORKERS: usize = 64;

impl Source for ClusterProfiles {
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: FlavourRegistry,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let watched = Watched {
            namespace: self.options.watched_namespace(),
            secrets: SecretScope::InUse,
            credentials: None,
            manifest: MANIFEST,
            secrets_manifest: MANIFEST,
            queue: "cluster_health_clusterprofile",
            workers: WORKERS,
            purpose: "cluster-health-secrets",
        };
        let watched = (watched, SharedKind { crd: CRD, versions: &CLUSTER_PROFILES });
        let (served, of) = (Arc::clone(&self), Arc::clone(&self));
        let serve = move |kind| served.serve(kind);
        let companions = move |followed: &Followed<'_, Self>| companions(of, followed);
        Box::pin(watch_shared_clusters(self, context, registry, watched, serve, companions))
    }
}

/// The reads of versions.
fn companions(
    flavour: Arc<ClusterProfiles>,
    followed: &Followed<'_, ClusterProfiles>,
) -> Companions {
    let (registry, stop) = (followed.registry.clone(), followed.context.stop.clone());
    let run = async move {
        versions::run(flavour, registry, stop).await;
        Ok(())
    };
    Companions { ready: Box::pin(ready(())), run: Box::pin(run) }
}
