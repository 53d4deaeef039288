//! `--cluster-health-audit` next to another controller that still publishes.

use http::Method;
use serde_json::{Value, json};
use tests::control_plane::ADMIN_GROUP;
use tests::fault_proxy::FaultProxy;
use tests::kubectl::{FEDERATION, Kubectl, hub};
use tests::member::{Account, member};
use tests::planted::{Discreet, Planted};
use tests::process::Process;

use crate::kubefed::{secret, spec};

fn cluster(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": FEDERATION}, "spec": spec})
}

/// Writes the status as the other controller.
fn publish(hub: &Kubectl, name: &str, kind: &str, reason: &str) {
    let condition = json!({"type": kind, "status": "True", "reason": reason,
        "lastProbeTime": "2026-01-01T00:00:00Z"});
    hub.patch_status(
        &format!("kubefedcluster {name} -n {FEDERATION}"),
        &json!({ "conditions": [condition] }),
    );
}

/// rule:an-audit-writes-nothing
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_writes_nothing_and_reports_objects_that_differ() {
    let (hub, member) = futures::join!(hub(), member());
    let account = Account::of(&member).await;
    hub.create_all(&[
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": secret(&member, &account.token),
            "metadata": {"name": "one", "namespace": FEDERATION}}),
        cluster("agreed", &spec(&member, "one")),
        cluster("well", &spec(&member, "one")),
        cluster("gone", &json!({"apiEndpoint": "127.0.0.1:9", "secretRef": {"name": "one"}})),
    ]);
    publish(&hub, "agreed", "Ready", "ClusterReady");
    publish(&hub, "well", "Offline", "ClusterNotReachable");
    publish(&hub, "gone", "Ready", "ClusterReady");
    let proxy = FaultProxy::start(&hub.plane, "auditor", &[ADMIN_GROUP]).await;
    let manager = Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--controllers=cluster-health-controller", "--leader-elect=false"])
        .args(["--cluster-health-audit", "--cluster-health-heartbeat-interval=0s"])
        .args(["--cluster-health-period=1s", "--cluster-health-timeout=900ms"])
        .args(["--cluster-health-confirm-interval=1s"])
        .start();
    let planted = Planted::default();
    planted.plant(&account.token);
    let manager = Discreet::new(manager, &planted, &hub);
    manager.line("Audit: member clusters are probed, but no status and no event is written").await;
    for (ours, stored) in [("ready", "offline"), ("offline", "ready")] {
        let labels = [("flavour", "kubefed"), ("ours", ours), ("stored", stored)];
        manager.until_metric("clusterhealth_audit_differences", &labels, |it| it > 0.0).await;
    }
    let line =
        manager.line_where("the difference", |it| it.contains("Audit") && it.contains("gone"));
    assert!(line.await.contains("ready"), "what it says");
    let (_, page) = manager.get("/debug/clusterhealth?name=well").await.unwrap();
    assert!(page.lines().nth(1).unwrap().ends_with("offline"), "{page}");
    let agreed = [("cluster", "agreed")];
    manager.until_metric("clusterhealth_cluster_audit_differs", &agreed, |it| it == 0.0).await;
    drop(manager);
    // To ask what one may do changes nothing.
    let asks = |path: &str| path.starts_with("/apis/authorization.k8s.io/");
    let requests = proxy.requests().into_iter().map(|it| (it.request.method, it.request.path));
    let writes: Vec<_> =
        requests.filter(|(method, path)| *method != Method::GET && !asks(path)).collect();
    assert_eq!(writes, []);
}
