//! Clusters whose status Cluster API's own core writes, too, with its availability gates.

use std::time::Duration;

use serde_json::{Value, json};
use tests::cluster_api_core::ClusterApiCore;
use tests::control_plane::ControlPlane;
use tests::kubectl::Kubectl;
use tests::member::{Account, member};
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::{Process, Stopwatch};

use crate::cluster_api::{
    HEALTHY, NAMESPACE, REACHABLE, condition, hub_without_crds, kubeconfig, of, start,
};

/// An outage is published so long after it began, with the flags of [`start`] (G-4 and 2 s of the guard).
const OUTAGE: Duration = Duration::from_millis(6_200);
/// The core follows a gate of a Cluster so long after the gate.
const FOLLOWS: Duration = Duration::from_secs(5);
/// Renewals of a kubeconfig in a day, if it is renewed each hour.
const RENEWALS: usize = 24;
const GROUPS: [(&str, &str); 2] = [
    ("infrastructure.cluster.x-k8s.io", "TestCluster"),
    ("controlplane.cluster.x-k8s.io", "TestControlPlane"),
];

/// A Cluster `one` of a management cluster with the core.
struct Scene {
    // Fields drop in this order.
    manager: Discreet,
    core: Process,
    hub: Kubectl,
    planted: Planted,
}

impl Scene {
    /// A Cluster whose control plane the account reaches.
    async fn set(member: &ControlPlane, account: &Account) -> Self {
        let hub = hub_without_crds().await;
        let installed = install(&hub);
        let core = installed.start(&[]).await;
        let planted = Planted::default();
        planted.plant(&account.token);
        let manager = start(&hub, &planted, &[]);
        hub.create(&secret("one", &kubeconfig(member, &json!({"token": account.token}))));
        let port: u16 = member.url().rsplit(':').next().unwrap().parse().unwrap();
        hub.create_all(&provided("one", port));
        hub.create(&cluster("one"));
        let scene = Self { manager, core, hub, planted };
        scene.until("available", is_available).await;
        scene
    }

    /// The status of the Cluster, as soon as it is as wanted.
    async fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        poll(&format!("the Cluster is {what}"), async || {
            let status = self.hub.object(&of("one"))["status"].clone();
            wanted(&status).then_some(status)
        })
        .await
    }

    /// Asserts that the core and the product had no trouble with each other.
    fn end(self) {
        let of_product = self.manager.lines();
        assert!(!self.manager.has_said("Missing permission"), "{of_product:?}");
        let events = self.hub.run("get events -A");
        assert!(!events.contains("ConditionOwnedByOther"), "{events}");
        let panics = self.core.lines().into_iter().filter(|line| line.contains("panic"));
        assert_eq!(panics.collect::<Vec<_>>(), [""; 0]);
    }
}

/// An account whose kubeconfig the core can use, too.
pub(crate) async fn admin(member: &ControlPlane) -> Account {
    let account = Account::of(member).await;
    account.make_admin().await;
    account
}

/// The CRDs of the core, and those of a provider of infrastructure and one of control planes.
pub(crate) fn install(hub: &Kubectl) -> ClusterApiCore {
    for (group, kind) in GROUPS {
        let singular = kind.to_lowercase();
        hub.create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{singular}s.{group}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        }));
    }
    ClusterApiCore::install(hub)
}

/// What providers have made for a Cluster.
pub(crate) fn provided(name: &str, port: u16) -> [Value; 2] {
    let done = |kind: &str| {
        json!([{"type": kind, "status": "True", "reason": kind, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    };
    let [infrastructure, control_plane] = GROUPS.map(|(group, kind)| {
        json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}})
    });
    let (mut infrastructure, mut control_plane) = (infrastructure, control_plane);
    infrastructure["spec"] = json!({"controlPlaneEndpoint": {"host": "127.0.0.1", "port": port}});
    infrastructure["status"] =
        json!({"initialization": {"provisioned": true}, "conditions": done("Ready")});
    control_plane["status"] = json!({"initialization": {"controlPlaneInitialized": true}, "conditions": done("Available")});
    [infrastructure, control_plane]
}

/// A Cluster with our gate.
pub(crate) fn cluster(name: &str) -> Value {
    let [infrastructure, control_plane] =
        GROUPS.map(|(group, kind)| json!({"apiGroup": group, "kind": kind, "name": name}));
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"infrastructureRef": infrastructure, "controlPlaneRef": control_plane,
            "availabilityGates": [{"conditionType": HEALTHY}]},
    })
}

pub(crate) fn secret(cluster: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": format!("{cluster}-kubeconfig"), "namespace": NAMESPACE,
            "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "stringData": {"value": kubeconfig},
    })
}

fn is(status: &Value, kind: &str, wanted: &str) -> bool {
    condition(status, kind)["status"] == wanted
}

fn is_available(status: &Value) -> bool {
    ["Available", HEALTHY, REACHABLE].iter().all(|kind| is(status, kind, "True"))
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn available_of_the_core_follows_our_gate_both_ways() {
    let mut member = member().await;
    let account = admin(&member).await;
    let scene = Scene::set(&member, &account).await;

    let stopped = Stopwatch::start();
    member.stop_api_server().await;
    scene.until("not healthy", |it| is(it, HEALTHY, "False")).await;
    let (published, follows) = (stopped.elapsed(), Stopwatch::start());
    let down = scene.until("not available", |it| is(it, "Available", "False")).await;
    let followed = follows.elapsed();
    println!("not healthy after {published:?}, not available {followed:?} later");
    assert!(published <= OUTAGE, "published after {published:?}");
    assert!(followed <= FOLLOWS, "followed after {followed:?}");
    let message = condition(&down, "Available")["message"].as_str().unwrap().to_owned();
    assert!(message.contains(HEALTHY), "{message}");

    member.start_api_server().await.unwrap();
    let started = Stopwatch::start();
    scene.until("healthy", |it| is(it, HEALTHY, "True")).await;
    let (published, follows) = (started.elapsed(), Stopwatch::start());
    let up = scene.until("available", is_available).await;
    let followed = follows.elapsed();
    println!("healthy after {published:?}, available {followed:?} later: {up}");
    assert!(followed <= FOLLOWS, "followed after {followed:?}");
    scene.end();
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_renewed_each_hour_for_a_day_changes_no_condition() {
    let member = member().await;
    let mut account = admin(&member).await;
    let scene = Scene::set(&member, &account).await;
    let since = |status: &Value| {
        ["Available", HEALTHY, REACHABLE]
            .map(|kind| condition(status, kind)["lastTransitionTime"].clone())
    };
    let before = since(&scene.hub.object(&of("one"))["status"]);
    let probes = async || {
        let counted = scene.manager.metric("clusterhealth_probes_total", &[("flavour", "capi")]);
        counted.await.unwrap_or_default()
    };
    for renewal in 0..RENEWALS {
        let next = admin(&member).await;
        scene.planted.plant(&next.token);
        let renewed = secret("one", &kubeconfig(&member, &json!({"token": next.token})));
        scene.hub.patch(&format!("-n {NAMESPACE} secret one-kubeconfig"), "merge", &renewed);
        account.delete().await;
        account = next;
        let so_far = probes().await;
        poll("the next probes", async || (probes().await >= so_far + 3.0).then_some(())).await;
        let status = scene.hub.object(&of("one"))["status"].clone();
        assert_eq!(since(&status), before, "renewal {renewal}: {status}");
    }
    scene.end();
}
