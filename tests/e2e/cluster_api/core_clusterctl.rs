//! The real clusterctl with the package of this program: it installs the package next to the core, makes a cluster of its
//! template, moves the cluster to another management cluster, upgrades the program, and deletes it.

use serde_json::{Value, json};
use tests::Process;
use tests::cluster_api_core::ClusterApiCore;
use tests::clusterctl::{Clusterctl, NAMESPACE, arguments};
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::pool::Lent;

use crate::aws_clusterctl::{identity_ref, keys, start};
use crate::aws_stage::{Stage, is_ready};
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, History, is_provisioned};
use crate::scene::{Scene, condition};

const INITIALIZED: &str = "ControlPlaneInitialized";

/// An empty management cluster, which is used once.
async fn empty() -> Scene {
    Scene::at(Lent::once(Kubectl::without_crds().await)).await
}

/// Core and program in one management cluster, installed by clusterctl.
struct Side {
    // Fields drop in this order.
    manager: Process,
    _core: Process,
    clusterctl: Clusterctl,
    _installed: ClusterApiCore,
}

impl Side {
    async fn init(stage: &Stage, scene: &Scene) -> Self {
        let installed = ClusterApiCore::new(scene);
        let clusterctl = Clusterctl::new(scene, &installed);
        scene.create_all(&["issuers", "certificates"].map(certificates));
        scene.await_crds();
        clusterctl.run("init --bootstrap=- --control-plane=- --infrastructure=icm-aws");
        scene.await_crds();
        let core = installed.start(&[]).await;
        let manager = start(stage, scene);
        Self { manager, _core: core, clusterctl, _installed: installed }
    }
}

/// A CRD of cert-manager, by which clusterctl sees that it is there. Nothing here needs its certificates.
fn certificates(plural: &str) -> Value {
    let kind = if plural == "issuers" { "Issuer" } else { "Certificate" };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cert-manager.io")},
        "spec": {"group": "cert-manager.io", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    })
}

/// The part of a control plane, without which clusterctl moves no cluster.
async fn initialize(scene: &Scene) {
    poll("the control plane is initialized", async || {
        let object = scene.find(CLUSTERS, "one").await?;
        if condition(&object, INITIALIZED)["status"] == "True" {
            return Some(());
        }
        let mut conditions = object["status"]["conditions"].as_array()?.clone();
        let found = conditions.iter_mut().find(|it| it["type"] == INITIALIZED)?;
        found["status"] = json!("True");
        found["reason"] = json!("Initialized");
        found["message"] = json!("");
        scene.patch_status(&format!("{CLUSTERS} one"), &json!({"conditions": conditions}));
        None
    })
    .await;
}

