//! Clusters of Cluster API: a user creates and deletes them, another program makes their infrastructure, and
//! what the processes may write of both (C11). Another program makes their control planes, with keys and kubeconfig.

use std::time::Duration;

use http::Method;
use rand::RngExt as _;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::members::CRDS;
use crate::plan::Number;
use crate::store::{Change, Key, Object};
use crate::world::{State, World};

/// Edits of Clusters, and what the provider of their infrastructure does.
const CLUSTERS: char = 'k';
/// Number of names that Clusters have.
const NAMES: usize = 3;
/// The Cluster that refers to the infrastructure of another one.
const BORROWER: usize = 2;
/// Name of the Cluster that owns the infrastructure to which [`BORROWER`] refers. It does not exist.
const LENDER: &str = "lender";
pub(crate) const NAMESPACE: &str = "fleet";
pub(crate) const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const FINALIZER: &str = "example.com/provider";
/// Flag that runs their controller as well.
pub(crate) const FLAG: &str = "--controllers=cluster-api-infrastructure-controller";
/// A Cluster is as it should be after this time: a look at its infrastructure that nothing tells of, and waits
/// that doubled.
const SETTLES: Duration = Duration::from_secs(60);

fn name_of(cluster: usize) -> String {
    format!("cluster-{cluster}")
}

pub(crate) fn key(resource: &'static str, name: &str) -> Key {
    Key { resource, namespace: NAMESPACE.to_owned(), name: name.to_owned() }
}

