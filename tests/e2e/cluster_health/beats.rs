//! A member that renews its Lease in the management cluster while probes do not reach it.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tests::kubectl::FEDERATION;
use tests::member::{Account, member};
use tests::poll::poll;
use tests::programs::product;
use tokio::net::TcpListener;

use crate::guard::Forwarder;
use crate::kubefed::secret;
use crate::scene::{Conditions, Scene};

const NAMESPACE: &str = "beats";

/// Renews the Lease once, as the agent in the member does in rounds.
fn beat(hub: &Path, member: &Path, lease: &str) -> Output {
    let mut command = Command::new(product());
    command.arg("beat").arg(format!("--kubeconfig={}", hub.display()));
    command.arg(format!("--member-kubeconfig={}", member.display()));
    command.args([&format!("--lease={NAMESPACE}/{lease}"), "--lease-duration=10m", "--once"]);
    command.output().unwrap()
}

fn is_offline_or_unready(conditions: &Conditions) -> bool {
    conditions.is_offline() || conditions.is_not_ready()
}

/// `rule:our-outage-is-not-theirs`
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_renews_its_lease_is_not_published_as_offline() {
    let mut member = member().await;
    let account = Account::of(&member).await;
    let address = member.url().trim_start_matches("https://").to_owned();
    let way = Forwarder::start(1, address).await;
    let scene = Scene::set_with(&[&format!("--cluster-health-beats-namespace={NAMESPACE}")]).await;
    scene.kubectl(&format!("create namespace {NAMESPACE}"));
    scene.kubectl(&format!("apply -n {NAMESPACE} -f config/rbac/namespaces/member-beats.yaml"));
    scene.create_secret("one", &secret(&member, &account.token)).await;
    let endpoint = format!("https://127.0.0.1:{}", way.ports[0]);
    let spec = json!({"apiEndpoint": endpoint, "secretRef": {"name": "one"}});
    scene.create_cluster("one", &spec).await;
    scene.until("one", "ready", Conditions::is_ready).await;

    let (hub, at_home) = (scene.hub.plane.admin_kubeconfig(), member.admin_kubeconfig());
    let object = scene.hub.object(&format!("kubefedcluster one -n {FEDERATION}"));
    let lease = format!("kubefed-{}", object["metadata"]["uid"].as_str().unwrap());
    let missing = beat(&hub, &at_home, &lease);
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    let expected = format!("cannot renew Lease {NAMESPACE}/{lease}: it does not exist");
    assert!(!missing.status.success() && text.contains(&expected), "{text}");
    scene.hub.create(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": lease, "namespace": NAMESPACE},
    }));
    assert!(beat(&hub, &at_home, &lease).status.success());
    let renewed = scene.hub.object(&format!("lease {lease} -n {NAMESPACE}"));
    let said = &renewed["metadata"]["annotations"]["infra-controller-manager/readyz"];
    assert_eq!((said, &renewed["spec"]["leaseDurationSeconds"]), (&json!("ok"), &json!(600)));

    way.cut(true);
    let told = scene.until("one", "ready, and not reached", |conditions| {
        assert!(!is_offline_or_unready(conditions), "{conditions:?}");
        conditions.message().starts_with("probes do not reach the cluster")
    });
    assert!(told.await.is_ready());
    poll("the event is there", async || {
        scene.kubectl("get events -A").contains("ProbePathDown").then_some(())
    })
    .await;
    way.cut(false);
    scene.until("one", "reached", |it| it.message().starts_with("/readyz responded with ok")).await;

    // Its own API server is gone, and the agent says so.
    way.cut(true);
    member.stop_api_server().await;
    assert!(beat(&hub, &at_home, &lease).status.success());
    let unwell = scene.until("one", "not ready by its Lease", Conditions::is_not_ready).await;
    assert!(
        unwell.message().contains("its Lease reports that its /readyz fails: beat"),
        "{unwell:?}"
    );
    // Without a Lease the probes alone decide.
    scene.kubectl(&format!("delete lease {lease} -n {NAMESPACE}"));
    scene.until("one", "offline", Conditions::is_offline).await;
    member.start_api_server().await.unwrap();
    way.cut(false);
    scene.until("one", "ready again", Conditions::is_ready).await;
    scene.kubectl(&format!("delete namespace {NAMESPACE} --wait=false"));
}

/// rule:our-outage-is-not-theirs
#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_evidence_beat_is_judged_by_its_lease_and_gets_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (endpoint, connections) =
        (format!("https://{}", listener.local_addr().unwrap()), Arc::<AtomicUsize>::default());
    let counting = Arc::clone(&connections);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counting.fetch_add(1, Ordering::Relaxed);
        }
    });
    let scene = Scene::set_with(&[&format!("--cluster-health-beats-namespace={NAMESPACE}")]).await;
    scene.kubectl(&format!("create namespace {NAMESPACE}"));
    scene.kubectl(&format!("apply -n {NAMESPACE} -f config/rbac/namespaces/member-beats.yaml"));
    scene.hub.create(&json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "two", "namespace": FEDERATION,
            "annotations": {"infra-controller-manager/evidence": "beat"}},
        "spec": {"apiEndpoint": endpoint, "secretRef": {"name": "no-such-secret"}},
    }));
    let object = scene.hub.object(&format!("kubefedcluster two -n {FEDERATION}"));
    let lease = format!("kubefed-{}", object["metadata"]["uid"].as_str().unwrap());
    let has_stopped = |it: &Conditions| it.states().2 == "HeartbeatStopped";
    let stopped = scene.until("two", "without a heartbeat", has_stopped).await;
    assert_eq!(stopped.states(), ("Unknown".into(), "Unknown".into(), "HeartbeatStopped".into()));
    assert!(stopped.message().contains(&format!("Lease {NAMESPACE}/{lease}")), "{stopped:?}");

    let hub = scene.hub.plane.admin_kubeconfig();
    let renew = || {
        scene.hub.create(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": lease, "namespace": NAMESPACE},
        }));
        assert!(beat(&hub, &hub, &lease).status.success());
    };
    renew();
    let ready = scene.until("two", "ready by its Lease", Conditions::is_ready).await;
    assert_eq!(ready.message(), "the cluster renews its Lease; it is not probed");
    scene.kubectl(&format!("delete lease {lease} -n {NAMESPACE}"));
    scene.until("two", "without a heartbeat", has_stopped).await;

    let annotate = |evidence: &str| {
        let annotation = format!("infra-controller-manager/evidence={evidence}");
        scene.kubectl(&format!(
            "annotate --overwrite kubefedcluster two -n {FEDERATION} {annotation}"
        ));
    };
    annotate("maybe");
    scene.until("two", "probed as usual, without its Secret", Conditions::is_malformed).await;
    poll("the event is there", async || {
        scene.kubectl("get events -A").contains("EvidenceInvalid").then_some(())
    })
    .await;
    annotate("beat");
    renew();
    scene.until("two", "ready by its Lease", Conditions::is_ready).await;
    assert_eq!(connections.load(Ordering::Relaxed), 0);
    scene.kubectl(&format!("delete namespace {NAMESPACE} --wait=false"));
}
