//! Objects and options of the tests of this flavour.

use std::sync::Arc;

use objects::Object;
use serde_json::{Value, json};

use super::ClusterProfiles;
use super::options::ClusterProfileOptions;
use super::providers::Providers;
use crate::api::Condition;
use crate::api::cluster_profile::{CLUSTER_PROFILES, ClusterProfile};
use crate::engine::tests::pipeline::{Conforming, prober};
use crate::engine::tests::scene::{Scene, policy};
use crate::shared_flavour::{Shared, SharedOptions};

/// The options of the flags' defaults.
pub(super) fn options() -> ClusterProfileOptions {
    ClusterProfileOptions {
        shared: SharedOptions { namespaces: Vec::new(), policy: policy() },
        selector: None,
        managers: vec!["infra-controller-manager".into()],
        secret_namespaces: Vec::new(),
        providers: Providers::built_in(),
    }
}

/// A profile with a token in the Secret `ns/s`, as `change` leaves it.
pub(crate) fn sent(change: impl FnOnce(&mut Value)) -> Value {
    let mut whole = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha2", "kind": "ClusterProfile",
        "metadata": {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "1"},
        "spec": {"clusterManager": {"name": "another"}},
        "status": {"accessProviders": [{"name": "secretreader", "cluster": {
            "server": "https://10.0.0.1",
            "extensions": [{
                "name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "s"},
            }],
        }}]},
    });
    change(&mut whole);
    whole
}

pub(crate) fn profile(change: impl FnOnce(&mut Value)) -> Object<ClusterProfile> {
    Object::read(sent(change)).unwrap()
}

impl Conforming for ClusterProfiles {
    const LOCKS: bool = false;

    fn make(_: &Scene) -> Self {
        let selector = kube_api::LabelSelector::parse("!ignored").ok();
        let options = ClusterProfileOptions { selector, ..options() };
        let shared = Shared::new(options.shared.clone(), false, Arc::new(prober()));
        Self::new(options, shared)
    }

    fn object(uid: &str, version: u64, credential: u64, supervision: &str) -> Value {
        sent(|it| {
            it["metadata"]["uid"] = uid.into();
            it["metadata"]["resourceVersion"] = version.to_string().into();
            let config = "/status/accessProviders/0/cluster/extensions/0/extension/clusterName";
            *it.pointer_mut(config).unwrap() = format!("s{credential}").into();
            if credential == 0 {
                it["status"] = json!({});
            }
            if supervision == "left alone" {
                it["metadata"]["labels"] = json!({"ignored": "true"});
            }
        })
    }

    fn foreign(mut object: Value) -> Value {
        object["status"]["conditions"] = json!([{"type": "Joined", "status": "True"}]);
        object
    }

    fn written(scene: &Scene) -> Option<String> {
        let status = scene.api.status(&CLUSTER_PROFILES[0], "ns/a")?;
        let conditions: Vec<Condition> =
            serde_json::from_value(status["conditions"].clone()).ok()?;
        let healthy = Condition::find(&conditions, "infra-controller-manager/Healthy")?;
        health::Health::from_ready_reason(&healthy.reason).map(|health| format!("{health:?}"))
    }
}
