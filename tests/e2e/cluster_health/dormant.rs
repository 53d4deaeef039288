//! The default: cluster-health and Cluster API are not configured, and their kinds are not served yet.

use std::fs;

use serde_json::json;
use tests::Process;
use tests::kubectl::{FEDERATION, IDENTITY, Kubectl};
use tests::planted::{Discreet, Planted};
use tests::poll::poll;

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
/// Token in the Secret of the member; no other place may contain it.
const TOKEN: &str = "planted-token-of-one-that-sleeps";

#[tokio::test(flavor = "multi_thread")]
async fn a_process_sleeps_with_the_rights_of_every_process_until_a_kind_of_members_is_ours() {
    let hub = Kubectl::without_crds().await;
    for file in ["role", "role-binding"] {
        hub.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    let identity = hub.plane.kubeconfig(IDENTITY, &GROUPS).unwrap();
    let manager =
        Process::with_kubeconfig(&identity).args(["--leader-elect=false", "--v=2"]).start();
    let planted = Planted::default();
    let manager = Discreet::new(manager, &planted, &hub);
    for group in
        ["core.kubefed.io", "platform.tkestack.io", "\"clusters.cluster.x-k8s.io", "awsclusters."]
    {
        let sleeps = |line: &str| line.contains("Kind is dormant") && line.contains(group);
        manager.line_where("a kind is dormant", sleeps).await;
    }
    poll("it is ready", async || {
        manager.get("/readyz").await.is_ok_and(|(status, _)| status == 200).then_some(())
    })
    .await;
    assert_eq!(own_threads(&manager), 0);
    assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
    let refused = manager.metric("rest_client_requests_total", &[("code", "403")]).await;
    assert_eq!(refused, None, "forbidden requests");
    let (status, page) = manager.get("/debug/clusterhealth").await.unwrap();
    assert!(status == 503 && page.contains("does not run in this process"), "{status}: {page}");
    let page = manager.get("/metrics").await.unwrap().1;
    assert!(!page.contains("clusterhealth_"), "{page}");

    hub.run(&format!("create namespace {FEDERATION}"));
    for file in ["cluster-health", "cluster-health-account", "cluster-health-process"] {
        hub.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    hub.run("apply -f config/crd/core.kubefed.io_kubefedclusters.yaml");
    hub.await_crds();
    planted.plant(TOKEN);
    hub.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": {"token": TOKEN},
        "metadata": {"name": "one", "namespace": FEDERATION},
    }));
    hub.create(&json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "one", "namespace": FEDERATION},
        "spec": {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "one"}},
    }));
    poll("the member is looked at", async || {
        let status = hub.object(&format!("-n {FEDERATION} kubefedcluster one"))["status"].clone();
        (status["conditions"][0]["reason"] == "ClusterNotReachable").then_some(())
    })
    .await;
    assert!(own_threads(&manager) > 0);
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
    for kind in [
        "kubefedclusters.core.kubefed.io",
        "clusters.platform.tkestack.io",
        "\"clusters.cluster.x-k8s.io",
        "awsclusters.infrastructure.cluster.x-k8s.io",
    ] {
        let lines = manager.lines();
        let reported = |line: &&String| line.contains("Kind is dormant") && line.contains(kind);
        let reported: Vec<_> = lines.iter().filter(reported).collect();
        assert_eq!(reported.len(), 1, "{reported:?}");
    }
}

/// Number of threads of cluster-health.
fn own_threads(manager: &Process) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", manager.pid())).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "cluster-health").count()
}
