//! Problems of infrastructure, kinds and kubeconfigs.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::ControlPlane;
use tests::poll::{eventually, poll};

use crate::scene::{AWS_CLUSTERS, CLUSTERS, Scene, aws_cluster, cluster, condition, secret_text};

const FOO_CLUSTERS: &str = "fooclusters.v1.infrastructure.cluster.x-k8s.io";

fn reason_is(kind: &'static str, reason: &'static str) -> impl Fn(&Value) -> bool {
    move |it| condition(it, kind)["reason"] == reason
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_the_infrastructure_and_its_loss_are_passed_on() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&cluster("fails"));
    let infrastructure = reason_is("InfrastructureReady", "WaitingForInfrastructure");
    scene.until(CLUSTERS, "fails", "waits for infrastructure", infrastructure).await;
    // It is heard of though nothing marks it yet as that of the Cluster.
    scene.create(&aws_cluster("v1alpha2", "fails", &json!({"region": "r"})));
    scene.until(CLUSTERS, "fails", "waits", reason_is("InfrastructureReady", "NotReady")).await;

    let of = format!("{AWS_CLUSTERS} fails");
    scene.patch_status(&of, &json!({"errorReason": "CreateError", "errorMessage": "no room"}));
    let failed =
        scene.until(CLUSTERS, "fails", "has failed", |it| it["status"]["phase"] == "failed").await;
    assert_eq!(failed["status"]["errorReason"], "CreateError");
    let message = "infrastructure.cluster.x-k8s.io/v1beta2 AWSCluster fails: no room";
    assert_eq!(failed["status"]["failureMessage"], message);

    let ready = json!({"ready": true, "errorReason": null, "errorMessage": null});
    scene.patch_status(&of, &ready);
    manager.line("is ready but has none in status.apiEndpoints").await;
    scene.is_ready("fails", "h.example.org", 6443);
    let phase = |it: &Value| it["status"]["phase"] == "provisioned";
    let healed = scene.until(CLUSTERS, "fails", "is provisioned", phase).await;
    assert_eq!(healed["status"].get("errorReason"), None);

    scene.run(&format!("delete {of}"));
    let lost = scene
        .until(
            CLUSTERS,
            "fails",
            "has lost it",
            reason_is("InfrastructureReady", "InfrastructureDeleted"),
        )
        .await;
    assert_eq!(lost["status"]["infrastructureReady"], true, "it was ready once");
    scene.has_event("InfrastructureDeleted").await;
    scene.end(manager).await;
}

/// A kind of infrastructure whose CRD is created after the program has started.
#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_of_a_kind_that_comes_later_is_watched_from_then_on() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    let mut foo = cluster("foo");
    foo["spec"]["infrastructureRef"] = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v9", "kind": "FooCluster", "name": "foo"});
    scene.create(&foo);
    scene.until(CLUSTERS, "foo", "waits", reason_is("InfrastructureReady", "KindNotServed")).await;
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    scene.create(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fooclusters.infrastructure.cluster.x-k8s.io",
            "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {"group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "FooCluster", "plural": "fooclusters"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]},
    }));
    scene.await_crds();
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "FooCluster",
        "metadata": {"name": "foo", "namespace": "default"}});
    // Discovery may tell of the kind a moment later.
    eventually("the kind is known", || scene.may_create(&object)).await;
    scene
        .until(FOO_CLUSTERS, "foo", "has an owner", |it| {
            it["metadata"]["ownerReferences"].is_array()
        })
        .await;
    let status = json!({"initialization": {"provisioned": true}, "apiEndpoints": [{"host": "h", "port": 1}]});
    scene.patch_status(&format!("{FOO_CLUSTERS} foo"), &status);
    scene
        .until(CLUSTERS, "foo", "is provisioned", |it| it["status"]["phase"] == "provisioned")
        .await;
    // The kind goes, and its objects with it.
    scene.run("delete crd fooclusters.infrastructure.cluster.x-k8s.io");
    scene.until(CLUSTERS, "foo", "waits", reason_is("InfrastructureReady", "KindNotServed")).await;
    scene.run(&format!("delete {CLUSTERS} foo"));
    scene.end(manager).await;
}

