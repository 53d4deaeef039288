//! The command `check`: what it says of a cluster before the program is started, and that it changes
//! nothing there.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tests::control_plane::MANAGER_USER;
use tests::kubectl::{Kubectl, Shell};
use tests::temp_dir::TempDir;
use tests::{Match, Process, mk_node, poll, ports};

use crate::scene::{AT_ONCE, Scene, writes};

/// Flags of a start that assigns pod CIDRs.
pub(crate) const ALLOCATING: [&str; 3] =
    ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/12", "--use-service-account-credentials"];
/// Flag that skips the health check: another program may use the usual port of this machine.
const NO_HEALTH: &str = "--stock-healthz=";

/// Runs it; exit code and what it found.
pub(crate) async fn check(kubeconfig: &Path, args: &[&str]) -> (Option<i32>, Vec<Finding>) {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let checking = Process::bare().args(["check", "-ojson", &kubeconfig]).args(args).start();
    let code = checking.exit(AT_ONCE).await.code();
    let output = checking.lines().join("\n");
    let report: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}"));
    assert_eq!(report["safe"], json!(code == Some(0)), "{output}");
    let findings = report["findings"].as_array().unwrap().iter().map(|finding| {
        ["severity", "check", "message"].map(|field| finding[field].as_str().unwrap().to_owned())
    });
    (code, findings.collect())
}

/// Severity, check and message.
pub(crate) type Finding = [String; 3];

/// Whether there is a finding whose message has this part.
pub(crate) fn has(findings: &[Finding], severity: &str, check: &str, part: &str) -> bool {
    findings.iter().any(|[s, c, message]| s == severity && c == check && message.contains(part))
}

/// The findings that forbid a start.
pub(crate) fn errors(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|[severity, ..]| severity == "error").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_in_order_is_safe_and_nothing_is_written_to_it() {
    let scene = Scene::set().await;
    mk_node("a").create(&scene.client).await;
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let (code, findings) = check(scene.proxy.kubeconfig(), &args).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    for (check, message) in [
        ("api-server", "the API server answers"),
        ("rights", "needed permissions are granted"),
        ("leases", "kube-system/infra-controller-manager has no holder"),
        ("stock", "found no pods of kube-controller-manager"),
        ("nodes", "Nodes that wait for a pod CIDR: 1"),
        ("nodes", "10.0.0.0/12 has 4096 of 4096 blocks of /24 free, and 0 Nodes in it"),
    ] {
        assert!(has(&findings, "ok", check, message), "{message} is missing in {findings:#?}");
    }
    assert!(has(&findings, "warning", "leases", "no process holds the lease"), "{findings:#?}");
    let changes = writes()
        .and(|request| request.method != Method::POST || !request.path.ends_with("accessreviews"));
    assert_eq!(scene.proxy.requests_like(&changes).len(), 0);
    assert!(!scene.proxy.requests_like(&Match::any()).is_empty(), "the proxy sees it all");
}

#[tokio::test(flavor = "multi_thread")]
async fn doubled_cidrs_and_a_stock_manager_that_allocates_are_errors() {
    let scene = Scene::set().await;
    for (name, cidr) in [("a", "10.0.0.0/24"), ("b", "10.0.0.128/25"), ("c", "172.16.0.0/24")] {
        mk_node(name).cidr(cidr).create(&scene.client).await;
    }
    let kubectl = Shell::new(scene.cluster.admin_kubeconfig());
    kubectl.run("create serviceaccount default -n kube-system");
    kubectl.create(&stock_pod(&["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/16"]));
    let args = [&ALLOCATING[..], &[NO_HEALTH, "--claims"]].concat();
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    for reported in ["10.0.0.0/12 has 4095 of 4096 blocks of /24 free", "c has 172.16.0.0/24"] {
        assert!(has(&findings, "ok", "nodes", reported), "{reported} is missing in {findings:#?}");
    }
    assert_eq!(errors(&findings).len(), 2, "{findings:#?}");
    let overlap = "a has 10.0.0.0/24 and b has 10.0.0.128/25, which overlap";
    assert!(has(&findings, "error", "nodes", overlap), "{findings:#?}");
    let stock = "pod kube-controller-manager-a runs node-ipam-controller";
    assert!(has(&findings, "error", "stock", stock), "{findings:#?}");
    for (check, warning) in [
        ("nodes", "c has 172.16.0.0/24, outside --cluster-cidr"),
        ("nodes", "for example b with 10.0.0.128/25"),
        ("stock", "has --cluster-cidr=10.0.0.0/16, this program has"),
    ] {
        assert!(has(&findings, "warning", check, warning), "{warning} is missing in {findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leading_stock_manager_with_unknown_flags_is_a_warning() {
    let scene = Scene::set().await;
    let kubectl = Shell::new(scene.cluster.admin_kubeconfig());
    let now = format!("{:.6}", jiff::Timestamp::now());
    kubectl.create(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
        "spec": {"holderIdentity": "a_1", "renewTime": now},
    }));
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let silent = "kube-controller-manager leads, and it is unknown whether it assigns pod CIDRs";
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
    assert!(has(&findings, "warning", "stock", silent), "{findings:#?}");
    assert_eq!(code, Some(0), "{findings:#?}");
    kubectl.run("create serviceaccount default -n kube-system");
    kubectl.create(&stock_pod(&["--allocate-node-cidrs=false"]));
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
    assert!(!has(&findings, "warning", "stock", silent), "{findings:#?}");
    assert_eq!(code, Some(0), "{findings:#?}");
}

