//! A Cluster from its making to its control plane.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::temp_dir::TempDir;

use crate::scene::{AWS_CLUSTERS, CLUSTERS, MACHINES, Scene, cluster, condition, secret_text};

/// Output of `openssl`, which must be installed.
fn openssl(arguments: &str) -> String {
    let output = Command::new("openssl").args(arguments.split_whitespace()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether `openssl` is installed; no other part of the project needs it.
fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").output().is_ok();
    if !found {
        eprintln!(
            "openssl is not on this machine: what it would say of the certificates is not asked"
        );
    }
    found
}

/// The field of a kubeconfig, decoded.
fn data(kubeconfig: &str, field: &str) -> String {
    let line = kubeconfig.lines().find(|line| line.trim_start().starts_with(field)).unwrap();
    let encoded = line.split_once(": ").unwrap().1;
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_gets_owner_endpoint_certificates_and_kubeconfig_as_its_infrastructure_is_made()
{
    let scene = Scene::set().await;
    scene.run("apply -f config/samples/cluster-api.yaml");
    let name = "testnetwork3";
    // The test makes it.
    scene.run(&format!("annotate {AWS_CLUSTERS} {name} cluster.x-k8s.io/managed-by=test"));
    let manager = scene.start("");
    let made = scene
        .until(CLUSTERS, name, "is provisioning", |it| it["status"]["phase"] == "provisioning")
        .await;
    assert_eq!(made["metadata"]["finalizers"], json!(["cluster.cluster.x-k8s.io"]));
    assert_eq!(condition(&made, "Paused")["status"], "False");
    let adopted = scene
        .until(AWS_CLUSTERS, name, "has an owner", |it| {
            it["metadata"]["ownerReferences"].is_array()
        })
        .await;
    let owners = json!([{"apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Cluster",
        "name": name, "uid": made["metadata"]["uid"]}]);
    assert_eq!(adopted["metadata"]["ownerReferences"], owners);
    assert_eq!(adopted["metadata"]["labels"], json!({"cluster.x-k8s.io/cluster-name": name}));

    scene.is_ready(name, "one.example.org", 6443);
    let ready = scene
        .until(CLUSTERS, name, "has a kubeconfig", |it| {
            condition(it, "KubeconfigReady")["status"] == "True"
        })
        .await;
    let endpoint = json!({"host": "one.example.org", "port": 6443});
    assert_eq!(ready["status"]["apiEndpoints"], json!([endpoint]));
    assert_eq!(ready["spec"]["controlPlaneEndpoint"], endpoint);
    assert_eq!(ready["status"]["infrastructureReady"], true);
    assert_eq!(ready["status"]["initialization"]["infrastructureProvisioned"], true);
    assert_eq!(ready["status"]["phase"], "provisioned");
    assert_eq!(ready["status"]["failureDomains"], json!([{"name": "a", "controlPlane": true}]));
    assert_eq!(condition(&ready, "InfrastructureReady")["status"], "True");
    scene.has_event("InfrastructureReady").await;
    certificates_are_right(&scene, name, &made).await;

    // An endpoint is published once.
    scene.patch_status(
        &format!("{AWS_CLUSTERS} {name}"),
        &json!({"apiEndpoints": [{"host": "two.example.org", "port": 1}], "failureDomains": [{"name": "b"}]}),
    );
    let later = scene
        .until(CLUSTERS, name, "has other zones", |it| {
            it["status"]["failureDomains"] == json!([{"name": "b"}])
        })
        .await;
    assert_eq!(later["status"]["apiEndpoints"], json!([endpoint]));
    assert_eq!(manager.metric("cluster_phase", &[("phase", "provisioned")]).await, Some(1.0));
    scene.end(manager).await;
}

async fn certificates_are_right(scene: &Scene, name: &str, cluster: &Value) {
    for purpose in ["ca", "etcd", "sa", "proxy", "kubeconfig"] {
        let secret = scene.find("secrets", &format!("{name}-{purpose}")).await.expect(purpose);
        assert_eq!(secret["type"], "cluster.x-k8s.io/secret", "{purpose}");
        assert_eq!(secret["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], name);
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], cluster["metadata"]["uid"]);
    }
    let dir = TempDir::new("cluster-api").unwrap();
    let write = |file: &str, text: &str| {
        let path = dir.join(file);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // As a user reads it.
    let encoded = scene.run(&format!("get secret {name}-kubeconfig -o jsonpath={{.data.value}}"));
    let kubeconfig = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    let stored = scene.find("secrets", &format!("{name}-ca")).await.unwrap();
    assert_eq!(data(&kubeconfig, "certificate-authority-data"), secret_text(&stored, "tls.crt"));
    let file = write("kubeconfig", &kubeconfig);
    let context = scene.run(&format!("config current-context --kubeconfig={file}"));
    assert_eq!(context.trim(), format!("kubernetes-admin@{name}"));
    let keys = scene.find("secrets", &format!("{name}-sa")).await.unwrap();
    if has_openssl() {
        openssl_accepts(&kubeconfig, &keys, write);
    }
}

/// `write` makes a file and returns its path.
fn openssl_accepts(kubeconfig: &str, keys: &Value, write: impl Fn(&str, &str) -> String) {
    let authority = write("ca.crt", &data(kubeconfig, "certificate-authority-data"));
    let client = write("client.crt", &data(kubeconfig, "client-certificate-data"));
    let key = write("client.key", &data(kubeconfig, "client-key-data"));
    openssl(&format!("verify -purpose sslclient -CAfile {authority} {client}"));
    let subject = openssl(&format!("x509 -in {client} -noout -subject -nameopt RFC2253"));
    assert_eq!(subject.trim(), "subject=CN=kubernetes-admin,O=system:masters");
    let of_key = openssl(&format!("pkey -in {key} -pubout"));
    assert_eq!(openssl(&format!("x509 -in {client} -noout -pubkey")), of_key);
    let public = write("sa.pub", &secret_text(keys, "tls.crt"));
    let private = write("sa.key", &secret_text(keys, "tls.key"));
    let of_public = openssl(&format!("pkey -pubin -in {public} -pubout"));
    assert_eq!(openssl(&format!("pkey -in {private} -pubout")), of_public);
}

/// The authority is that of the control plane of the test, so its API server can be asked.
#[tokio::test(flavor = "multi_thread")]
async fn with_an_authority_of_the_user_the_kubeconfig_opens_the_cluster() {
    let scene = Scene::set().await;
    let manager = scene.start("--generate-cluster-ca=false");
    scene.create(&crate::scene::aws_cluster("v1alpha2", "own", &json!({"region": "r"})));
    scene.create(&cluster("own"));
    let port = scene.plane.url().rsplit_once(':').unwrap().1.parse().unwrap();
    scene.is_ready("own", "127.0.0.1", port);
    scene
        .until(CLUSTERS, "own", "waits for an authority", |it| {
            condition(it, "KubeconfigReady")["reason"] == "WaitingForAuthority"
        })
        .await;
    let authority = scene.plane.authority();
    scene.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "own-ca", "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": "own"}},
        "stringData": {"tls.crt": authority.certificate_pem, "tls.key": authority.key_pem},
    }));
    let secret = scene.until("secrets", "own-kubeconfig", "is there", |_| true).await;
    let dir = TempDir::new("cluster-api").unwrap();
    let file = dir.join("kubeconfig");
    fs::write(&file, secret_text(&secret, "value")).unwrap();
    let file = file.display();
    let who =
        scene.run(&format!("auth whoami --kubeconfig={file} -o jsonpath={{.status.userInfo}}"));
    assert!(who.contains("kubernetes-admin") && who.contains("system:masters"), "{who}");
    let secret = scene.find("secrets", "own-ca").await.unwrap();
    assert_eq!(
        (&secret["type"], &secret["metadata"]["ownerReferences"]),
        (&json!("Opaque"), &Value::Null)
    );
    assert!(scene.find("secrets", "own-etcd").await.is_none(), "nothing is generated");
    scene.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_machine_with_a_node_initializes_the_control_plane_for_good() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&crate::scene::aws_cluster("v1alpha2", "init", &json!({"region": "r"})));
    scene.create(&cluster("init"));
    scene.enlist("worker", "init", false, None);
    scene.enlist("master", "init", true, None);
    let node = json!({"nodeRef": {"kind": "Node", "name": "n1"}});
    scene.patch_status(&format!("{MACHINES} worker"), &node);
    let before = scene
        .until(CLUSTERS, "init", "waits for a Node", |it| {
            condition(it, "ControlPlaneInitialized")["reason"] == "WaitingForNode"
        })
        .await;
    assert_eq!(before["status"]["controlPlaneInitialized"], false);
    scene.patch_status(&format!("{MACHINES} master"), &node);
    let initialized = |it: &Value| {
        it["status"]["controlPlaneInitialized"] == true
            && it["status"]["initialization"]["controlPlaneInitialized"] == true
    };
    scene.until(CLUSTERS, "init", "is initialized", initialized).await;
    scene.has_event("ControlPlaneInitialized").await;
    scene.let_go(MACHINES, "master");
    scene.run(&format!("delete {MACHINES} master"));
    // Something that makes another pass.
    scene.is_ready("init", "h", 1);
    let later = scene
        .until(CLUSTERS, "init", "is provisioned", |it| it["status"]["phase"] == "provisioned")
        .await;
    assert!(initialized(&later));
    scene.end(manager).await;
}