/// rule:clusters-of-others-are-not-touched
#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_an_unlabelled_crd_are_left_alone_unless_the_mode_says_otherwise() {
    let scene = Scene::set().await;
    let crd = "crd clusters.cluster.x-k8s.io app.kubernetes.io/managed-by";
    scene.run(&format!("label {crd}-"));
    scene.create(&cluster("others"));
    let kept = |it: &Value| it["status"]["phase"] == "provisioning";
    let manager = scene.start("");
    manager.line("Controller starting...").await;
    let sleeps = |line: &str| {
        line.contains("Kind is dormant") && line.contains("\"clusters.cluster.x-k8s.io\"")
    };
    manager.line_where("Clusters are dormant", sleeps).await;
    poll("it is ready", async || {
        let (ready, _) = manager.get("/readyz?verbose").await.ok()?;
        (ready == 200).then_some(())
    })
    .await;
    let untouched = scene.find(CLUSTERS, "others").await.unwrap();
    assert_eq!(untouched["metadata"].get("finalizers"), None);
    // Awake as soon as it is ours.
    scene.run(&format!("label {crd}=infra-controller-manager"));
    scene.until(CLUSTERS, "others", "is kept", kept).await;
    scene.end(manager).await;

    scene.run(&format!("label {crd}-"));
    scene.create(&cluster("explicit"));
    let manager = scene.start("--capi-mode=standalone");
    scene.until(CLUSTERS, "explicit", "is kept", kept).await;
    scene.end(manager).await;
    let manager = scene.start("--capi-mode=provider");
    manager.line("queue=\"awsclusters\"").await;
    assert!(!manager.has_said("queue=\"clusters\""), "{:?}", manager.lines());
    scene.end(manager).await;
    scene.run(&format!("label {crd}=infra-controller-manager"));
    scene.run("delete clusters.cluster.x-k8s.io --all --wait=false");
    let manager = scene.start("");
    scene.until_gone(CLUSTERS, "others").await;
    scene.until_gone(CLUSTERS, "explicit").await;
    scene.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clusters_of_the_namespace_and_the_filter_are_reconciled() {
    let scene = Scene::set().await;
    let manager = scene.start("--namespace=default --watch-filter=mine");
    let mut elsewhere = cluster("elsewhere");
    elsewhere["metadata"]["namespace"] = json!("kube-public");
    let mut mine = cluster("mine");
    for it in [&mut elsewhere, &mut mine] {
        it["metadata"]["labels"] = json!({"cluster.x-k8s.io/watch-filter": "mine"});
    }
    scene.create(&elsewhere);
    scene.create(&cluster("plain"));
    scene.create(&mine);
    scene.until(CLUSTERS, "mine", "is kept", |it| it["status"]["phase"] == "provisioning").await;
    let plain = scene.find(CLUSTERS, "plain").await.unwrap();
    let elsewhere = scene.object("clusters.v1alpha2.cluster.x-k8s.io -n kube-public elsewhere");
    for it in [&plain, &elsewhere] {
        assert_eq!((it["metadata"].get("finalizers"), it.get("status")), (None, None), "{it}");
    }
    scene.run(&format!("delete {CLUSTERS} -n kube-public elsewhere"));
    scene.run(&format!("delete {CLUSTERS} mine"));
    scene.end(manager).await;
}

/// rule:a-lost-authority-is-not-replaced
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_authority_is_not_replaced_under_a_cluster_that_uses_it() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&cluster("loses"));
    scene.create(&aws_cluster("v1alpha2", "loses", &json!({"region": "r"})));
    scene.is_ready("loses", "h.example.org", 6443);
    scene.until("secrets", "loses-kubeconfig", "is there", |_| true).await;
    let made = scene.find("secrets", "loses-ca").await.unwrap();
    scene.run("delete secret loses-ca");
    // Also one who has not seen it before.
    scene.end(manager).await;
    let manager = scene.start("");
    let lost = scene
        .until(CLUSTERS, "loses", "has lost it", reason_is("KubeconfigReady", "AuthorityLost"))
        .await;
    assert_eq!(condition(&lost, "KubeconfigReady")["status"], "False");
    scene.has_event("AuthorityLost").await;
    assert_eq!(scene.find("secrets", "loses-ca").await, None);
    let mut restored = made.clone();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        restored["metadata"].as_object_mut().unwrap().remove(field);
    }
    restored["apiVersion"] = json!("v1");
    restored["kind"] = json!("Secret");
    scene.create(&restored);
    scene.until(CLUSTERS, "loses", "has it again", reason_is("KubeconfigReady", "Created")).await;
    scene.end(manager).await;
}