/// A program that may assign pod CIDRs is a warning, one that does so an error.
#[tokio::test(flavor = "multi_thread")]
async fn other_allocators_and_controllers_that_kubeadm_needs_are_reported() {
    let scene = Scene::set().await;
    let kubectl = Shell::new(scene.cluster.admin_kubeconfig());
    let config = |name: &str, key: &str, text: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"}, "data": {key: text},
        })
    };
    let now = format!("{:.6}", jiff::Timestamp::now());
    kubectl.create(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "node-ipam-controller", "namespace": "kube-system"},
        "spec": {"holderIdentity": "a_1", "renewTime": now},
    }));
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let lease = "lease kube-system/node-ipam-controller is held by a_1";
    assert!(has(&findings, "warning", "allocators", lease), "{findings:#?}");
    kubectl.run("create serviceaccount default -n kube-system");
    kubectl.create(&pod("aws-cloud-controller-manager", &["--allocate-node-cidrs"]));
    kubectl.create(&stock_pod(&["--controllers=-node-ipam-controller"]));
    let antrea = "nodeIPAM:\n  enableNodeIPAM: true\n";
    kubectl.create(&config("antrea-config", "antrea-controller.conf", antrea));
    let kubeadm = "controllerManager:\n  extraArgs:\n    controllers: \"*,-nodeipam\"\n";
    kubectl.create(&config("kubeadm-config", "ClusterConfiguration", kubeadm));
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    for reported in [
        "pod aws-cloud-controller-manager-a has --allocate-node-cidrs",
        "pod kube-controller-manager-a has --controllers=-node-ipam-controller, without *, \
         bootstrapsigner, tokencleaner",
        "kubeadm-config has --controllers=*,-nodeipam, without bootstrapsigner, tokencleaner",
        "antrea-config has enableNodeIPAM",
    ] {
        assert!(has(&findings, "error", "allocators", reported), "{reported}: {findings:#?}");
    }
}

fn stock_pod(args: &[&str]) -> Value {
    pod("kube-controller-manager", args)
}

