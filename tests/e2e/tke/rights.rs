//! The controller continues without some of its permissions.

use serde_json::{Value, json};
use tests::kubectl::FEDERATION;
use tests::poll::poll;

use crate::scene::{Scene, condition};

/// Everything but to list ClusterCredentials, by the verbs that kubectl takes.
const ROLES: [(&str, &str, &str); 4] = [
    (
        "see",
        "get,list,watch",
        "clusters.platform.tkestack.io,customresourcedefinitions.apiextensions.k8s.io",
    ),
    ("read", "get", "clustercredentials.platform.tkestack.io"),
    ("write", "get,patch,update", "clusters.platform.tkestack.io/status"),
    ("tell", "create,patch", "events.events.k8s.io,events"),
];
const USER: &str = "lister-of-few";

/// rule:a-missing-right-is-no-failure
#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_list_credentials_who_needs_no_list_is_probed_and_others_are_unknown()
{
    let scene = Scene::set().await;
    for (name, verbs, kinds) in ROLES {
        scene.hub.run(&format!("create clusterrole few-{name} --verb={verbs} --resource={kinds}"));
        let role = format!("few-{name} --clusterrole=few-{name} --user={USER}");
        scene.hub.run(&format!("create clusterrolebinding {role}"));
    }
    for name in ["cls-named", "cls-searched"] {
        scene.import(name);
        scene.admit(name);
    }
    let named = json!({"spec": {"clusterCredentialRef": {"name": "cc-cls-named"}}});
    scene.hub.patch("cls cls-named", "merge", &named);
    scene.hub.patch_status("cls cls-searched", &json!({"phase": "Running"}));
    let kubeconfig = scene.hub.plane.kubeconfig(USER, &[]).unwrap();
    let flags = "--healthcheck-period=2s --cluster-health-tke-timeout=1s \
        --cluster-health-machine-period=0s --cluster-health-stale-after=8s";
    let manager = scene.start_by(&kubeconfig, flags);
    scene.until("cls-named", "runs", |it| it["phase"] == "Running").await;
    let is_unknown = |it: &Value| {
        let health = condition(it, "HealthCheck");
        let message = health["message"].as_str().unwrap_or_default();
        health["status"] == "Unknown" && message.contains("clustercredentials is missing")
    };
    let status = scene.until("cls-searched", "is unknown and names the right", is_unknown).await;
    assert_eq!(status["phase"], "Running", "it did not fail");

    // No object changes when the right is granted.
    scene.hub.run("create clusterrole few-list --verb=list,watch --resource=clustercredentials.platform.tkestack.io");
    scene
        .hub
        .run(&format!("create clusterrolebinding few-list --clusterrole=few-list --user={USER}"));
    scene
        .until("cls-searched", "is probed", |it| condition(it, "HealthCheck")["status"] == "True")
        .await;
    scene.end(manager).await;
}

/// rule:a-missing-right-is-no-failure
#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_list_secrets_members_of_kubefed_are_unknown_and_name_it() {
    let scene = Scene::set().await;
    let roles = [
        (
            "see",
            "get,list,watch",
            "kubefedclusters.core.kubefed.io,customresourcedefinitions.apiextensions.k8s.io",
        ),
        ("write", "patch", "kubefedclusters.core.kubefed.io/status"),
    ];
    for (name, verbs, kinds) in roles {
        scene.hub.run(&format!("create clusterrole fed-{name} --verb={verbs} --resource={kinds}"));
        let role = format!("fed-{name} --clusterrole=fed-{name} --user={USER}-fed");
        scene.hub.run(&format!("create clusterrolebinding {role}"));
    }
    scene.hub.create(&json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "fed", "namespace": FEDERATION},
        "spec": {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "member"}},
    }));
    let kubeconfig = scene.hub.plane.kubeconfig(&format!("{USER}-fed"), &[]).unwrap();
    let manager = scene.start_by(&kubeconfig, "--cluster-health-flavours=kubefed");
    poll("the member is unknown and names the right", async || {
        let status =
            scene.hub.object(&format!("-n {FEDERATION} kubefedcluster fed"))["status"].clone();
        let ready = condition(&status, "Ready");
        assert_ne!(ready["status"], "False", "{ready}");
        let message = ready["message"].as_str().unwrap_or_default();
        (ready["status"] == "Unknown" && message.contains("secrets")).then_some(())
    })
    .await;
    scene.end(manager).await;
}