/// Creates the cluster that clusterctl generates, and awaits it. Returns the AWSCluster.
async fn generated(stage: &Stage, side: &Side) -> Value {
    let mut objects = side.clusterctl.generate("one");
    let found = objects.iter_mut().find(|it| it["kind"] == "AWSCluster").unwrap();
    found["spec"]["identityRef"] = identity_ref();
    stage.create_all(&keys(&json!({})));
    stage.create_all(&objects);
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn clusterctl_init_generate_move_delete() {
    let Some(stage) = Stage::set_at(empty).await else { return };
    let target = empty().await;
    let before = stage.totals().await;
    let (from, to) = (Side::init(&stage, &stage).await, Side::init(&stage, &target).await);

    let made = generated(&stage, &from).await;
    let with_cluster = stage.totals().await;
    initialize(&stage).await;

    let history = History::begin(stage.plane.client().await, AWS_CLUSTERS, "one");
    stage.proxy.forget();
    let there = target.plane.admin_kubeconfig();
    from.clusterctl.run(&format!("move --namespace=default --to-kubeconfig={}", there.display()));
    for kind in [AWS_CLUSTERS, CLUSTERS] {
        assert_eq!(stage.find(kind, "one").await, None);
    }
    let moved = target.until(AWS_CLUSTERS, "one", "is ready after the move", is_ready).await;
    target.until(CLUSTERS, "one", "is provisioned after the move", is_provisioned).await;
    let same = [
        "/spec",
        "/metadata/labels",
        "/metadata/annotations",
        "/status/resources/vpc",
        "/status/failureDomains",
    ];
    for part in same {
        assert_eq!(moved.pointer(part), made.pointer(part), "{part}");
        assert!(made.pointer(part).is_some(), "{part}");
    }
    assert_ne!(moved["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(stage.writes(), [""; 0], "neither program writes to AWS");
    assert_eq!(stage.totals().await, with_cluster);
    let versions = history.versions();
    assert!(versions.iter().all(|it| condition(it, "Deleting").is_null()), "{versions:#?}");
    for scene in [&*stage, &target] {
        let secret = scene.object(&format!("secret keys -n {NAMESPACE}"));
        assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "AWSClusterStaticIdentity");
    }

    target.run(&format!("delete {CLUSTERS} one --wait=false"));
    target.until_gone(CLUSTERS, "one").await;
    target.until_gone(AWS_CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(from.manager).await;
    target.end(to.manager).await;
    to.clusterctl.run("delete --infrastructure=icm-aws");
    assert_eq!(
        target.run(&format!("get deployments,roles,rolebindings -n {NAMESPACE} -o name")),
        ""
    );
    assert!(
        target.succeeds("get crd awsclusters.infrastructure.cluster.x-k8s.io"),
        "objects are kept"
    );
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn clusterctl_upgrade_keeps_the_cluster_and_writes_nothing_to_aws() {
    const NEW: &str = "v0.1.1";
    let Some(stage) = Stage::set_at(empty).await else { return };
    let before = stage.totals().await;
    let side = Side::init(&stage, &stage).await;
    let made = generated(&stage, &side).await;
    let with_cluster = stage.totals().await;

    side.clusterctl.release(NEW, "${ICM_AWS_SYNC_PERIOD:=10m}", "${ICM_AWS_SYNC_PERIOD:=11m}");
    let plan = side.clusterctl.run("upgrade plan");
    let line = plan.lines().find(|line| line.starts_with("infrastructure-icm-aws"));
    assert!(line.is_some_and(|line| line.contains("v0.1.0") && line.contains(NEW)), "{plan}");
    stage.proxy.forget();
    side.clusterctl.run(&format!("upgrade apply --infrastructure=icm-aws:{NEW}"));
    stage.end(side.manager).await;
    let installed = stage.run("get providers -A -o jsonpath={.items[*].version}");
    assert!(installed.split(' ').any(|version| version == NEW), "{installed}");
    let deployment = stage.object(&format!("deployment infra-controller-manager -n {NAMESPACE}"));
    assert!(arguments(&deployment).contains(&"--sync-period=11m".to_owned()), "{deployment:#}");

    stage.proxy.forget();
    let manager = start(&stage, &stage);
    let looked = || stage.proxy.calls().iter().any(|it| it.action == "DescribeSecurityGroups");
    poll("the new program looks at AWS", async || looked().then_some(())).await;
    // Nothing is written while it stops.
    stage.end(manager).await;
    let kept = stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await;
    for part in ["/spec", "/metadata/uid", "/metadata/annotations", "/status/resources/vpc"] {
        assert_eq!(kept.pointer(part), made.pointer(part), "{part}");
        assert!(made.pointer(part).is_some(), "{part}");
    }
    assert_eq!(stage.writes(), [""; 0], "neither program writes to AWS");
    assert_eq!(stage.totals().await, with_cluster);

    let manager = start(&stage, &stage);
    stage.run(&format!("delete {CLUSTERS} one --wait=false"));
    stage.until_gone(CLUSTERS, "one").await;
    stage.until_gone(AWS_CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
