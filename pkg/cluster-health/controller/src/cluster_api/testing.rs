//! Objects of the tests of this flavour.

use std::sync::Arc;

use objects::Object;
use serde_json::{Value, json};

use super::ClusterApi;
use crate::api::Condition;
use crate::api::cluster_api::{CLUSTERS, Cluster};
use crate::engine::tests::pipeline::{Conforming, prober};
use crate::engine::tests::scene::{Scene, policy};
use crate::shared_flavour::{Shared, SharedOptions};

/// A Cluster whose control plane answers, as `change` leaves it.
pub(super) fn sent(change: impl FnOnce(&mut Value)) -> Value {
    let mut whole = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "1"},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
        "status": {"initialization": {"controlPlaneInitialized": true}},
    });
    change(&mut whole);
    whole
}

pub(super) fn cluster(change: impl FnOnce(&mut Value)) -> Object<Cluster> {
    Object::read(sent(change)).unwrap()
}

/// A kubeconfig with this user, and further fields of its cluster.
pub(crate) fn kubeconfig(user: &str, cluster: &str) -> String {
    format!(
        "current-context: one\ncontexts:\n- {{name: one, context: {{cluster: c, user: u}}}}\nclusters:\n\
         - {{name: c, cluster: {{server: \"https://10.0.0.1:6443\"{cluster}}}}}\nusers:\n- {{name: u, user: {user}}}\n"
    )
}

impl Conforming for ClusterApi {
    const LOCKS: bool = true;

    fn make(_: &Scene) -> Self {
        let options = SharedOptions { namespaces: Vec::new(), policy: policy() };
        Self { shared: Shared::new(options, false, Arc::new(prober())) }
    }

    fn object(uid: &str, version: u64, credential: u64, supervision: &str) -> Value {
        sent(|it| {
            it["metadata"]["uid"] = uid.into();
            it["metadata"]["resourceVersion"] = version.to_string().into();
            let name = if credential == 0 { "no/name".into() } else { format!("s{credential}") };
            it["metadata"]["annotations"] = json!({"infra-controller-manager/probe-secret": name});
            match supervision {
                "left alone" => it["status"]["initialization"] = json!({}),
                "locked" => it["spec"]["paused"] = true.into(),
                _ => {}
            }
        })
    }

    fn foreign(mut object: Value) -> Value {
        object["status"]["conditions"] = json!([{"type": "Available", "status": "True"}]);
        object
    }

    fn written(scene: &Scene) -> Option<String> {
        let status = scene.api.status(&CLUSTERS[0], "ns/a")?;
        let conditions: Vec<Condition> =
            serde_json::from_value(status["conditions"].clone()).ok()?;
        let healthy = Condition::find(&conditions, "infra-controller-manager/Healthy")?;
        if healthy.reason == "ClusterPaused" {
            return Some("paused".to_owned());
        }
        health::Health::from_ready_reason(&healthy.reason).map(|health| format!("{health:?}"))
    }
}
