//! The dashboard of cluster-health on a real Prometheus, with members of both flavours in every state.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tests::Process;
use tests::control_plane::{ADMIN_GROUP, ControlPlane};
use tests::kubectl::{FEDERATION, Kubectl, hub};
use tests::member::{Account, member};
use tests::prometheus_server::{PrometheusServer, check_metrics};

use crate::kubefed::secret;

fn kubefed(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": FEDERATION}, "spec": spec})
}

/// Creates members: healthy, without certificate checks, unreachable, with a wrong token, and a
/// Cluster of TKEStack that has a second address without a server.
fn members(hub: &Kubectl, member: &ControlPlane, token: &str) {
    let (url, of) = (member.url(), json!({"name": "one"}));
    let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
    let address = |kind: &str, port: u16| json!({"type": kind, "host": "127.0.0.1", "port": port});
    hub.create_all(&[
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": secret(member, token),
            "metadata": {"name": "one", "namespace": FEDERATION}}),
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": secret(member, "of-no-user"),
            "metadata": {"name": "other", "namespace": FEDERATION}}),
        kubefed("turning", &json!({"apiEndpoint": url, "secretRef": {"name": "other"}})),
        kubefed("well", &json!({"apiEndpoint": url, "secretRef": of})),
        kubefed(
            "unchecked",
            &json!({"apiEndpoint": url, "secretRef": of,
            "disabledTLSValidations": ["*"]}),
        ),
        kubefed("gone", &json!({"apiEndpoint": "https://127.0.0.1:9", "secretRef": of})),
        json!({"apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
            "metadata": {"name": "cc-tke"}, "tenantID": "t", "clusterName": "cls-tke",
            "token": token, "caCert": STANDARD.encode(member.ca_pem())}),
        json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
            "metadata": {"name": "cls-tke"}, "spec": {"tenantID": "t", "type": "Imported",
                "addresses": [address("Real", port), address("Real", 9)]}}),
    ]);
    // The record of two whole days, from which the process that is the next owner goes on.
    let days = URL_SAFE_NO_PAD.encode([0, 0, 0x80, 0xa3, 5, 0, 0x80, 0xa3, 5, 0]);
    let record = format!("v1.{}.{days}", Timestamp::now().as_second() / 86_400);
    let well = format!("kubefedcluster well -n {FEDERATION}");
    hub.patch_status(&well, &json!({"conditions": [], "availability": record}));
}

/// Creates the document of one check, which fails in a member without a ready Node.
fn failing_check(hub: &Kubectl) {
    let text = "checks: [{name: NodesUp, interval: 30s, nodesReady: {minRatio: 0.5}}]";
    hub.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"checks.yaml": text},
        "metadata": {"name": "checks", "namespace": FEDERATION}}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus: scripts/check-deploy"]
async fn every_panel_of_the_dashboard_has_data_on_a_real_prometheus() {
    let (hub, member) = futures::join!(hub(), member());
    let account = Account::of(&member).await;
    account.empower().await;
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "never-ready"}})).unwrap();
    let nodes = Api::<Node>::all(member.client().await);
    nodes.create(&PostParams::default(), &node).await.unwrap();
    members(&hub, &member, &account.token);
    failing_check(&hub);
    let kubeconfig = hub.plane.kubeconfig("watcher", &[ADMIN_GROUP]).unwrap();
    let start = |args: &[&str]| {
        Process::with_kubeconfig(&kubeconfig)
            .args(["--controllers=cluster-health-controller", "--leader-elect=false"])
            .args(["--cluster-health-period=1s", "--cluster-health-timeout=900ms"])
            .args(["--cluster-health-confirm-interval=1s", "--cluster-health-summary-interval=1s"])
            .args(["--cluster-health-objective=99.9"])
            .args([format!("--cluster-health-checks-config={FEDERATION}/checks")])
            .args(args.iter().copied())
            .start()
    };
    let watching = start(&[]);
    // It takes longer to believe that a member has recovered.
    let auditing = start(&["--cluster-health-audit", "--cluster-health-success-threshold=1000"]);
    let prometheus = PrometheusServer::start(&[&watching, &auditing], "").await;
    for process in [&watching, &auditing] {
        let turning = [("cluster", "turning")];
        process.until_metric("clusterhealth_cluster_ready", &turning, |it| it == 0.0).await;
    }
    let check = [("cluster", "well"), ("check", "NodesUp")];
    watching.until_metric("clusterhealth_check_status", &check, |it| it == 0.0).await;
    let right = json!({"stringData": {"token": account.token}});
    hub.patch(&format!("secret other -n {FEDERATION}"), "merge", &right);
    prometheus.shows("cluster-health").await;
    for process in [&watching, &auditing] {
        check_metrics(&process.get("/metrics").await.unwrap().1);
    }
}
