//! Totals of a member with many Pods.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::scene::{Scene, condition};

const PODS: usize = 2_000;

/// 2,000 Pods on two Nodes, of which every tenth waits for a Node and every hundredth has ended.
async fn populate(client: &kube::Client) {
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

#[tokio::test(flavor = "multi_thread")]
async fn the_totals_of_a_member_with_2000_pods_are_exact_over_many_pages() {
    let mut scene = Scene::set().await;
    populate(&scene.member.client().await).await;
    scene.import("cls-many");
    scene.admit("cls-many");
    let manager = scene.start("--cluster-health-summary-page-size=300");
    let status = scene.until("cls-many", "is summed up", |it| it["resource"].is_object()).await;
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
    assert_eq!(condition(&status, "ResourceSynced")["status"], "True");
    assert_eq!(condition(&status, "NodesReady")["message"], "1 of 2 nodes are ready");
    scene.end(manager).await;
}
