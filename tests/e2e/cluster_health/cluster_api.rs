//! Clusters of Cluster API, with upstream's CRD, whose status belongs to other programs too.

use serde_json::{Value, json};
use tests::control_plane::ControlPlane;
use tests::kubectl::{IDENTITY, Kubectl};
use tests::member::{Account, member};
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::{Process, Stopwatch};

use crate::probe_command::probe;

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
pub(crate) const NAMESPACE: &str = "fleet";
pub(crate) const HEALTHY: &str = "infra-controller-manager/Healthy";
pub(crate) const REACHABLE: &str = "infra-controller-manager/Reachable";
const CRD: &str = "tests/cluster-api-core/clusters.yaml";

/// A management cluster with the rights of `config/rbac` and the CRD of upstream.
pub(crate) async fn hub() -> Kubectl {
    let hub = hub_without_crds().await;
    hub.run(&format!("apply --server-side -f {CRD}"));
    hub.await_crds();
    hub
}

/// A management cluster with the rights of `config/rbac`.
pub(crate) async fn hub_without_crds() -> Kubectl {
    let hub = Kubectl::without_crds().await;
    for namespace in [NAMESPACE, "kube-federation-system"] {
        hub.run(&format!("create namespace {namespace}"));
    }
    let files = ["cluster-health-account", "cluster-health-capi", "cluster-health-member-secrets"];
    for file in ["role", "role-binding"].into_iter().chain(files) {
        hub.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    hub.run(&format!("apply -n {NAMESPACE} -f config/rbac/namespaces/member-secrets.yaml"));
    hub
}

pub(crate) fn start(hub: &Kubectl, planted: &Planted, flags: &[&str]) -> Discreet {
    let kubeconfig = hub.plane.kubeconfig(IDENTITY, &GROUPS).unwrap();
    let manager = Process::with_kubeconfig(&kubeconfig)
        .args(["--controllers=cluster-health-controller", "--leader-elect=false", "-v=2"])
        .args(["--use-service-account-credentials=true"])
        .args(["--cluster-health-flavours=capi", "--cluster-health-period=1s"])
        .args(["--cluster-health-timeout=900ms", "--cluster-health-confirm-interval=1s"])
        .args(flags)
        .start();
    Discreet::new(manager, planted, hub)
}

/// What the control plane provider keeps in the Secret of a Cluster.
pub(crate) fn kubeconfig(member: &ControlPlane, user: &Value) -> String {
    kubeconfig_at(member.url(), member, user)
}

/// Like [`kubeconfig`], for the member at another address.
pub(crate) fn kubeconfig_at(url: &str, member: &ControlPlane, user: &Value) -> String {
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(member.ca_pem());
    let server = json!({"server": url, "certificate-authority-data": ca});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin@one",
        "clusters": [{"name": "one", "cluster": server}],
        "contexts": [{"name": "admin@one", "context": {"cluster": "one", "user": "admin"}}],
        "users": [{"name": "admin", "user": user}],
    });
    config.to_string()
}

pub(crate) fn of(name: &str) -> String {
    format!("-n {NAMESPACE} clusters.cluster.x-k8s.io {name}")
}

pub(crate) fn condition(status: &Value, kind: &str) -> Value {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["type"] == kind).cloned().unwrap_or_default()
}

fn is_healthy(status: &Value) -> bool {
    [HEALTHY, REACHABLE].iter().all(|kind| condition(status, kind)["status"] == "True")
}

/// The status of the Cluster, as soon as it is as wanted.
async fn until(hub: &Kubectl, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    poll(&format!("the Cluster is {what}"), async || {
        let status = hub.object(&of("one"))["status"].clone();
        wanted(&status).then_some(status)
    })
    .await
}

/// Probes so far.
async fn probes(manager: &Discreet) -> f64 {
    let counted = manager.metric("clusterhealth_probes_total", &[("flavour", "capi")]);
    counted.await.unwrap_or_default()
}

