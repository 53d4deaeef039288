//! A management cluster whose group is served by another API server, as TKEStack's own does it.

use serde_json::json;
use tests::kubectl::Kubectl;
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::{PATIENCE, Process};

/// In the ClusterCredential, and nowhere else.
const TOKEN: &str = "planted-token-behind-another-server";

/// Lets the API server of `hub` serve the group by that of `behind`, whom everybody may ask.
fn aggregate(hub: &Kubectl, behind: &Kubectl) {
    behind.create(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}],
    }));
    let port: u16 = behind.plane.url().rsplit_once(':').unwrap().1.parse().unwrap();
    hub.create(&json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "tke-platform-api", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }));
    hub.create(&json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.platform.tkestack.io"},
        "spec": {
            "group": "platform.tkestack.io", "version": "v1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 1000, "versionPriority": 5,
            "service": {"name": "tke-platform-api", "namespace": "default", "port": port},
        },
    }));
    hub.run("wait --for=condition=Available --timeout=60s apiservice v1.platform.tkestack.io");
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_an_aggregated_api_server_are_probed_and_no_crd_takes_their_place() {
    let (hub, behind) = (Kubectl::without_crds().await, Kubectl::with_crds().await);
    aggregate(&hub, &behind);
    hub.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-one"}, "tenantID": "t", "clusterName": "cls-one", "token": TOKEN,
    }));
    hub.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-one"},
        "spec": {"tenantID": "t", "type": "Imported",
            "addresses": [{"type": "Real", "host": "127.0.0.1", "port": 1}]},
    }));
    let manager = Process::with_kubeconfig(&hub.plane.admin_kubeconfig())
        .args(["--install-crds", "--controllers=cluster-health-controller", "--v=4"])
        .start();
    let planted = Planted::default();
    planted.plant(TOKEN);
    let manager = Discreet::new(manager, &planted, &hub);
    for kind in ["clusters", "machines", "clustercredentials"] {
        let crd = format!("{kind}.platform.tkestack.io");
        let left = |line: &str| {
            line.contains("CRD not installed") && line.contains(&crd) && line.contains("aggregated")
        };
        manager.line_where(&crd, left).await;
    }
    poll("the cluster has failed", async || {
        let status = behind.object("cls cls-one")["status"].clone();
        (status["phase"] == "Failed").then_some(())
    })
    .await;
    let crds = hub.run("get crd -o name");
    assert!(!crds.contains("platform.tkestack.io"), "{crds}");
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
}
