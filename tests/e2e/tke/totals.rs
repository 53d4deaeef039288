//! A member with many Pods, and what they come to.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::scene::condition;

const PODS: usize = 2_000;

/// 2,000 Pods on two Nodes: every tenth Pod waits for a Node, and every hundredth has ended.
pub(crate) async fn populate(client: &kube::Client) {
    let nodes = Api::<Node>::all(client.clone());
    for (name, ready) in [("a", "True"), ("b", "False")] {
        let node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({"status": {
            "capacity": {"cpu": "3500m", "memory": "8Gi"},
            "allocatable": {"cpu": "3", "memory": "7.5Gi"},
            "conditions": [{"type": "Ready", "status": ready}],
        }});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    stream::iter(0..PODS)
        .map(async |number| {
            let name = format!("p{number}");
            let node = (number % 10 != 0).then_some("a");
            let pod = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i",
                    "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}]},
            }));
            pods.create(&PostParams::default(), &pod.unwrap()).await?;
            if number % 100 == 1 {
                let ended = json!({"status": {"phase": "Succeeded"}});
                pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&ended)).await?;
            }
            Ok::<_, kube::Error>(())
        })
        .buffer_unordered(32)
        .try_collect::<()>()
        .await
        .unwrap();
}

/// The totals are there.
pub(crate) fn are_there(status: &Value) -> bool {
    status["resource"].is_object() && condition(status, "ResourceSynced")["status"] == "True"
}

/// Asserts that the totals are those of [`populate`].
pub(crate) fn assert_exact(status: &Value) {
    let resource = &status["resource"];
    let of =
        |cpu: &str, mebibytes: u64| json!({"cpu": cpu, "memory": (mebibytes << 20).to_string()});
    assert_eq!(resource["capacity"], of("7", 16 << 10));
    assert_eq!(resource["allocatable"], of("6", 15 << 10));
    // 1,800 on a Node without the 20 that have ended, and 200 that wait.
    assert_eq!(resource["allocated"], of("1780m", 1780));
    assert_eq!(resource["allocating"], of("200m", 200));
    assert_eq!(resource["nodes"], json!({"total": 2, "ready": 1, "schedulable": 1}));
    assert_eq!(resource["pods"], 1980);
    assert_eq!(condition(status, "NodesReady")["message"], "1 of 2 nodes are ready");
}