/// The words of v1beta2 throughout, and no infrastructure to make.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_v1beta2_are_reconciled_in_v1beta2() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&crate::scene::aws_cluster("v1beta2", "newer", &json!({"region": "r"})));
    let mut newer = cluster("newer");
    newer["apiVersion"] = json!("cluster.x-k8s.io/v1beta2");
    newer["spec"]["infrastructureRef"] = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "newer"});
    scene.create(&newer);
    let adopted = scene
        .until(AWS_CLUSTERS, "newer", "has an owner", |it| {
            it["metadata"]["ownerReferences"].is_array()
        })
        .await;
    let version = &adopted["metadata"]["ownerReferences"][0]["apiVersion"];
    assert_eq!(version, "cluster.x-k8s.io/v1beta2");
    // Another tool may write the reference again in the form of v1alpha2: the dialect stays.
    let reference =
        json!({"apiGroup": null, "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha2"});
    let patch = json!({"spec": {"infrastructureRef": reference}});
    scene.patch(&format!("{CLUSTERS} newer"), "merge", &patch);
    scene
        .until(CLUSTERS, "newer", "is provisioning", |it| it["status"]["phase"] == "Provisioning")
        .await;
    let mut bare = cluster("bare");
    bare["apiVersion"] = json!("cluster.x-k8s.io/v1beta2");
    bare["spec"] =
        json!({"controlPlaneRef": {"apiGroup": "g", "kind": "K", "name": "n"}, "topology": {}});
    scene.create(&bare);
    let bare = scene
        .until(CLUSTERS, "bare", "is provisioned", |it| it["status"]["phase"] == "Provisioned")
        .await;
    assert_eq!(condition(&bare, "TopologyReconciled")["reason"], "Unsupported");
    scene.end(manager).await;
}

