//! `--install-crds`, with the rights of `config/rbac/install-crds.yaml` and no others.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tests::poll::poll;
use tests::programs::{control_plane_binaries, workspace};
use tests::{PATIENCE, Process};

use tests::kubectl::Kubectl;

/// The service account of the bindings, as a token of it would be read.
const USER: &str = "system:serviceaccount:kube-system:infra-controller-manager";
/// Names of the CRDs, in the order of kubectl.
const CRDS: [&str; 13] = [
    "awsclustercontrolleridentities.infrastructure.cluster.x-k8s.io",
    "awsclusterroleidentities.infrastructure.cluster.x-k8s.io",
    "awsclusters.infrastructure.cluster.x-k8s.io",
    "awsclusterstaticidentities.infrastructure.cluster.x-k8s.io",
    "awsclustertemplates.infrastructure.cluster.x-k8s.io",
    "clustercidrs.networking.x-k8s.io",
    "clustercredentials.platform.tkestack.io",
    "clusters.cluster.x-k8s.io",
    "clusters.platform.tkestack.io",
    "kubefedclusters.core.kubefed.io",
    "kubefedconfigs.core.kubefed.io",
    "machines.cluster.x-k8s.io",
    "machines.platform.tkestack.io",
];
const TKE: &str = "platform.tkestack.io";
const TKE_MACHINES: &str = "machines.platform.tkestack.io";
const KUBEFED_CLUSTERS: &str = "kubefedclusters.core.kubefed.io";

/// A cluster without CRDs in which the product may install them.
async fn empty() -> Kubectl {
    let kubectl = Kubectl::without_crds().await;
    // Where KubeFed runs: a role of config/rbac is for it.
    kubectl.run("create namespace kube-federation-system");
    kubectl.run("apply -f config/rbac");
    kubectl
}

fn installer(kubectl: &Kubectl) -> Process {
    let kubeconfig = kubectl.plane.kubeconfig(USER, &[]).unwrap();
    Process::with_kubeconfig(&kubeconfig)
        .args(["--install-crds", "--leader-elect-retry-period=1s"])
        .start()
}

pub(crate) fn crds(kubectl: &Kubectl) -> Vec<String> {
    let names = kubectl.run("get crd -o name");
    names.lines().map(|line| line.split_once('/').unwrap().1.to_owned()).collect()
}

/// Waits until it has installed these.
async fn installed(manager: &Process, crds: &[&str]) {
    for crd in crds {
        let name = format!("crd=\"{crd}\"");
        let has_reason = |line: &str| line.contains("CRD installed") && line.contains(&name);
        manager.line_where(crd, has_reason).await;
    }
}

/// Ends it when all CRDs are judged.
async fn stop(manager: &Process) {
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    for line in manager.lines() {
        assert!(!line.contains("Cannot install a CRD"), "{line}");
    }
}

/// rule:crds-of-others-are-not-touched
#[tokio::test(flavor = "multi_thread")]
async fn the_flag_installs_the_crds_and_mends_those_that_are_ours() {
    let kubectl = empty().await;
    let manager = installer(&kubectl);
    installed(&manager, &CRDS).await;
    stop(&manager).await;
    assert_eq!(crds(&kubectl), CRDS);
    kubectl.await_crds();
    kubectl.run("apply -f config/samples");

    // What kubectl applied over them changes nothing; a field that was bent is mended.
    kubectl.run("apply -f config/crd");
    let bent = json!([{"op": "replace", "path": "/spec/names/shortNames", "value": ["odd"]}]);
    kubectl.patch("crd machines.platform.tkestack.io", "json", &bent);
    let manager = installer(&kubectl);
    for crd in CRDS {
        manager
            .line_where(crd, |line| line.contains("CRD is up to date") && line.contains(crd))
            .await;
    }
    stop(&manager).await;
    let names = &kubectl.object("crd machines.platform.tkestack.io")["spec"]["names"];
    assert_eq!(names["shortNames"], json!(["mc"]));
}

/// rule:crds-of-others-are-not-touched
#[tokio::test(flavor = "multi_thread")]
async fn crds_of_a_newer_release_are_left_alone() {
    let kubectl = empty().await;
    kubectl.run("apply -f config/crd/platform.tkestack.io_machines.yaml");
    let newer = json!({"metadata": {"annotations": {"infra-controller-manager/release": "99.0.0"}},
        "spec": {"names": {"shortNames": ["newer"]}}});
    kubectl.patch("crd machines.platform.tkestack.io", "merge", &newer);
    let manager = installer(&kubectl);
    manager
        .line_where("newer", |line| {
            line.contains(TKE_MACHINES) && line.contains("newer release 99.0.0")
        })
        .await;
    let others: Vec<_> = CRDS.into_iter().filter(|crd| *crd != TKE_MACHINES).collect();
    installed(&manager, &others).await;
    stop(&manager).await;
    let names = &kubectl.object("crd machines.platform.tkestack.io")["spec"]["names"];
    assert_eq!(names["shortNames"], json!(["newer"]));
}

