//! Reasons for which a Node waits, and changes that end the wait.

use serde_json::{Value, json};
use tests::kubectl::{IDENTITY, Kubectl};
use tests::poll::poll;

use crate::scene::{
    KIND, MULTI, Scene, cluster_cidr, create, everybody, find, is_ready, labelled, start,
};

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

#[tokio::test(flavor = "multi_thread")]
async fn a_starved_node_is_served_by_a_new_object_and_after_a_change_of_its_labels() {
    let scene =
        Scene::begin(&[cluster_cidr("foo", &labelled(&["10.0.0.0/16"], 8, &["foo"]))], "").await;
    let why = scene.starves("a", &["bar"]).await;
    assert!(why.contains("no ClusterCIDR selects the Node"), "{why}");
    scene.starves("b", &["baz"]).await;
    scene.hub.create(&cluster_cidr("bar", &labelled(&["10.1.0.0/16"], 8, &["bar"])));
    assert_eq!(scene.assigned("a").await, ["10.1.0.0/24"]);
    scene.hub.run("label node b foo=");
    assert_eq!(scene.assigned("b").await, ["10.0.0.0/24"]);
    // Who has a block is not moved.
    scene.hub.run("label node b foo- bar=");
    assert_eq!(scene.add("c", &["foo"]).await, ["10.0.1.0/24"]);
    assert_eq!(scene.nodes.now().cidrs("b"), ["10.0.0.0/24"]);
    scene.end(&[]).await;
}

fn tainted(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
    })
}

/// `rule:unlabelled-nodes-wait`
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_its_cloud_is_still_to_label_waits_for_that() {
    let objects = [
        cluster_cidr("all", &everybody(&["10.0.0.0/16"], 8)),
        cluster_cidr("foo", &labelled(&["10.1.0.0/16"], 8, &["foo"])),
    ];
    let scene = Scene::begin(&objects, "").await;
    scene.hub.create_all(&[tainted("labelled"), tainted("bare")]);
    assert_eq!(
        scene.add("other", &[]).await,
        ["10.0.0.0/24"],
        "who has no such taint does not wait"
    );
    assert!(scene.nodes.now().cidrs("labelled").is_empty(), "it waits");
    scene.hub.run("label node labelled foo=");
    assert_eq!(scene.assigned("labelled").await, ["10.1.0.0/24"]);
    scene.hub.run(&format!("taint node bare {UNINITIALIZED}-"));
    assert_eq!(scene.assigned("bare").await, ["10.0.1.0/24"]);
    scene.end(&[]).await;
}

/// `rule:unlabelled-nodes-wait`
#[tokio::test(flavor = "multi_thread")]
async fn labels_that_never_come_are_not_waited_for_longer_than_the_flag_says() {
    let objects = [cluster_cidr("all", &everybody(&["10.0.0.0/16"], 8))];
    let scene = Scene::begin(&objects, "--cluster-cidr-label-wait=2s").await;
    scene.hub.create(&tainted("a"));
    assert_eq!(scene.assigned("a").await, ["10.0.0.0/24"]);
    let took = "node_ipam_assignment_duration_seconds_sum";
    scene.manager.until_metric(took, &[], |seconds| seconds >= 2.0).await;
    scene.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_kind_the_product_is_well_and_serves_once_the_kind_is_there() {
    let hub = Kubectl::without_crds().await;
    for file in ["role", "role-binding", "cluster-cidrs", "node-ipam-records"] {
        hub.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    let identity = hub.plane.kubeconfig(IDENTITY, &GROUPS).unwrap();
    let client = hub.plane.client().await;
    let nodes = tests::Observer::start(&client).await;
    let manager = start(&identity, &format!("{MULTI} --cluster-cidr=10.0.0.0/16"));
    manager.line("ClusterCIDRs are not served").await;
    create(&client, "a", &[]).await;
    poll("it is ready", async || {
        manager.get("/readyz").await.is_ok_and(|(status, _)| status == 200).then_some(())
    })
    .await;
    hub.run("apply -f config/crd/networking.x-k8s.io_clustercidrs.yaml");
    nodes.until("a has a pod CIDR", |now| now.cidrs("a") == ["10.0.0.0/24"]).await;
    poll("the object of the flags is ready", async || {
        find(&hub, "default-cluster-cidr").filter(is_ready)
    })
    .await;
    assert!(hub.run(&format!("get {KIND}")).contains("default-cluster-cidr"));
    let refused = manager.metric("rest_client_requests_total", &[("code", "403")]).await;
    assert_eq!(refused, None, "forbidden requests");
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
}
