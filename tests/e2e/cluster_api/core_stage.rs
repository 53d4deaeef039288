//! A management cluster with Cluster API's own core, which reconciles Clusters, and the product, which reconciles
//! AWSClusters for it.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tests::Process;
use tests::cluster_api_core::ClusterApiCore;
use tokio::task::JoinHandle;

use crate::aws_stage::{Stage, ours, spec};
use crate::scene::{Scene, hub_of_core, hub_of_older_core, hub_of_upstream};

pub(crate) const CLUSTERS: &str = "clusters.v1beta2.cluster.x-k8s.io";
pub(crate) const AWS_CLUSTERS: &str = "awsclusters.v1beta2.infrastructure.cluster.x-k8s.io";

pub(crate) struct CoreStage {
    // Fields drop in this order.
    pub(crate) core: Process,
    stage: Stage,
    pub(crate) installed: ClusterApiCore,
}

impl Deref for CoreStage {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl CoreStage {
    pub(crate) async fn set() -> Option<Self> {
        Self::set_with(&[]).await
    }

    /// Like [`Self::set`], with these flags of the core.
    pub(crate) async fn set_with(args: &[&str]) -> Option<Self> {
        Self::set_as(async |stage| stage.plane.admin_kubeconfig(), args).await
    }

    /// Like [`Self::set_with`], with a user for the core.
    pub(crate) async fn set_as(
        user: impl AsyncFnOnce(&Stage) -> PathBuf,
        args: &[&str],
    ) -> Option<Self> {
        let stage = Stage::set_at(async || Scene::at(hub_of_core().await).await).await?;
        let installed = ClusterApiCore::install(&stage);
        let core = installed.start_as(&user(&stage).await, args).await;
        Some(Self { core, stage, installed })
    }

    /// Starts the product together with the core.
    pub(crate) fn product(&self, args: &str) -> Process {
        self.start_with_aws(&format!("--capi-mode=provider {args}"))
    }

    /// Creates a Cluster and its AWSCluster, with two subnets in one zone.
    pub(crate) fn create_pair(&self, name: &str) {
        self.create(&ours(name, &spec("10.1.1.0/24")));
        self.create(&cluster(name));
    }

    /// Like [`Self::set`], with the core of release 1.10.
    pub(crate) async fn set_older() -> Option<Self> {
        let stage = Stage::set_at(async || Scene::at(hub_of_older_core().await).await).await?;
        let installed = ClusterApiCore::install_older(&stage);
        let core = installed.start(&[]).await;
        Some(Self { core, stage, installed })
    }

    /// Like [`Self::set`], with the CRDs and webhooks of upstream's AWS provider, which is not started.
    pub(crate) async fn set_upstream() -> Option<(Self, ClusterApiCore)> {
        let stage = Stage::set_at(async || Scene::at(hub_of_upstream().await).await).await?;
        let installed = ClusterApiCore::install(&stage);
        let provider = ClusterApiCore::install_aws_provider(&stage);
        let core = installed.start(&[]).await;
        Some((Self { core, stage, installed }, provider))
    }

    /// Records all versions of an object from now on.
    pub(crate) async fn history(&self, kind: &str, name: &str) -> History {
        History::begin(self.plane.client().await, kind, name)
    }

    /// Ends the product, and asserts that the core did not panic.
    pub(crate) async fn finish(&self, manager: Process) {
        self.end(manager).await;
        let lines = self.core.lines();
        let panics: Vec<_> = lines.iter().filter(|line| line.contains("panic")).collect();
        assert!(panics.is_empty(), "{panics:?}");
    }
}

/// A Cluster that refers to the AWSCluster of its name, as users of the core write it.
pub(crate) fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"infrastructureRef":
            {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": name}},
    })
}

/// Whether the core says that the infrastructure of a Cluster is provisioned.
pub(crate) fn is_provisioned(cluster: &Value) -> bool {
    cluster["status"]["initialization"]["infrastructureProvisioned"] == true
}

/// All versions of an object, by a watch.
pub(crate) struct History {
    versions: Arc<Mutex<Vec<Value>>>,
    watch: JoinHandle<()>,
}

impl History {
    pub(crate) fn begin(client: Client, kind: &str, name: &str) -> Self {
        let mut parts = kind.splitn(3, '.');
        let [plural, version, group] = [(); 3].map(|()| parts.next().unwrap());
        let kind = GroupVersionKind::gvk(group, version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api = Api::<DynamicObject>::namespaced_with(client, "default", &resource);
        let params = WatchParams::default().fields(&format!("metadata.name={name}"));
        let versions = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&versions);
        let watch = tokio::spawn(async move {
            let mut events = api.watch(&params, "0").await.unwrap().boxed();
            while let Some(event) = events.next().await {
                if let Ok(WatchEvent::Added(it) | WatchEvent::Modified(it)) = event {
                    seen.lock().push(serde_json::to_value(it).unwrap());
                }
            }
        });
        Self { versions, watch }
    }

    /// The versions so far.
    pub(crate) fn versions(&self) -> Vec<Value> {
        self.versions.lock().clone()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