/// rule:crds-of-others-are-not-touched
#[tokio::test(flavor = "multi_thread")]
async fn crds_of_others_and_groups_of_aggregated_servers_are_left_alone() {
    let kubectl = empty().await;
    kubectl.run("apply -f config/crd/core.kubefed.io_kubefedclusters.yaml");
    kubectl.run(
        "label crd kubefedclusters.core.kubefed.io app.kubernetes.io/managed-by=Helm --overwrite",
    );
    kubectl.create(&json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.platform.tkestack.io"},
        "spec": {
            "group": "platform.tkestack.io", "version": "v1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 1000, "versionPriority": 5,
            "service": {"name": "tke-platform-api", "namespace": "tke"},
        },
    }));
    let before = kubectl.object("crd kubefedclusters.core.kubefed.io");
    let manager = installer(&kubectl);
    let has_reason = |name: &str, reason: &str| {
        let wanted = ["CRD not installed".to_owned(), name.to_owned(), reason.to_owned()];
        move |line: &str| wanted.iter().all(|part| line.contains(&**part))
    };
    manager.line_where("the label", has_reason(KUBEFED_CLUSTERS, "without the label")).await;
    let (aggregated, others): (Vec<_>, Vec<_>) =
        CRDS.into_iter().partition(|crd| crd.ends_with(TKE));
    assert_eq!(aggregated.len(), 3);
    for crd in aggregated {
        manager
            .line_where(crd, has_reason(crd, "v1.platform.tkestack.io belongs to an aggregated"))
            .await;
    }
    let ours: Vec<_> = others.iter().copied().filter(|crd| *crd != KUBEFED_CLUSTERS).collect();
    installed(&manager, &ours).await;
    stop(&manager).await;
    assert_eq!(crds(&kubectl), others);
    let after = kubectl.object("crd kubefedclusters.core.kubefed.io");
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_flag_no_crd_is_installed_and_a_missing_right_is_tried_again_until_it_is_there()
{
    let kubectl = empty().await;
    kubectl.run("delete clusterrolebinding infra-controller-manager-install-crds");
    let kubeconfig = kubectl.plane.kubeconfig(USER, &[]).unwrap();
    let manager = Process::with_kubeconfig(&kubeconfig).start();
    manager.line("Successfully acquired lease").await;
    stop(&manager).await;
    // A dormant kind may have been told already.
    let has_tried = manager.has_said("\"CRD ") || manager.has_said("Cannot install a CRD");
    assert!(!has_tried, "{:?}", manager.lines());
    assert_eq!(crds(&kubectl), [""; 0]);

    let manager = installer(&kubectl);
    let refused = manager.line("Cannot install a CRD").await;
    assert!(refused.contains("forbidden") || refused.contains("403"), "{refused}");
    kubectl.run("apply -f config/rbac/install-crds.yaml");
    poll("all CRDs", async || (crds(&kubectl) == CRDS).then_some(())).await;
}

/// The CRD of Clusters as an earlier release had it: stored in v1alpha2.
fn older_clusters() -> Value {
    let path = workspace().join("config/crd/cluster.x-k8s.io_clusters.yaml");
    let mut crd: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    versions.retain(|version| version["name"] != "v1beta1");
    for version in versions {
        version["storage"] = json!(version["name"] == "v1alpha2");
    }
    crd
}