fn pod(name: &str, args: &[&str]) -> Value {
    let command = [&[name][..], args].concat();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{name}-a"), "namespace": "kube-system",
            "labels": {"component": name, "k8s-app": name},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{"name": name, "image": "registry.k8s.io/kcm", "command": command}],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_and_an_api_server_that_is_away_are_errors() {
    let scene = Scene::set().await;
    let without = scene.cluster.kubeconfig("without-rights", &[]).unwrap();
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let (code, findings) = check(&without, &args).await;
    assert_eq!(code, Some(1));
    for missing in [
        "the identity of --kubeconfig may not list nodes",
        "the identity of --kubeconfig may not update leases.coordination.k8s.io infra-controller-manager in kube-system",
        "the identity of --kubeconfig may not create serviceaccounts/token node-controller in kube-system",
    ] {
        assert!(has(&findings, "error", "rights", missing), "{missing} is missing: {findings:#?}");
    }
    let away = [&args[..], &["--master=https://127.0.0.1:1"]].concat();
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &away).await;
    assert_eq!((code, errors(&findings).len()), (Some(1), 1), "{findings:#?}");
    assert!(has(&findings, "error", "api-server", ""), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_accounts_rights_for_kinds_that_are_served_are_asked_for_whoever_has_their_crds() {
    const MISSING: &str = "service account kube-system/cluster-health-controller may not patch \
                           kubefedclusters.core.kubefed.io/status";
    const CRD: &str = "crd kubefedclusters.core.kubefed.io";
    let hub = Kubectl::without_crds().await;
    let kubeconfig = hub.plane.manager_kubeconfig();
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let (code, findings) = check(&kubeconfig, &args).await;
    assert_eq!(code, Some(0), "no kind is served: {findings:#?}");
    let record =
        "may not patch configmaps icm-pools in kube-system (pod CIDRs are assigned without it";
    assert!(has(&findings, "warning", "rights", record), "{findings:#?}");

    hub.run("apply -f config/crd/core.kubefed.io_kubefedclusters.yaml");
    hub.await_crds();
    let (code, findings) = poll("the kind is served", async || {
        let (code, findings) = check(&kubeconfig, &args).await;
        (code != Some(0)).then_some((code, findings))
    })
    .await;
    assert_eq!(code, Some(1));
    assert!(has(&findings, "error", "rights", MISSING), "{findings:#?}");

    // Another program's CRD, whose kind is dormant here.
    hub.run(&format!("label {CRD} app.kubernetes.io/managed-by=kubefed --overwrite"));
    let (code, findings) = check(&kubeconfig, &args).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert!(has(&findings, "warning", "rights", MISSING), "{findings:#?}");
    let foreign = "CRD kubefedclusters.core.kubefed.io belongs to another program";
    assert!(has(&findings, "warning", "crds", foreign), "{findings:#?}");
    let installing = [&args[..], &["--install-crds"]].concat();
    let (code, findings) = check(&kubeconfig, &installing).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    assert!(has(&findings, "error", "crds", foreign), "{findings:#?}");
    let by_name = [&args[..], &["--controllers=nodeipam,cluster-health"]].concat();
    let (code, findings) = check(&kubeconfig, &by_name).await;
    assert_eq!(code, Some(1), "asked for by name it is not dormant: {findings:#?}");

    hub.run("create namespace kube-federation-system");
    for file in ["cluster-health", "cluster-health-account", "node-ipam-records"] {
        hub.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    let (code, findings) = check(&kubeconfig, &by_name).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert!(has(&findings, "ok", "rights", "needed permissions are granted"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_mask_that_differs_and_a_certificate_that_expires_soon_are_reported() {
    let scene = Scene::set().await;
    let kubectl = Shell::new(scene.cluster.admin_kubeconfig());
    kubectl.run("create serviceaccount default -n kube-system");
    let all = "--controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller";
    let stock = [all, "--allocate-node-cidrs=true"];
    kubectl.create(&stock_pod(&[&stock[..], &["--cluster-cidr=10.0.0.0/12"]].concat()));
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let kubeconfig = scene.cluster.manager_kubeconfig();
    let (code, findings) = check(&kubeconfig, &args).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert!(has(&findings, "ok", "api-server", "the client certificate"), "{findings:#?}");
    let other = [&args[..], &["--node-cidr-mask-size=25"]].concat();
    let (code, findings) = check(&kubeconfig, &other).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let reported = "assigns blocks of /24 from 10.0.0.0/12, this program assigns /25";
    assert!(has(&findings, "error", "stock", reported), "{findings:#?}");

    let weeks = Duration::from_secs(14 * 24 * 3600);
    let soon = scene.cluster.client_certificate(MANAGER_USER, &[], weeks).unwrap();
    let dir = TempDir::new("soon").unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let user = json!({
        "client-certificate": file("crt", &soon.certificate_pem),
        "client-key": file("key", &soon.key_pem),
    });
    let server = json!({
        "server": scene.cluster.url(),
        "certificate-authority": scene.cluster.dir().join("ca.crt"),
    });
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": server}],
        "users": [{"name": "u", "user": user}],
    });
    let (code, findings) = check(&file("kubeconfig", &text.to_string()), &args).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let reported = "the client certificate of --kubeconfig expires in 1";
    assert!(has(&findings, "warning", "api-server", reported), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_of_this_host_are_reported_before_the_start() {
    let scene = Scene::set().await;
    let port = ports::free_port();
    let secure_port = format!("--secure-port={port}");
    let fine = [&ALLOCATING[..], &[NO_HEALTH, "--bind-address=127.0.0.1", &secure_port]].concat();
    for (flags, reported) in [
        (&["--client-ca-file=/nowhere"][..], "cannot use the CAs in \"/nowhere\""),
        (&["--authorization-kubeconfig=/nowhere"], "given with --authorization-kubeconfig"),
        (&["--tls-cert-file=/nowhere", "--tls-private-key-file=/key"], "key file \"/nowhere\""),
        (&["--tls-sni-cert-key=/there,/key"], "key file \"/there\""),
        (&["--allow-metric-labels-manifest=/nowhere"], "--allow-metric-labels-manifest=/nowhere"),
        // Of the addresses that stand in documents.
        (&["--additional-bind-addresses=192.0.2.1"], "cannot listen on 192.0.2.1"),
    ] {
        let args = [&fine[..], flags].concat();
        let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
        assert_eq!((code, errors(&findings).len()), (Some(1), 1), "{flags:?}: {findings:#?}");
        assert!(has(&findings, "error", "flags", reported), "{flags:?}: {findings:#?}");
    }
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &fine).await;
    assert_eq!((code, errors(&findings).len()), (Some(0), 0), "{findings:#?}");
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &fine).await;
    assert_eq!(code, Some(0), "who has the port may be gone by then: {findings:#?}");
    let in_use = format!("port {port} is in use");
    assert!(has(&findings, "warning", "flags", &in_use), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_replica_may_be_started_while_one_leads() {
    let scene = Scene::set().await;
    let leading = scene.start("").await;
    let args = [&ALLOCATING[..], &[NO_HEALTH]].concat();
    let (code, findings) = check(&scene.cluster.manager_kubeconfig(), &args).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let held = "kube-system/infra-controller-manager is held by";
    assert!(has(&findings, "ok", "leases", held), "{findings:#?}");
    assert!(leading.is_running());
}
