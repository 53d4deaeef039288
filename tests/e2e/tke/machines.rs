//! Machines with the Nodes of a real API server.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::scene::{Scene, condition};

async fn make_node(client: &Client, name: &str, ip: &str) {
    let nodes = Api::<Node>::all(client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let info: serde_json::Map<_, _> = [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ]
    .into_iter()
    .map(|field| (field.to_owned(), json!(format!("{field} of {name}"))))
    .collect();
    let addresses = json!([{"type": "InternalIP", "address": ip}]);
    patch(client, name, &json!({"addresses": addresses, "nodeInfo": info})).await;
}

async fn make_ready(client: &Client, name: &str, ready: &str) {
    let conditions = json!([{"type": "Ready", "status": ready, "reason": "KubeletSays"}]);
    patch(client, name, &json!({ "conditions": conditions })).await;
}

async fn patch(client: &Client, name: &str, status: &Value) {
    let nodes = Api::<Node>::all(client.clone());
    let status = Patch::Strategic(json!({ "status": status }));
    nodes.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

/// Requests of this verb for Nodes that the member's API server has answered.
async fn asked(client: &Client, verb: &str) -> u64 {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = client.request_text(request).await.unwrap();
    let of_nodes = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && line.contains("resource=\"nodes\"")
            && line.contains(&format!("verb=\"{verb}\""))
    };
    let count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    metrics.lines().filter(of_nodes).map(count).sum()
}

fn states(status: &Value) -> [&str; 3] {
    let health = condition(status, "HealthCheck");
    [&status["phase"], &health["status"], &health["reason"]]
        .map(|text| text.as_str().unwrap_or_default())
}

async fn until(scene: &Scene, name: &str, wanted: [&str; 3]) -> Value {
    let what = format!("is {wanted:?}");
    scene.until_of("machine", name, &what, |status| states(status) == wanted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_follow_the_nodes_of_their_cluster_and_are_unknown_while_it_fails() {
    let scene = Scene::set().await;
    let member = scene.member.client().await;
    make_node(&member, "10.0.0.1", "192.0.2.1").await;
    make_ready(&member, "10.0.0.1", "True").await;
    make_node(&member, "b", "10.0.0.2").await;
    make_ready(&member, "b", "False").await;
    for (name, ip) in [("mc-ready", "10.0.0.1"), ("mc-idle", "10.0.0.2"), ("mc-gone", "10.0.0.3")] {
        scene.enlist(name, "cls-one", ip);
    }
    scene.enlist("mc-lost", "cls-none", "10.0.0.1");
    scene.import("cls-one");
    scene.admit("cls-one");
    let lists = asked(&member, "LIST").await;
    let manager = scene.start("--cluster-health-machine-period=2s");

    let status = until(&scene, "mc-ready", ["Running", "True", ""]).await;
    assert_eq!(status["machineInfo"]["kubeletVersion"], "kubeletVersion of 10.0.0.1");
    assert_eq!(status["machineInfo"].as_object().unwrap().len(), 10);
    let status = until(&scene, "mc-idle", ["Failed", "False", "NodeNotReady"]).await;
    assert_eq!(status["message"], "node b is not ready: KubeletSays");
    assert_eq!(status["machineInfo"]["osImage"], "osImage of b");
    let status = until(&scene, "mc-gone", ["Failed", "False", "HealthCheckFail"]).await;
    assert_eq!(status["reason"], "HealthCheckFail");
    until(&scene, "mc-lost", ["Running", "Unknown", "ClusterNotFound"]).await;
    let header = ["NAME", "TYPE", "IP", "STATUS", "AGE", "CLUSTER", "HEALTHY", "REASON"];
    let idle =
        ["mc-idle", "Baremetal", "10.0.0.2", "Failed", "AGE", "cls-one", "False", "NodeNotReady"];
    scene.prints("get mc -o wide", &[&header, &idle]).await;
    assert_eq!(asked(&member, "GET").await, 0, "no Node is asked for by itself");
    assert!(asked(&member, "LIST").await > lists, "the Nodes are listed");

    // The Node of a machine comes, another one becomes ready.
    make_node(&member, "c", "10.0.0.3").await;
    make_ready(&member, "c", "True").await;
    make_ready(&member, "b", "True").await;
    until(&scene, "mc-gone", ["Running", "True", ""]).await;
    until(&scene, "mc-idle", ["Running", "True", ""]).await;

    scene.freeze(true);
    until(&scene, "mc-ready", ["Running", "Unknown", "ClusterUnhealthy"]).await;
    until(&scene, "mc-gone", ["Running", "Unknown", "ClusterUnhealthy"]).await;
    scene.freeze(false);
    until(&scene, "mc-ready", ["Running", "True", ""]).await;

    let nodes = Api::<Node>::all(member.clone());
    nodes.delete("c", &DeleteParams::default()).await.unwrap();
    until(&scene, "mc-gone", ["Failed", "False", "HealthCheckFail"]).await;
    scene.hub.run("delete mc mc-gone");
    scene.has_event("MachineNotReady").await;
    scene.has_event("MachineReady").await;
    scene.end(manager).await;
}