async fn create_clusters(kubectl: &Kubectl, version: &str) -> Vec<Value> {
    let reference = json!({"apiVersion": "i/v1alpha2", "kind": "K", "name": "n"});
    let spec = json!({"clusterNetwork": {"apiServerPort": 443}, "infrastructureRef": reference});
    let clusters = ["a", "b"].map(|name| {
        json!({"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    });
    let first = &clusters[0];
    poll("Clusters are served", async || kubectl.may_create(first).then_some(())).await;
    kubectl.create(&clusters[1]);
    clusters.to_vec()
}

fn stored_versions(kubectl: &Kubectl) -> Value {
    kubectl.object("crd clusters.cluster.x-k8s.io")["status"]["storedVersions"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_an_older_release_are_stored_again_so_that_their_version_can_go() {
    let kubectl = empty().await;
    let mut crd = older_clusters();
    kubectl.create(&crd);
    let clusters = create_clusters(&kubectl, "v1alpha2").await;
    assert_eq!(stored_versions(&kubectl), json!(["v1alpha2"]));
    let read = || kubectl.object("clusters.v1beta2.cluster.x-k8s.io -A")["items"].clone();
    let before = read();
    let manager = installer(&kubectl);
    manager.line("Objects of the CRD are stored in one version").await;
    installed(&manager, &["machines.cluster.x-k8s.io"]).await;
    stop(&manager).await;
    assert_eq!(stored_versions(&kubectl), json!(["v1beta2"]));
    let after = read();
    for (place, cluster) in clusters.iter().enumerate() {
        let [before, after] = [&before[place], &after[place]];
        assert_eq!(after["spec"], cluster["spec"]);
        let [was, is] = [before, after].map(|it| it["metadata"].clone());
        assert_ne!(was["resourceVersion"], is["resourceVersion"], "it was stored again");
        for field in ["generation", "managedFields", "uid"] {
            assert_eq!(was[field], is[field], "{field}");
        }
    }
    // Another program's CRD does not have the old version, and reads each object.
    crd = kubectl.object("crd clusters.cluster.x-k8s.io");
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    versions.retain(|version| version["name"] == "v1beta2");
    let versions = json!({"spec": {"versions": versions}});
    kubectl.patch("crd clusters.cluster.x-k8s.io", "merge", &versions);
    let older = "get clusters.v1alpha2.cluster.x-k8s.io -A";
    poll("the version is gone", async || (!kubectl.succeeds(older)).then_some(())).await;
    assert_eq!(read(), after);
}

/// rule:crds-of-others-are-not-touched
#[tokio::test(flavor = "multi_thread")]
async fn a_crd_with_objects_in_a_version_that_is_not_served_is_left_to_upstreams_release() {
    let kubectl = empty().await;
    let mut crd = older_clusters();
    crd["spec"]["versions"][0]["name"] = json!("v1alpha3");
    kubectl.create(&crd);
    create_clusters(&kubectl, "v1alpha3").await;
    let needed =
        "stored in v1alpha3, which is not served here; migrate with the upstream release first";
    let refused = apply_groups(&kubectl, &["cluster-api"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && told.contains(needed), "{told}");
    assert_eq!(crds(&kubectl), ["clusters.cluster.x-k8s.io"]);
    let manager = installer(&kubectl);
    manager
        .line_where("the version", |line| {
            line.contains("CRD not installed") && line.contains(needed)
        })
        .await;
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    assert_eq!(stored_versions(&kubectl), json!(["v1alpha3"]));
}

/// `deploy/crds`, as an operator runs it.
fn apply_groups(kubectl: &Kubectl, arguments: &[&str]) -> Output {
    let program = control_plane_binaries(&["kubectl"]).unwrap().remove(0);
    let path = std::env::var("PATH").unwrap();
    Command::new(workspace().join("deploy/crds"))
        .args(arguments)
        .env("KUBECONFIG", kubectl.plane.admin_kubeconfig())
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .output()
        .unwrap()
}

/// rule:crds-of-others-are-not-touched
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_applies_the_crds_of_one_group_and_none_over_those_of_others() {
    let kubectl = Kubectl::without_crds().await;
    let applied = apply_groups(&kubectl, &["cluster-cidrs"]);
    assert!(applied.status.success(), "{applied:?}");
    assert_eq!(crds(&kubectl), ["clustercidrs.networking.x-k8s.io"]);

    kubectl.run("apply -f config/crd/core.kubefed.io_kubefedclusters.yaml");
    kubectl.run(&format!("label crd {KUBEFED_CLUSTERS} app.kubernetes.io/managed-by-"));
    let before = kubectl.object(&format!("crd {KUBEFED_CLUSTERS}"));
    for arguments in [&["kubefed"][..], &["tke", "kubefed"], &["all"], &["--check", "kubefed"]] {
        let refused = apply_groups(&kubectl, arguments);
        let told = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        let foreign = format!("{KUBEFED_CLUSTERS} belongs to another program");
        assert!(told.contains(&foreign) && told.contains("nothing is applied"), "{told}");
    }
    let after = kubectl.object(&format!("crd {KUBEFED_CLUSTERS}"));
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert_eq!(crds(&kubectl).len(), 2, "no group is applied in part");

    let checked = apply_groups(&kubectl, &["--check", "tke"]);
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(crds(&kubectl).len(), 2, "a check applies nothing");
    assert!(apply_groups(&kubectl, &["tke", "cluster-api"]).status.success());
    assert_eq!(crds(&kubectl).len(), 12);
    kubectl.run(&format!("delete crd {KUBEFED_CLUSTERS}"));
    assert!(apply_groups(&kubectl, &["all"]).status.success());
    assert_eq!(crds(&kubectl), CRDS);
}