/// rule:the-dialect-is-remembered
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_the_dialect_of_its_writer_for_good() {
    let scene = Scene::set().await;
    let group = "infrastructure.cluster.x-k8s.io";
    // (version of the writer, of the reference, whether an earlier release holds it, dialect)
    let rows = [
        ("v1alpha2", "v1alpha2", false, "v1alpha2"),
        // The usual YAML of upstream.
        ("v1beta1", "v1beta2", false, "v1beta2"),
        ("v1beta1", "v1alpha2", false, "v1beta2"),
        // Earlier releases went by the form of the reference.
        ("v1beta1", "v1beta2", true, "v1alpha2"),
    ];
    let named = |place: usize| format!("dialect-{place}");
    for (place, (writer, referred, is_held, _)) in rows.into_iter().enumerate() {
        let name = named(place);
        let mut cluster = cluster(&name);
        cluster["apiVersion"] = json!(format!("cluster.x-k8s.io/{writer}"));
        cluster["spec"]["infrastructureRef"]["apiVersion"] = json!(format!("{group}/{referred}"));
        if is_held {
            cluster["metadata"]["finalizers"] = json!(["cluster.cluster.x-k8s.io"]);
        }
        scene.create(&cluster);
    }
    let manager = scene.start("");
    let dialect =
        |it: &Value| it["metadata"]["annotations"]["infra-controller-manager/dialect"].clone();
    for (place, (.., expected)) in rows.into_iter().enumerate() {
        let is_known = |it: &Value| dialect(it).is_string();
        let held = scene.until(CLUSTERS, &named(place), "has a dialect", is_known).await;
        assert_eq!(dialect(&held), expected, "{:?}", rows[place]);
        assert_eq!(held["metadata"]["finalizers"], json!(["cluster.cluster.x-k8s.io"]));
        // A migration to another storage writes each object in its own version.
        let newer = format!("clusters.v1beta2.cluster.x-k8s.io {}", named(place));
        let reference = json!({"apiVersion": null, "apiGroup": group});
        scene.patch(&newer, "merge", &json!({"spec": {"infrastructureRef": reference}}));
        let phase = if expected == "v1alpha2" { "provisioning" } else { "Provisioning" };
        let has_phase = |it: &Value| it["status"]["phase"] == phase;
        let later = scene.until(CLUSTERS, &named(place), phase, has_phase).await;
        assert_eq!(dialect(&later), expected);
    }
    scene.end(manager).await;
}
