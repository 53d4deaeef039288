//! [`Versions`]: the versions of clusters, read apart from all probing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use objects::{Object, Schema};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::follow::read_facts;
use crate::engine::{FlavourRegistry, MemberId, Members, ObjectModel};

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

/// The versions, by the UID of the object.
#[derive(Default)]
pub(super) struct Versions(Mutex<HashMap<Arc<str>, Version>>);

#[derive(Default)]
struct Version {
    version: Option<String>,
    /// When it is read again; at once without it.
    next: Option<Instant>,
}

impl Versions {
    pub(super) fn get(&self, uid: &str) -> Option<String> {
        self.0.lock().get(uid)?.version.clone()
    }

    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// Takes in the version of a cluster that is still known.
    fn set(&self, uid: &str, read: String) {
        if let Some(version) = self.0.lock().get_mut(uid) {
            version.version = Some(read);
            version.next = Some(Instant::now() + spread(READ_EVERY));
        }
    }

    /// Whether a read is due; if so, the next one is due soon, unless this one succeeds.
    fn begin(&self, uid: &Arc<str>) -> bool {
        let (mut versions, now) = (self.0.lock(), Instant::now());
        let version = versions.entry(Arc::clone(uid)).or_default();
        let is_due = version.next.is_none_or(|next| next <= now);
        if is_due {
            version.next = Some(now + spread(RETRY_EVERY));
        }
        is_due
    }

    /// Reads the versions of ready clusters that are wanted, until `stop`.
    pub(super) async fn read_all<M: ObjectModel>(
        self: Arc<Self>,
        flavour: Arc<M>,
        is_wanted: impl Fn(&Object<M::Schema>) -> bool,
        registry: FlavourRegistry,
        stop: CancellationToken,
    ) {
        let due = || {
            let Members { objects, connections, .. } = flavour.members();
            let mut due = connections.reachable();
            due.retain(|cluster| {
                let is_wanted = objects.get(cluster).is_some_and(|it| is_wanted(&it));
                is_wanted && registry.is_ready(cluster) && self.begin(&cluster.uid)
            });
            due
        };
        let read = |cluster: MemberId| {
            let (versions, flavour) = (Arc::clone(&self), Arc::clone(&flavour));
            let registry = registry.clone();
            async move {
                let version = read(flavour.members(), &cluster).await?;
                versions.set(&cluster.uid, version);
                registry.facts_changed(&cluster);
                Some(())
            }
        };
        read_facts(&registry, &stop, AT_ONCE, due, read).await;
    }
}

fn spread(time: Duration) -> Duration {
    time.mul_f64(rand::random_range(0.9..1.1))
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
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        git_version: String,
    }
    let Answer { git_version } = serde_json::from_slice(body).ok()?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_".contains(&byte);
    let is_version = (1..=VERSION_MAX).contains(&git_version.len());
    (is_version && git_version.bytes().all(is_legal)).then_some(git_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_that_failed_is_repeated_within_a_minute_and_others_after_ten() {
        let (versions, uid) = (Versions::default(), Arc::from("u"));
        assert!(versions.begin(&uid) && !versions.begin(&uid));
        tokio::time::advance(RETRY_EVERY * 2).await;
        assert!(versions.begin(&uid), "the first one failed");
        versions.set(&uid, "v1.33.0".to_owned());
        tokio::time::advance(RETRY_EVERY * 2).await;
        assert!(!versions.begin(&uid));
        tokio::time::advance(READ_EVERY * 2).await;
        assert!(versions.begin(&uid));
        assert_eq!(versions.get("u").as_deref(), Some("v1.33.0"));
    }

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
