//! The management cluster: a real control plane with the CRDs and an object for each member.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;
use tests::{ControlPlane, ControlPlaneOptions, programs};
use tokio::time::sleep;

use crate::fleet::Fleet;

pub(crate) const NAMESPACE: &str = "kube-federation-system";
/// The checks of members.
pub(crate) const CHECKS: &str = "kube-federation-system/checks";
/// Token in the Secret of all members; no other place may contain it.
pub(crate) const TOKEN: &str = "planted-token-of-a-bench";

/// Objects of members, and what was said of them.
pub(crate) struct Management {
    pub(crate) plane: ControlPlane,
    client: Client,
    published: Arc<Mutex<HashMap<String, Published>>>,
    /// Number of changes of readiness in the objects.
    turns: Arc<AtomicU64>,
}

/// What the object of a member said last.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) ready: String,
    pub(crate) since: Instant,
}

impl Management {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
        kubectl(&plane, &["apply", "-f", "config/crd"])?;
        kubectl(&plane, &["create", "namespace", NAMESPACE])?;
        for file in ["cluster-health", "cluster-health-account"] {
            kubectl(&plane, &["apply", "-f", &format!("config/rbac/{file}.yaml")])?;
        }
        let established = ["wait", "--for=condition=established", "--timeout=60s", "crd", "--all"];
        kubectl(&plane, &established)?;
        let client = plane.client().await;
        Ok(Self { plane, client, published: Arc::default(), turns: Arc::default() })
    }

    /// Creates the namespace for the leases of replicas.
    pub(crate) fn make_room_for_leases(&self) -> anyhow::Result<()> {
        self.kubectl(&["apply", "-f", "config/rbac/cluster-health-shards.yaml"]).map(drop)
    }

    /// Makes the ConfigMap [`CHECKS`] with so many checks of each member.
    pub(crate) async fn make_checks(&self, number: u32) -> anyhow::Result<()> {
        let role = "config/rbac/namespaces/health-checks.yaml";
        self.kubectl(&["apply", "-n", NAMESPACE, "-f", role])?;
        let kinds = [
            "nodesReady: {}",
            "nodeLeases: {}",
            "available: {kind: Deployment, namespace: kube-system, name: coredns}",
        ];
        let checks =
            kinds.iter().zip(0..number).map(|(kind, at)| format!("- {{name: C{at}, {kind}}}\n"));
        let config: ConfigMap = from_json(json!({
            "metadata": {"name": "checks"},
            "data": {"checks.yaml": format!("checks:\n{}", checks.collect::<String>())},
        }))?;
        let configs = Api::<ConfigMap>::namespaced(self.client.clone(), NAMESPACE);
        configs.create(&PostParams::default(), &config).await?;
        Ok(())
    }

    /// Output of kubectl for the administrator.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        kubectl(&self.plane, arguments)
    }

    /// Makes one Secret, and an object for each member.
    pub(crate) async fn populate(&self, fleet: &Fleet, members: u32) -> anyhow::Result<()> {
        let params = PostParams::default();
        let secret: Secret = from_json(json!({
            "metadata": {"name": "member"}, "stringData": {"token": TOKEN},
        }))?;
        Api::<Secret>::namespaced(self.client.clone(), NAMESPACE).create(&params, &secret).await?;
        let ca = k8s_openapi::ByteString(fleet.ca().as_bytes().to_vec());
        let clusters = self.clusters();
        futures::stream::iter(0..members)
            .map(|member| {
                let object = json!({
                    "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
                    "metadata": {"name": name(member), "namespace": NAMESPACE},
                    "spec": {
                        "apiEndpoint": fleet.endpoint(member), "caBundle": ca,
                        "secretRef": {"name": "member"},
                    },
                });
                let (clusters, params) = (clusters.clone(), params.clone());
                async move {
                    let object: DynamicObject = from_json(object)?;
                    clusters.create(&params, &object).await.context("cannot make a member")
                }
            })
            .buffer_unordered(64)
            .try_for_each(|_| async { Ok(()) })
            .await
    }

    /// Notes what the objects say, from now on.
    pub(crate) fn watch(&self) {
        let (clusters, published) = (self.clusters(), Arc::clone(&self.published));
        let turns = Arc::clone(&self.turns);
        tokio::spawn(async move {
            loop {
                let params = WatchParams::default().timeout(290);
                let Ok(events) = clusters.watch(&params, "0").await else {
                    // At the end of the runtime it fails at once, and would never let go of it.
                    sleep(Duration::from_millis(200)).await;
                    continue;
                };
                let mut events = std::pin::pin!(events);
                while let Some(Ok(event)) = events.next().await {
                    if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                        note(&published, &turns, &object);
                    }
                }
            }
        });
    }

    pub(crate) fn published(&self, member: u32) -> Option<Published> {
        self.published.lock().get(&name(member)).cloned()
    }

    /// How often any object said something else than before, since it first said anything.
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// How many objects tell of their member.
    pub(crate) fn told(&self) -> usize {
        self.published.lock().len()
    }

    /// When the last of so many objects told of its member; `None` while one does not.
    pub(crate) fn last_of(&self, members: u32) -> Option<Instant> {
        let published = self.published.lock();
        let all = published.len() >= members as usize;
        published.values().map(|published| published.since).max().filter(|_| all)
    }

    /// How many objects say that their member is ready.
    pub(crate) fn ready(&self) -> usize {
        self.published.lock().values().filter(|published| published.ready == "True").count()
    }

    fn clusters(&self) -> Api<DynamicObject> {
        let kind = ApiResource {
            group: "core.kubefed.io".into(),
            version: "v1beta1".into(),
            api_version: "core.kubefed.io/v1beta1".into(),
            kind: "KubeFedCluster".into(),
            plural: "kubefedclusters".into(),
        };
        Api::namespaced_with(self.client.clone(), NAMESPACE, &kind)
    }
}

fn note(published: &Mutex<HashMap<String, Published>>, turns: &AtomicU64, object: &DynamicObject) {
    let conditions = object.data["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|it| it["type"] == "Ready");
    let Some(ready) = ready.and_then(|it| it["status"].as_str()) else { return };
    let name = object.metadata.name.clone().unwrap_or_default();
    let mut published = published.lock();
    if published.get(&name).is_none_or(|before| before.ready != ready) {
        let before =
            published.insert(name, Published { ready: ready.to_owned(), since: Instant::now() });
        turns.fetch_add(u64::from(before.is_some()), Ordering::Relaxed);
    }
}

fn name(member: u32) -> String {
    format!("member-{member:05}")
}

fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("an object cannot be made")
}

fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> anyhow::Result<String> {
    let program = programs::control_plane_binaries(&["kubectl"])?.remove(0);
    let output = Command::new(program)
        .arg(format!("--kubeconfig={}", plane.admin_kubeconfig().display()))
        .args(arguments)
        .current_dir(programs::workspace())
        .output()?;
    if !output.status.success() {
        bail!("kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