pub(crate) fn path_of(resource: &str) -> String {
    let group = if resource == "clusters" { "cluster.x-k8s.io" } else { GROUP };
    format!("/apis/{group}/v1beta2/namespaces/{NAMESPACE}/{resource}")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn has_provider(infrastructure: &Value) -> bool {
    infrastructure["metadata"]["finalizers"][0] == FINALIZER
}

pub(crate) fn is_provisioned(infrastructure: &Value) -> bool {
    infrastructure["status"]["initialization"]["provisioned"] == true
}

/// Whether the status of a Cluster says that its infrastructure is ready.
pub(crate) fn says_ready(cluster: &Value) -> bool {
    cluster["status"]["initialization"]["infrastructureProvisioned"] == true
}

/// Whether the infrastructure belongs to the Cluster that no process may take it from.
fn is_lent(infrastructure: &Value) -> bool {
    infrastructure["metadata"]["ownerReferences"][0]["name"] == LENDER
}

/// The user and the provider, until the end of the run.
pub(crate) async fn live(world: World) {
    for number in 0.. {
        let number = Number(CLUSTERS, number);
        let mut rng = world.with(|state| state.plan.rng(number));
        sleep(Duration::from_millis(rng.random_range(1..1_000))).await;
        world.with(|state| {
            let cluster = rng.random_range(0..NAMES);
            if state.is_busy && state.plan.permits(number) && rng.random_range(0..4) == 0 {
                state.edit_cluster(number, cluster);
            }
            state.provide(number, &mut rng);
            if state.plan.has_aws() && state.is_busy && state.plan.permits(number) {
                state.edit_aws_cluster(number, &mut rng);
            }
        });
    }
}

impl State {
    /// Makes the kinds, the infrastructure that belongs to another Cluster, and the Cluster that refers to it.
    pub(crate) fn register_clusters(&mut self) {
        let ours = json!({"app.kubernetes.io/managed-by": "infra-controller-manager"});
        let contract = json!({"cluster.x-k8s.io/v1beta2": "v1beta2"});
        for (plural, group, labels) in
            [("clusters", "cluster.x-k8s.io", ours), ("otherclusters", GROUP, contract)]
        {
            let metadata = json!({"name": format!("{plural}.{group}"), "labels": labels});
            self.edit_at(Method::POST, CRDS.to_owned(), &json!({"metadata": metadata}));
        }
        let owner = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": LENDER, "uid": "lender-uid",
        });
        let name = name_of(BORROWER);
        let metadata = json!({"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]});
        self.edit_at(Method::POST, path_of("otherclusters"), &json!({"metadata": metadata}));
        (0..NAMES).for_each(|cluster| self.add_cluster(cluster));
        if self.plan.has_aws() {
            self.register_aws_cluster();
        }
    }

    /// Makes a Cluster and its infrastructure, unless that is there.
    fn add_cluster(&mut self, cluster: usize) {
        let name = name_of(cluster);
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        if self.store.get(&key("otherclusters", &name)).is_none() {
            self.edit_at(Method::POST, path_of("otherclusters"), &json!({"metadata": metadata}));
        }
        let reference = |kind: &str| json!({"apiGroup": GROUP, "kind": kind, "name": name});
        let spec = json!({
            "infrastructureRef": reference("OtherCluster"),
            "controlPlaneRef": reference("OtherControlPlane"),
        });
        let object = json!({"metadata": metadata, "spec": spec});
        self.edit_at(Method::POST, path_of("clusters"), &object);
    }

    /// A user creates or deletes a Cluster.
    fn edit_cluster(&mut self, number: Number, cluster: usize) {
        let name = name_of(cluster);
        match self.store.get(&key("clusters", &name)) {
            None => {
                self.count(number, "Cluster created");
                self.add_cluster(cluster);
            }
            // Without its finalizer it would go at once, and its infrastructure would stay as the user made it.
            Some(found) if !is_deleting(found) && found["metadata"]["finalizers"].is_array() => {
                self.count(number, "Cluster deleted");
                self.remove_cluster(&name);
            }
            Some(_) => {}
        }
    }

    pub(crate) fn remove_cluster(&mut self, name: &str) {
        self.edit_at(Method::DELETE, format!("{}/{name}", path_of("clusters")), &Value::Null);
    }

    /// The provider takes a step with each infrastructure: holds it, makes it, or deletes it.
    fn provide(&mut self, number: Number, rng: &mut SmallRng) {
        let all = self.store.list("otherclusters", NAMESPACE, self.store.revision());
        let all: Vec<Object> = all.into_iter().cloned().collect();
        for object in all {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let step = match (is_deleting(&object), has_provider(&object)) {
                (false, false) => json!({"metadata": {"finalizers": [FINALIZER]}}),
                (true, true) => json!({"metadata": {"finalizers": null}}),
                (false, true) if !is_provisioned(&object) => json!({
                    "spec": {"controlPlaneEndpoint": {"host": format!("{name}.example.com"), "port": 6443}},
                    "status": {"initialization": {"provisioned": true}},
                }),
                _ => continue,
            };
            // The finalizer comes at once: without it a deletion would not wait.
            if has_provider(&object) && rng.random_range(0..6) != 0 {
                continue;
            }
            if step["status"].is_object() {
                self.count(number, "infrastructure ready");
            }
            self.edit_at(Method::PATCH, format!("{}/{name}", path_of("otherclusters")), &step);
        }
    }

    /// Judges what a process changed since this version (C11).
    pub(crate) fn judge_clusters(&mut self, since: u64) {
        let changes: Vec<Change> = self.store.changes_after(since).to_vec();
        for change in changes {
            let verdict = match change.key.resource {
                "clusters" => self.judge_cluster(&change),
                "otherclusters" | "awsclusters" => self.judge_infrastructure(&change),
                _ => None,
            };
            if let Some(why) = verdict {
                self.violate(format!("C11: {} {why}", change.key.name));
            }
            if change.key.resource == "awsclusters" && change.after.is_none() {
                self.judge_end_on_aws();
            }
        }
    }

    fn judge_cluster(&self, change: &Change) -> Option<&'static str> {
        let kinds = ["otherclusters", "awsclusters"];
        let infrastructure =
            kinds.into_iter().find_map(|kind| self.store.get(&key(kind, &change.key.name)));
        let own = infrastructure.filter(|it| !is_lent(it));
        let was_ready = change.before.as_deref().is_some_and(says_ready);
        match &change.after {
            None if own.is_some() => Some("is gone before its infrastructure"),
            Some(after) if says_ready(after) && !was_ready => {
                let is_ready = own.is_some_and(|it| is_provisioned(it));
                (!is_ready).then_some("is said to have infrastructure that is not ready")
            }
            _ => None,
        }
    }

    fn judge_infrastructure(&self, change: &Change) -> Option<&'static str> {
        let before = change.before.as_deref()?;
        if is_lent(before) {
            return Some("belongs to another Cluster and is written");
        }
        let is_deleted = change.after.as_deref().is_none_or(is_deleting) && !is_deleting(before);
        let cluster = self.store.get(&key("clusters", &change.key.name));
        let lives = cluster.is_some_and(|it| !is_deleting(it));
        (is_deleted && lives).then_some("lives and loses its infrastructure")
    }

    /// The first Cluster that is not as it should be at rest, and why.
    fn unsettled(&self) -> Option<String> {
        (0..NAMES).find_map(|cluster| {
            let name = name_of(cluster);
            let infrastructure = self.store.get(&key("otherclusters", &name));
            let why = match self.store.get(&key("clusters", &name)) {
                Some(found) if is_deleting(found) => "is still being deleted",
                Some(found) if !says_ready(found) && cluster != BORROWER => "is not ready",
                None if infrastructure.is_some_and(|it| !is_lent(it)) => {
                    "is gone without its infrastructure"
                }
                _ => return None,
            };
            Some(format!("{name} {why}"))
        })
    }
}

/// Waits until each Cluster is ready or gone.
pub(crate) async fn at_rest(world: &World) {
    let limit = Instant::now() + SETTLES;
    while let Some(why) = world.with(|state| state.unsettled()) {
        if Instant::now() >= limit {
            world.with(|state| state.violate(format!("C11: {why} {SETTLES:?} later")));
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
}

/// All Clusters are deleted, and nothing of them is left.
pub(crate) async fn all_end(world: &World) {
    world.with(|state| {
        for name in (0..NAMES).map(name_of) {
            if state.store.get(&key("clusters", &name)).is_some_and(|it| !is_deleting(it)) {
                state.remove_cluster(&name);
            }
        }
    });
    at_rest(world).await;
}
