//! A management cluster whose group is served by another API server, as TKEStack's own does it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::control_plane::ADMIN_GROUP;
use tests::kubectl::Kubectl;
use tests::member::member;
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::{PATIENCE, Process, ports};

use crate::scene::{address, condition, pair, port};
use crate::upstream_crds;

/// Token in the ClusterCredential; no other place may contain it.
const TOKEN: &str = "planted-token-behind-another-server";

/// Lets the API server of `hub` serve the group by the API server of `behind`, which accepts every client.
pub(crate) fn aggregate(hub: &Kubectl, behind: &Kubectl) {
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
    hub.run("wait --for=condition=Available --timeout=300s apiservice v1.platform.tkestack.io");
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

/// The incident, on the API that it happened at.
///
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_tkestack_s_own_api_is_followed_down_and_up_again_after_its_summary() {
    let (hub, behind, mut member) =
        futures::join!(Kubectl::without_crds(), Kubectl::without_crds(), member());
    behind.create_all(&upstream_crds::all());
    behind.await_crds();
    aggregate(&hub, &behind);
    let admin = member.client_certificate("admin", &[ADMIN_GROUP], Duration::from_secs(3600));
    let mut credential = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-one"}, "tenantID": "t", "clusterName": "cls-one",
        "caCert": STANDARD.encode(member.ca_pem()),
    });
    credential.as_object_mut().unwrap().extend(pair(&admin.unwrap()).as_object().unwrap().clone());
    behind.create(&credential);
    behind.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-one"},
        "spec": {"tenantID": "t", "type": "Imported"},
    }));
    // As TKEStack writes it: an address of each master, and a condition of its installer.
    let addresses = json!([address(port(member.url())), address(ports::free_port())]);
    let installer = json!({"type": "EnsureX", "status": "True", "reason": "Done"});
    let status = json!({"addresses": addresses, "conditions": [installer]});
    behind.patch_status("cluster cls-one", &status);

    let manager = Process::with_kubeconfig(&hub.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health-controller", "--leader-elect=false", "--v=4"])
        .args(["--healthcheck-period=2s", "--cluster-health-tke-timeout=1s"])
        .args(["--cluster-health-confirm-interval=1s", "--cluster-health-summary-interval=2s"])
        .start();
    let until = async |what: &str, wanted: &dyn Fn(&Value) -> bool| {
        poll(what, async || {
            let status = behind.object("cluster cls-one")["status"].clone();
            wanted(&status).then_some(status)
        })
        .await
    };
    let runs =
        |it: &Value| it["phase"] == "Running" && condition(it, "HealthCheck")["status"] == "True";
    let status = until("the cluster is summed up", &|it: &Value| {
        runs(it) && condition(it, "ResourceSynced")["status"] == "True" && it["version"].is_string()
    })
    .await;
    let fields: Vec<_> = status["resource"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["allocatable", "allocated", "capacity"], "{status}");

    member.stop_api_server().await;
    let fails =
        |it: &Value| it["phase"] == "Failed" && condition(it, "HealthCheck")["status"] == "False";
    let status = until("the cluster fails", &fails).await;
    assert_eq!(status["reason"], "HealthCheckFail", "{status}");
    assert_eq!(status.get("availability"), None, "upstream has no such field");
    member.start_api_server().await.unwrap();
    let status = until("the cluster runs again", &runs).await;
    let texts = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    assert_eq!((texts(&status["reason"]), texts(&status["message"])), Default::default());
    assert_eq!(status["addresses"], addresses, "those of several masters are left alone");
    assert_eq!(status["conditions"][0], installer, "that of the installer stays where it was");

    // What was written is what is shown, so nothing is written between heartbeats.
    let writes = async || {
        let labels = [("flavour", "tke"), ("outcome", "ok")];
        manager.metric("clusterhealth_status_writes_total", &labels).await.unwrap_or_default()
    };
    let probes = async |at_least: f64| {
        let labels = [("flavour", "tke")];
        manager
            .until_metric("clusterhealth_schedule_lag_seconds_count", &labels, |it| it >= at_least)
            .await
    };
    let begun = probes(0.0).await;
    let before = writes().await;
    probes(begun + 5.0).await;
    let written = writes().await - before;
    assert!(written <= 3.0, "{written} writes of what did not change");

    // The control: by server-side apply one field of ours is refused, and everything with it.
    let apply = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-one"},
        "status": {"phase": "Running", "resource": {"nodes": {"total": 1}}},
    });
    let refused = behind.apply_status_refused(&apply);
    assert!(refused.contains(".status.resource.nodes: field not declared in schema"), "{refused}");
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
}
