//! The incident that all this began with: a cluster whose health could not be written any more, since what stood in its
//! spec was judged, and its machines were dialled, with each write of its status.

use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::stored_before::{after_an_upgrade, hopeless};
use tests::{Process, Stopwatch};

use crate::objects;
use crate::replicas::{at, product};
use crate::scene::register;
use crate::server::dry_run;

/// Writes of the status, half of them by merge and half by apply.
const WRITES: usize = 60;
/// No write of a status takes as long, and anything that is dialled or waits for a webhook does.
const LIMIT: Duration = Duration::from_secs(2);

/// An address without a host: packets to it are lost.
const NOWHERE: &str = "192.0.2.1";

/// Duration of each write.
async fn written(clusters: &Api<DynamicObject>, name: &str) -> Vec<Duration> {
    let mut took = Vec::new();
    for count in 0..WRITES {
        let condition = json!({"type": "HealthCheck", "status": "False",
            "lastProbeTime": "2026-01-02T03:04:05Z", "reason": "HealthCheckFail"});
        let body = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
            "metadata": {"name": name},
            "status": {"phase": "Failed", "message": count.to_string(), "conditions": [condition]}});
        let watch = Stopwatch::start();
        let answer = if count % 2 == 0 {
            clusters.patch_status(name, &PatchParams::default(), &Patch::Merge(&body)).await
        } else {
            let apply = PatchParams::apply("test").force();
            clusters.patch_status(name, &apply, &Patch::Apply(&body)).await
        };
        took.push(watch.elapsed());
        answer.unwrap_or_else(|error| panic!("write {count}: {error}"));
    }
    took.sort_unstable();
    took
}

/// The durations as text; asserts that none is too long.
fn times(took: &[Duration]) -> String {
    let at = |part: usize| took[(took.len() - 1) * part / 100];
    assert!(at(100) < LIMIT, "{took:?}");
    format!("median {:?}, 99 % {:?}, longest {:?}", at(50), at(99), at(100))
}

/// A webhook of the product that refuses what it cannot judge, and then is no more.
async fn gone_webhook(kubectl: &Kubectl) {
    kubectl.run("create namespace kube-federation-system");
    kubectl.run("apply -f config/rbac");
    let flags = ["--webhook-failure-policy=Fail", "--leader-elect=false"];
    let (manager, port): (Process, u16) = product(kubectl, &flags).await;
    register(kubectl, &at(port, "Fail"));
    is_refused(kubectl, "there is no Cluster of this name").await;
    drop(manager);
    is_refused(kubectl, "failed calling webhook").await;
}

async fn is_refused(kubectl: &Kubectl, why: &str) {
    let client = kubectl.plane.client().await;
    let (machines, machine) = api(&client, &objects::machine()).await;
    poll(why, async || {
        let answer = machines.create(&dry_run(), &machine).await;
        answer.is_err_and(|error| error.to_string().contains(why)).then_some(())
    })
    .await;
}

/// rule:deletions-and-status-writes-are-free, rule:the-webhook-helps-and-never-hurts
#[tokio::test(flavor = "multi_thread")]
async fn the_health_of_an_invalid_cluster_is_written_without_other_objects() {
    let [mut cluster, _, _, machine, member] = hopeless();
    let unreachable = |ip: &str| json!({"ip": ip, "port": 22, "username": ""});
    cluster["spec"]["machines"] = json!([unreachable(NOWHERE), unreachable(NOWHERE)]);
    cluster["spec"]["addresses"] = json!([{"type": "Real", "host": NOWHERE, "port": 6443}]);
    cluster["spec"]["clusterCredentialRef"] = json!({"name": "gone"});
    let stored: [Value; 3] = [cluster, machine, member];
    let kubectl = after_an_upgrade(&stored).await;
    let client = kubectl.plane.client().await;
    let (clusters, _) = api(&client, &stored[0]).await;
    println!("without a webhook: {}", times(&written(&clusters, "cls.bad").await));

    gone_webhook(&kubectl).await;
    kubectl.run("delete mc --all");
    kubectl.run("delete kubefedclusters --all -n default");
    let took = written(&clusters, "cls.bad").await;
    println!("with network, SSH, webhook and all other objects gone: {}", times(&took));
}
