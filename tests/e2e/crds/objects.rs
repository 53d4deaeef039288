//! Fields that the API server stores, and objects that it refuses.

use serde_json::{Value, json};

use crate::plane;

/// A Cluster of upstream's newest release, with fields that no schema here names.
fn whole_cluster() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-1"},
        "spec": {
            "finalizers": ["cluster"], "tenantID": "t", "displayName": "one", "type": "Baremetal",
            "version": "1.22.3-tke.1", "networkType": "galaxy", "networkDevice": "eth1",
            "clusterCIDR": "10.244.0.0/16", "serviceCIDR": null, "dnsDomain": "example.org",
            "bootstrapApps": [{"app": {"spec": {"name": "a"}}}],
            "features": {
                "ipvs": null, "gpuType": null, "skipConditions": ["EnsureNvidiaDriver"],
                "ha": {"tke": {"vip": "10.0.0.9", "vrid": 1}, "thirdParty": null},
                "files": [{"src": "a", "dst": "b", "mode": 7}],
                "upgrade": {"mode": "Auto", "strategy": {"maxUnready": 1, "drainNodeBeforeUpgrade": true}},
            },
            "properties": {"maxClusterServiceNum": 256, "maxNodePodNum": 64, "odd": 1},
            "machines": [{
                "ip": "10.0.0.1", "port": 22, "username": "root", "password": "cGxhbnRlZA==",
                "labels": {"a": "b"}, "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": null}],
                "proxy": {"type": "SOCKS5", "ip": "10.0.0.2", "port": 1080, "odd": true},
                "odd": {"deep": [1]},
            }],
            "kubeletExtraArgs": {"max-pods": "64"}, "clusterCredentialRef": {"name": "cc-1"},
            "etcd": {"local": {"dataDir": "/var"}},
        },
        "status": {"phase": "Running"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_object_of_upstream_comes_back_as_it_was_apart_from_its_status() {
    let kubectl = plane().await;
    kubectl.create(&whole_cluster());
    let stored = kubectl.object("cls cls-1");
    assert_eq!(stored["spec"], whole_cluster()["spec"]);
    assert_eq!(stored.get("status"), None, "the status of a new object");

    // As Go writes a time that was never set.
    let status = json!({
        "phase": "Running", "locked": null, "odd": {"deep": true},
        "conditions": [{"type": "EnsureX", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": null, "odd": 1}],
        "addresses": [
            {"type": "Real", "host": "10.0.0.1", "port": 6443, "odd": 1},
            {"type": "Real", "host": "10.0.0.2", "port": 6443},
        ],
        "components": [{"type": "etcd", "replicas": {"desired": 3, "odd": 1}}],
        "resource": {"capacity": {"cpu": "1500m", "memory": "1Gi"}, "odd": {"x": 1}},
        "nodeCIDRMaskSize": 24,
    });
    kubectl.patch_status("cls cls-1", &status);
    let mut kept = status;
    // A null of a merge patch takes away.
    kept.as_object_mut().unwrap().remove("locked");
    let condition = kept["conditions"][0].as_object_mut().unwrap();
    condition.retain(|_, value| !value.is_null());
    assert_eq!(kubectl.object("cls cls-1")["status"], kept);
    assert_eq!(kubectl.object("cls cls-1")["spec"], whole_cluster()["spec"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_and_machines_keep_what_their_schema_does_not_name() {
    let kubectl = plane().await;
    let credential = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential", "metadata": {"name": "cc-1"},
        "tenantID": "t", "clusterName": "cls-1", "token": "planted", "caCert": "Y2E=",
        "bootstrapToken": null, "as": "u", "as-groups": ["g"], "as-user-extra": {"scopes": "a,b"},
        "impersonate-odd": "kept",
    });
    kubectl.create(&credential);
    let mut stored = kubectl.object("cc cc-1");
    stored["metadata"] = credential["metadata"].clone();
    assert_eq!(stored, credential);

    let machine = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc-1"},
        "spec": {"tenantID": "t", "clusterName": "cls-1", "type": "Edge", "ip": "10.0.0.5",
            "port": 22, "username": "root", "password": "cGxhbnRlZA==", "proxy": {"type": "SOCKS5"}},
    });
    kubectl.create(&machine);
    assert_eq!(kubectl.object("mc mc-1")["spec"], machine["spec"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_their_required_fields_or_with_odd_words_are_refused_by_name() {
    let kubectl = plane().await;
    let with = |at: &str, value: Value| {
        let mut cluster = whole_cluster();
        *cluster.pointer_mut(at).unwrap() = value;
        kubectl.create_refused(&cluster)
    };
    assert!(with("/spec/tenantID", json!(null)).contains("spec.tenantID"));
    assert!(with("/spec/type", json!(7)).contains("spec.type"));
    assert!(with("/spec/machines/0/port", json!(null)).contains("spec.machines[0].port"));
    let effect = with("/spec/machines/0/taints/0/effect", json!("Sometimes"));
    assert!(effect.contains("spec.machines[0].taints[0].effect"), "{effect}");
    let password = with("/spec/machines/0/password", json!("not base64"));
    assert!(password.contains("spec.machines[0].password"), "{password}");
    let machines: Vec<_> = vec![whole_cluster()["spec"]["machines"][0].clone(); 65];
    assert!(with("/spec/machines", json!(machines)).contains("must have at most 64 items"));
}