/// rule:a-shared-status-is-shared
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_probed_with_its_kubeconfig_beside_the_controllers_that_own_it() {
    let (hub, member) = futures::join!(hub(), member());
    let (first, second) = (Account::of(&member).await, Account::of(&member).await);
    let planted = Planted::default();
    for token in [&first.token, &second.token] {
        planted.plant(token);
    }
    let manager = start(&hub, &planted, &[]);
    hub.create(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {
            "controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "one"},
        },
    }));
    let secret = |user: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": "one-kubeconfig", "namespace": NAMESPACE},
            "stringData": {"value": kubeconfig(&member, user)},
        })
    };
    hub.create(&secret(&json!({"token": first.token})));
    let theirs = json!({"type": "Available", "status": "True", "reason": "Available",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    hub.patch_status(&of("one"), &json!({ "conditions": [theirs] }));
    let initialized = json!({"initialization": {"controlPlaneInitialized": true}});
    hub.patch_status(&of("one"), &initialized);
    let watch = Stopwatch::start();
    let healthy = until(&hub, "healthy", is_healthy).await;
    println!("healthy {:?} after its control plane", watch.elapsed());
    assert_eq!(condition(&healthy, "Available"), theirs);
    let shown = format!("--kubeconfig={}", hub.plane.admin_kubeconfig().display());
    let probed = probe(&[&format!("capi/{NAMESPACE}/one"), &shown]);
    assert!(probed.status.success(), "{probed:?}");

    // The kubeconfig is renewed, and the old one ends.
    let since = condition(&healthy, HEALTHY)["lastTransitionTime"].clone();
    let renewed = secret(&json!({"token": second.token}));
    hub.patch(&format!("-n {NAMESPACE} secret one-kubeconfig"), "merge", &renewed);
    first.delete().await;
    let before = probes(&manager).await;
    poll("five probes later", async || (probes(&manager).await >= before + 5.0).then_some(()))
        .await;
    let status = hub.object(&of("one"))["status"].clone();
    assert_eq!(condition(&status, HEALTHY)["lastTransitionTime"], since, "{status}");

    // Core reads, changes its own condition and writes all of them, if nobody wrote in between.
    let mut written = 0;
    for number in 0..20 {
        let object = hub.object(&of("one"));
        let mut conditions = object["status"]["conditions"].as_array().unwrap().clone();
        let own = conditions.iter_mut().find(|it| it["type"] == "Available").unwrap();
        own["message"] = format!("number {number}").into();
        let patch = json!({
            "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
            "status": {"conditions": conditions},
        });
        hub.patch(&format!("{} --subresource=status", of("one")), "merge", &patch);
        written += 1;
        let status = hub.object(&of("one"))["status"].clone();
        assert_eq!(condition(&status, "Available")["message"], format!("number {number}"));
        assert!(is_healthy(&status), "{written}: {status}");
    }

    hub.patch(&of("one"), "merge", &json!({"spec": {"paused": true}}));
    let is_paused = |status: &Value| condition(status, HEALTHY)["reason"] == "ClusterPaused";
    let paused = until(&hub, "paused", is_paused).await;
    assert_eq!(condition(&paused, REACHABLE)["status"], "Unknown");
    assert_eq!(condition(&paused, "Available")["status"], "True");
    hub.patch(&of("one"), "merge", &json!({"spec": {"paused": null}}));
    until(&hub, "healthy after its pause", is_healthy).await;

    // A kubeconfig that would run a program is refused, by name.
    let exec = json!({"token": second.token,
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}});
    hub.patch(&format!("-n {NAMESPACE} secret one-kubeconfig"), "merge", &secret(&exec));
    let refused = until(&hub, "refused", |status| {
        condition(status, HEALTHY)["reason"] == "MalformedClusterConfig"
    })
    .await;
    let message = condition(&refused, HEALTHY)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("has exec, which is not used"), "{message}");
    hub.run(&format!("delete {}", of("one")));
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
}
