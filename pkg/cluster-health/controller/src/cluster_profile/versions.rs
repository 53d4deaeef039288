//! [`Versions`]: the versions of clusters, read apart from all probing.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use objects::{Object, Schema};
use tokio_util::sync::CancellationToken;

use crate::engine::facts::{FactStore, git_version, read_facts};
use crate::engine::{Companions, FlavourRegistry, Followed, MemberId, Members, Resolve};

/// Versions read at the same time.
const AT_ONCE: usize = 16;
/// For one cluster.
const LIMIT: Duration = Duration::from_secs(10);
const ANSWER_MAX: usize = 64 * 1024;
/// Longest version; no vendor writes more.
const VERSION_MAX: usize = 64;

/// Between two reads of one cluster, give or take a tenth.
const READ_EVERY: Duration = Duration::from_secs(600);
/// After a read that failed.
const RETRY_EVERY: Duration = Duration::from_secs(30);

/// The versions of the clusters of a flavour.
pub(super) struct Versions(FactStore<Option<String>>);

impl Default for Versions {
    fn default() -> Self {
        Self(FactStore::new(READ_EVERY, RETRY_EVERY))
    }
}

impl Versions {
    pub(super) fn get(&self, uid: &str) -> Option<String> {
        self.0.get(uid, Clone::clone)
    }

    pub(super) fn forget(&self, uid: &str) {
        self.0.forget(uid);
    }

    /// Reads the versions of ready clusters whose objects are wanted.
    pub(super) fn companions<R: Resolve>(
        self: Arc<Self>,
        flavour: Arc<R>,
        followed: &Followed<'_, R>,
        is_wanted: impl Fn(&Object<R::Schema>) -> bool + Send + Sync + 'static,
    ) -> Companions {
        let (registry, stop) = (followed.registry.clone(), followed.context.stop.clone());
        let run = async move {
            self.read_all(&flavour, &registry, &stop, is_wanted).await;
            Ok(())
        };
        Companions { ready: Box::pin(ready(())), run: Box::pin(run) }
    }

    async fn read_all<R: Resolve>(
        self: Arc<Self>,
        flavour: &Arc<R>,
        registry: &FlavourRegistry,
        stop: &CancellationToken,
        is_wanted: impl Fn(&Object<R::Schema>) -> bool,
    ) {
        let due = || {
            let Members { objects, connections, .. } = flavour.members();
            let mut due = connections.reachable();
            due.retain(|cluster| {
                let is_wanted = objects.get(cluster).is_some_and(|it| is_wanted(&it));
                is_wanted && registry.is_ready(cluster) && self.0.begin(&cluster.uid)
            });
            due
        };
        let read = |cluster: MemberId| {
            let (versions, flavour) = (Arc::clone(&self), Arc::clone(flavour));
            let registry = registry.clone();
            async move {
                let version = read(flavour.members(), &cluster).await?;
                versions.0.take(&cluster.uid, |known| *known = Some(version))?;
                registry.facts_changed(&cluster);
                Some(())
            }
        };
        read_facts(registry, stop, AT_ONCE, due, read).await;
    }
}

/// The version of a cluster; `None` while it cannot be read, or when the cluster is reached by another client by then.
async fn read<S: Schema>(members: Members<'_, S>, cluster: &MemberId) -> Option<String> {
    let Members { connections, prober, .. } = members;
    let client = connections.client(cluster)?;
    let answer = prober.reader(&client).get("/version", ANSWER_MAX, LIMIT).await.ok()?;
    let is_same = Arc::ptr_eq(&connections.client(cluster)?, &client);
    (is_same && answer.status == StatusCode::OK).then(|| version(&answer.body)).flatten()
}

/// `gitVersion` as the server writes it.
fn version(body: &[u8]) -> Option<String> {
    let git_version = git_version(body)?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_".contains(&byte);
    let is_version = (1..=VERSION_MAX).contains(&git_version.len());
    (is_version && git_version.bytes().all(is_legal)).then_some(git_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_taken_as_the_server_writes_it_and_anything_else_is_not() {
        for (body, told) in [
            (r#"{"major": "1", "gitVersion": "v1.33.1-eks-1234567"}"#, Some("v1.33.1-eks-1234567")),
            (r#"{"gitVersion": "v1.30.0+k3s1"}"#, Some("v1.30.0+k3s1")),
            (r#"{"gitVersion": ""}"#, None),
            (r#"{"gitVersion": "a b"}"#, None),
            (r#"{"major": "1"}"#, None),
            ("<html>", None),
        ] {
            assert_eq!(version(body.as_bytes()).as_deref(), told, "{body}");
        }
        let long = format!(r#"{{"gitVersion": "v{}"}}"#, "1".repeat(VERSION_MAX));
        assert_eq!(version(long.as_bytes()), None);
    }
}
