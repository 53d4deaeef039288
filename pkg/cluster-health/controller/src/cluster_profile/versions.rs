//! [`Versions`]: the versions of clusters whose manager is one of ours, read while they are ready, apart from all probing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::flavour::ClusterProfiles;
use crate::engine::{FlavourRegistry, MemberId};

/// Between looks for clusters that are due.
const ROUND: Duration = Duration::from_secs(1);
/// Clusters read at the same time.
const AT_ONCE: usize = 16;
/// For one cluster.
const LIMIT: Duration = Duration::from_secs(10);
const ANSWER_MAX: usize = 64 * 1024;
/// Longest version; no vendor writes more.
const VERSION_MAX: usize = 64;

/// Between two reads of one cluster, give or take a tenth.
const READ_EVERY: Duration = Duration::from_secs(600);

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
        }
    }

    /// Whether it is to be read now; if so it counts as read.
    fn begin(&self, uid: &Arc<str>) -> bool {
        let (mut versions, now) = (self.0.lock(), Instant::now());
        let version = versions.entry(Arc::clone(uid)).or_default();
        let is_due = version.next.is_none_or(|next| next <= now);
        if is_due {
            version.next = Some(now + READ_EVERY.mul_f64(rand::random_range(0.9..1.1)));
        }
        is_due
    }
}

/// Goes its rounds until `stop`.
pub(super) async fn run(
    flavour: Arc<ClusterProfiles>,
    registry: FlavourRegistry,
    stop: CancellationToken,
) {
    let (slots, under_way) = (Arc::new(Semaphore::new(AT_ONCE)), TaskTracker::new());
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        for cluster in flavour.connections.reachable() {
            let is_wanted = flavour.is_managed(&cluster) && registry.is_ready(&cluster);
            if !is_wanted || !flavour.versions.begin(&cluster.uid) {
                continue;
            }
            let Some(life) = registry.life(&cluster) else { continue };
            let (flavour, registry, slots) =
                (Arc::clone(&flavour), registry.clone(), Arc::clone(&slots));
            under_way.spawn(async move {
                let read = async {
                    let _slot = slots.acquire().await;
                    read(&flavour, &cluster).await
                };
                // Ends with the cluster, and at a stop (`rule:nothing-outlives-its-object`).
                if let Some(Some(version)) = life.run_until_cancelled(read).await {
                    flavour.versions.set(&cluster.uid, version);
                    registry.facts_changed(&cluster);
                }
            });
        }
    }
    under_way.close();
    under_way.wait().await;
}

/// The version of a cluster; `None` while it cannot be read, or when the cluster is reached by another client by then.
async fn read(flavour: &ClusterProfiles, cluster: &MemberId) -> Option<String> {
    let client = flavour.connections.client(cluster)?;
    let answer = flavour.prober.reader(&client).get("/version", ANSWER_MAX, LIMIT).await.ok()?;
    let is_same = Arc::ptr_eq(&flavour.connections.client(cluster)?, &client);
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