/// rule:only-our-kubeconfig-is-renewed
#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_to_end_is_renewed_and_one_of_somebody_else_is_left() {
    let scene = Scene::set().await;
    let (authority, life) = (scene.plane.authority(), Duration::from_secs(3600));
    let manager = scene.start("");
    for (name, signed_by_us) in [("due", true), ("foreign", false)] {
        scene.create(&aws_cluster("v1alpha2", name, &json!({"region": "r"})));
        scene.create(&cluster(name));
        let made = scene
            .until(CLUSTERS, name, "is kept", |it| it["status"]["phase"] == "provisioning")
            .await;
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Cluster", "name": name,
            "uid": made["metadata"]["uid"]}]);
        let labels = json!({"cluster.x-k8s.io/cluster-name": name});
        let secret = |purpose: &str, texts: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
                "metadata": {"name": format!("{name}-{purpose}"), "namespace": "default",
                    "labels": labels, "ownerReferences": owner},
                "stringData": texts})
        };
        let client = scene.plane.client_certificate("somebody", &[], life).unwrap();
        let kubeconfig = kubeconfig(&client.certificate_pem, &client.key_pem);
        scene.create(&secret("kubeconfig", json!({"value": kubeconfig, "more": "kept"})));
        // An authority is not made where there is a kubeconfig, so each Cluster has one.
        let other = ControlPlane::another_authority().unwrap();
        let of_cluster = if signed_by_us { &authority } else { &other };
        let texts = json!({"tls.crt": of_cluster.certificate_pem, "tls.key": of_cluster.key_pem});
        scene.create(&secret("ca", texts));
        scene.is_ready(name, "h.example.org", 6443);
    }
    let renewed = scene
        .until("secrets", "due-kubeconfig", "is renewed", |it| {
            secret_text(it, "value").contains("kubernetes-admin@due")
        })
        .await;
    assert_eq!(secret_text(&renewed, "more"), "kept");
    scene.has_event("KubeconfigRenewed").await;
    scene
        .until(
            CLUSTERS,
            "foreign",
            "has a foreign kubeconfig",
            reason_is("KubeconfigReady", "Foreign"),
        )
        .await;
    let left = scene.find("secrets", "foreign-kubeconfig").await.unwrap();
    assert!(secret_text(&left, "value").contains("somebody@somewhere"));

    // The renewed certificate does not expire soon, so it is not renewed again.
    scene.end(manager).await;
    let again = scene.start("");
    again.until_metric("icm_reconcile_total", &[], |passes| passes >= 2.0).await;
    scene.end(again).await;
    let later = scene.find("secrets", "due-kubeconfig").await.unwrap();
    assert_eq!(later["metadata"]["resourceVersion"], renewed["metadata"]["resourceVersion"]);
}

/// rule:only-our-kubeconfig-is-renewed
#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_follows_an_endpoint_that_the_user_changes_in_the_spec_of_the_cluster() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&aws_cluster("v1alpha2", "moves", &json!({"region": "r"})));
    scene.create(&cluster("moves"));
    scene.is_ready("moves", "h.example.org", 6443);
    let leads_to =
        |server: &'static str| move |it: &Value| secret_text(it, "value").contains(server);
    let first = leads_to("https://h.example.org:6443");
    scene.until("secrets", "moves-kubeconfig", "leads to the load balancer", first).await;
    let mirrored = |it: &Value| it["spec"]["controlPlaneEndpoint"]["port"] == 6443;
    scene.until(CLUSTERS, "moves", "has the endpoint in its spec", mirrored).await;
    let moved = json!({"host": "api.example.org", "port": 443});
    let patch = json!({"spec": {"controlPlaneEndpoint": moved}});
    scene.patch(&format!("{CLUSTERS} moves"), "merge", &patch);
    let second = leads_to("https://api.example.org:443");
    scene.until("secrets", "moves-kubeconfig", "leads to the name of the user", second).await;
    let follows = |it: &Value| it["status"]["apiEndpoints"] == json!([moved]);
    scene.until(CLUSTERS, "moves", "publishes it", follows).await;
    scene.has_event_about("KubeconfigRenewed", "endpoint").await;
    scene.end(manager).await;
}

fn kubeconfig(certificate: &str, key: &str) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "somebody@somewhere",
        "clusters": [{"name": "somewhere", "cluster": {"server": "https://h.example.org:6443"}}],
        "contexts": [{"name": "somebody@somewhere", "context": {"cluster": "somewhere", "user": "somebody"}}],
        "users": [{"name": "somebody", "user": {
            "client-certificate-data": encode(certificate), "client-key-data": encode(key)}}],
    })
    .to_string()
}
