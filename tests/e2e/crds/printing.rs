//! Output of `kubectl get`, and selectable fields.

use serde_json::json;

use tests::kubectl::table;

use crate::plane;

#[tokio::test(flavor = "multi_thread")]
async fn clusters_credentials_and_machines_are_printed_as_upstream_prints_them() {
    let kubectl = plane().await;
    kubectl.run("apply -f config/samples");
    let fresh = table(&kubectl.run("get cls"));
    assert_eq!(fresh[0], ["NAME", "TYPE", "VERSION", "STATUS", "AGE"]);
    assert_eq!(fresh[1], ["cls-sample", "Imported", "AGE"]);

    kubectl.patch_status(
        "cls cls-sample",
        &json!({
            "phase": "Failed", "version": "1.36.3", "reason": "HealthCheckFail",
            "conditions": [{"type": "HealthCheck", "status": "False"}],
        }),
    );
    let wide = table(&kubectl.run("get cls -o wide"));
    assert_eq!(wide[0], ["NAME", "TYPE", "VERSION", "STATUS", "AGE", "HEALTHY", "REASON"]);
    let row = ["cls-sample", "Imported", "1.36.3", "Failed", "AGE", "False", "HealthCheckFail"];
    assert_eq!(wide[1], row);

    let credentials = table(&kubectl.run("get cc"));
    assert_eq!(credentials, [["NAME", "CLUSTER", "AGE"], ["cc-sample", "cls-sample", "AGE"]]);

    kubectl.patch_status("mc mc-sample", &json!({"phase": "Running"}));
    let machines = table(&kubectl.run("get mc"));
    assert_eq!(machines[0], ["NAME", "TYPE", "IP", "STATUS", "AGE"]);
    assert_eq!(machines[1], ["mc-sample", "Baremetal", "10.20.0.21", "Running", "AGE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_federation_are_printed_with_both_conditions() {
    let kubectl = plane().await;
    kubectl.run("apply -f config/samples");
    let of = "kubefedclusters -n kube-federation-system";
    let probed = "2026-01-02T03:04:05Z";
    let condition = |kind, status| json!({"type": kind, "status": status, "lastProbeTime": probed});
    kubectl.patch_status(
        &format!("{of} member-sample"),
        &json!({"conditions": [condition("Ready", "False"), condition("Offline", "True")]}),
    );
    let printed = table(&kubectl.run(&format!("get {of}")));
    assert_eq!(printed, [["NAME", "AGE", "READY"], ["member-sample", "AGE", "False"]]);
    let wide = table(&kubectl.run(&format!("get {of} -o wide")));
    assert_eq!(wide[0], ["NAME", "AGE", "READY", "OFFLINE"]);
    assert_eq!(wide[1], ["member-sample", "AGE", "False", "True"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_selected_by_fields_as_with_upstreams_api() {
    let kubectl = plane().await;
    kubectl.run("apply -f config/samples");
    kubectl.patch_status(
        "cls cls-sample",
        &json!({"phase": "Running", "version": "1.36.3", "locked": true}),
    );
    kubectl.patch_status("mc mc-sample", &json!({"phase": "Failed"}));
    for (kind, fits, differs) in [
        ("cls", "spec.tenantID=default", "spec.tenantID=other"),
        (
            "cls",
            "spec.type=Imported,status.phase=Running",
            "spec.type=Imported,status.phase=Failed",
        ),
        ("cls", "status.version=1.36.3,status.locked=true", "status.locked!=true"),
        ("cls", "spec.version=", "spec.version=1.36.3"),
        ("cc", "clusterName=cls-sample,tenantID=default", "clusterName=cls-other"),
        ("mc", "spec.clusterName=cls-sample", "spec.clusterName=cls-other"),
        ("mc", "spec.ip=10.20.0.21,status.phase=Failed", "status.phase=Running"),
    ] {
        let get =
            |selector| kubectl.run(&format!("get {kind} -o name --field-selector {selector}"));
        assert_eq!(get(fits).lines().count(), 1, "{kind} {fits}");
        assert_eq!(get(differs), "", "{kind} {differs}");
    }
}
