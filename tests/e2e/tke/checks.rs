//! Checks of TKEStack's Clusters: conditions next to those of installers, in our schema of the status and in upstream's.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::PATIENCE;
use tests::Process;
use tests::control_plane::ADMIN_GROUP;
use tests::kubectl::Kubectl;
use tests::member::member;
use tests::planted::{Discreet, Planted};
use tests::poll::poll;

use crate::aggregated::aggregate;
use crate::scene::{address, condition, pair, port};
use crate::upstream_crds;

/// Other groups have Clusters, too.
const CLUSTER: &str = "clusters.platform.tkestack.io cls-one";
const CHECKS: &str = "
checks:
- {name: Apps, flavours: [tke], interval: 30s, apiService: {name: v1.apps}}
- {name: Metrics, flavours: [tke, capi], interval: 30s, apiService: {name: v1beta1.metrics.k8s.io}}
- {name: OfOthers, flavours: [capi], interval: 30s, nodesReady: {}}
";
const ONE: &str = "checks: [{name: Apps, interval: 30s, apiService: {name: v1.apps}}]";
const NONE: &str = "checks: []";

fn config(text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "checks", "namespace": "default"},
        "data": {"checks.yaml": text},
    })
}

/// Follows a Cluster of `objects` with checks that come and go. `hub` has the ConfigMap; the spec `has_addresses` in our
/// schema only.
async fn checks_come_and_go(hub: &Kubectl, objects: &Kubectl, has_addresses: bool) {
    let member = member().await;
    let admin = member.client_certificate("admin", &[ADMIN_GROUP], Duration::from_secs(3600));
    let mut credential = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-one"}, "tenantID": "t", "clusterName": "cls-one",
        "caCert": STANDARD.encode(member.ca_pem()),
    });
    credential.as_object_mut().unwrap().extend(pair(&admin.unwrap()).as_object().unwrap().clone());
    objects.create(&credential);
    let addresses = json!([address(port(member.url()))]);
    let mut spec = json!({"tenantID": "t", "type": "Imported"});
    if has_addresses {
        spec["addresses"] = addresses.clone();
    }
    objects.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-one"},
        "spec": spec,
    }));
    let installer = json!({"type": "EnsureX", "status": "True", "reason": "Done"});
    let status = json!({"addresses": addresses, "conditions": [installer]});
    objects.patch_status(CLUSTER, &status);
    hub.create(&config(CHECKS));
    let manager = Process::with_kubeconfig(&hub.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health-controller", "--leader-elect=false", "--v=2"])
        .args(["--healthcheck-period=2s", "--cluster-health-tke-timeout=1s"])
        .args(["--cluster-health-checks-config=default/checks"])
        .start();
    let manager = Discreet::new(manager, &Planted::default(), hub);
    let until = async |what: &str, wanted: &dyn Fn(&Value) -> bool| {
        poll(what, async || {
            let status = objects.object(CLUSTER)["status"].clone();
            wanted(&status).then_some(status)
        })
        .await
    };
    let is = |status: &Value, check: &str| condition(status, check)["status"].clone();
    let checked =
        until("it is checked", &|it| is(it, "Apps") == "True" && is(it, "Metrics") == "False")
            .await;
    let metrics = condition(&checked, "Metrics");
    assert_eq!(metrics["reason"], "CheckFailed", "{checked}");
    assert_eq!(metrics["message"], "APIService v1beta1.metrics.k8s.io does not exist");
    assert!(metrics["lastProbeTime"].is_string(), "{metrics}");
    assert_eq!(condition(&checked, "Apps")["reason"], "CheckPassed");
    assert!(condition(&checked, "OfOthers").is_null(), "{checked}");
    assert_eq!(checked["phase"], "Running", "it gates nothing");

    let patch = |text: &str| hub.patch("-n default configmap checks", "merge", &config(text));
    patch(ONE);
    let fewer = until("one check is gone", &|it| condition(it, "Metrics").is_null()).await;
    assert_eq!(is(&fewer, "Apps"), "True", "{fewer}");
    patch(NONE);
    let without = until("no check is left", &|it| condition(it, "Apps").is_null()).await;
    for status in [&checked, &fewer, &without] {
        assert_eq!(condition(status, "EnsureX"), &installer, "{status}");
        assert_eq!(is(status, "HealthCheck"), "True", "{status}");
    }
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_have_conditions_next_to_those_of_installers_until_they_are_gone() {
    let (ours, hub, behind) =
        futures::join!(Kubectl::with_crds(), Kubectl::without_crds(), Kubectl::without_crds());
    behind.create_all(&upstream_crds::all());
    behind.await_crds();
    aggregate(&hub, &behind);
    futures::join!(
        checks_come_and_go(&ours, &ours, true),
        checks_come_and_go(&hub, &behind, false)
    );
}
