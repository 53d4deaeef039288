//! A webhook that is down, slow, out of date or out of its mind: what must never wait for it, and
//! what waits for it as the failure policy says.

use std::time::{Duration, SystemTime};

use futures::future::join_all;
use http::StatusCode;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use serving::{Access, Page, Pages, reply};
use tests::Stopwatch;
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use tests::poll::poll;

use crate::scene::{Call, DAY, Webhook, register, registration};
use crate::server::dry_run;

/// Longer than anything that does not ask the webhook takes, and than the server waits for one.
const WAITS: u32 = 2;
/// Delay of a webhook that does not answer in time.
const FOR_EVER: Duration = Duration::from_secs(50);
const PLANTED: &str = "cGxhbnRlZA==";

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"tenantID": "t", "type": "Imported", "addresses": [
            {"type": "Real", "host": "10.0.0.1", "port": 6443}]},
    })
}

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": name},
        "spec": {"clusterName": "cls-1", "type": "Baremetal", "ip": "10.0.0.1", "port": 22,
            "username": "root", "password": PLANTED},
    })
}

fn member(name: &str) -> Value {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"apiEndpoint": "https://10.0.0.1:6443", "secretRef": {"name": "one"}},
    })
}

/// Pages that no webhook should have.
fn odd_pages() -> Pages {
    let pages = Pages::new();
    let answers = [
        ("/garbage", StatusCode::OK, "planted garbage"),
        ("/empty", StatusCode::OK, "{}"),
        ("/broken", StatusCode::INTERNAL_SERVER_ERROR, "it is broken"),
    ];
    for (path, status, body) in answers {
        pages.add(Page::new(path, Access::Authorized, move |_| async move {
            reply::json(status, body)
        }));
    }
    pages.add(Page::new("/slow", Access::Authorized, async |_| {
        tokio::time::sleep(FOR_EVER).await;
        reply::json(StatusCode::OK, "{}")
    }));
    pages
}

/// Asks the API server to make one of each, without making it; how it refuses.
async fn refusals(client: &Client) -> Vec<String> {
    let asked = [cluster("new"), machine("new"), member("new")].map(|object| async move {
        let (api, sent) = api(client, &object).await;
        api.create(&dry_run(), &sent).await.err().map(|error| error.to_string())
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Changes of status and metadata, changes without a network check, and the deletion: all of them pass, and
/// none of them waits.
async fn life(client: &Client, object: &Value) {
    let (api, sent) = api(client, object).await;
    let name = sent.metadata.name.clone().unwrap();
    let watch = Stopwatch::start();
    let merge = PatchParams::default();
    let patch = |body: Value| Patch::Merge(body);
    let condition =
        json!({"type": "Ready", "status": "False", "lastProbeTime": "2026-01-02T03:04:05Z"});
    let status = json!({"status": {"conditions": [condition]}});
    api.patch_status(&name, &merge, &patch(status.clone())).await.unwrap();
    let mut applied = status;
    applied["apiVersion"] = object["apiVersion"].clone();
    applied["kind"] = object["kind"].clone();
    let apply = PatchParams::apply("test").force();
    api.patch_status(&name, &apply, &Patch::Apply(&applied)).await.unwrap();
    let metadata = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/a"]}});
    api.patch(&name, &merge, &patch(metadata)).await.unwrap();
    let harmless = match object["kind"].as_str() {
        Some("KubeFedCluster") => json!({"spec": {"proxyURL": "http://proxy:3128"}}),
        _ => json!({"spec": {"finalizers": ["a"]}}),
    };
    api.patch(&name, &merge, &patch(harmless)).await.unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    let freed = json!({"metadata": {"finalizers": null}});
    api.patch(&name, &merge, &patch(freed)).await.unwrap();
    assert!(api.get_opt(&name).await.unwrap().is_none(), "{name} is gone");
    let took = watch.elapsed();
    assert!(took < Duration::from_secs(u64::from(WAITS)), "{took:?}: something was asked about");
}

/// rule:the-webhook-helps-and-never-hurts
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_webhook_holds_up_new_objects_at_most_and_nothing_else_at_all() {
    let kubectl = Kubectl::with_crds().await;
    let client = kubectl.plane.client().await;
    let broken = Webhook::start(odd_pages(), SystemTime::now()).await;
    let expired = Webhook::start(odd_pages(), SystemTime::now() - 3 * DAY).await;
    let unused = tests::ports::free_port();
    let at = |port, path, bundle| Call { port, path, bundle, policy: "Fail", timeout: WAITS };
    for (what, call) in [
        ("down", at(unused, "/validate", Some(&*broken.bundle))),
        ("slow", at(broken.port, "/slow", Some(&broken.bundle))),
        ("expired", at(expired.port, "/empty", Some(&expired.bundle))),
        ("of another authority", at(broken.port, "/empty", Some(&expired.bundle))),
        ("garbage", at(broken.port, "/garbage", Some(&broken.bundle))),
        ("empty", at(broken.port, "/empty", Some(&broken.bundle))),
        ("broken", at(broken.port, "/broken", Some(&broken.bundle))),
    ] {
        for object in [cluster("one"), machine("one"), member("one")] {
            let (api, sent) = api(&client, &object).await;
            let made = async || api.create(&PostParams::default(), &sent).await.ok();
            poll("the objects are there", async || made().await.map(drop)).await;
        }
        register(&kubectl, &registration(&call));
        let refused = poll("it is asked, and refuses for it", async || {
            Some(refusals(&client).await).filter(|refused| refused.len() == 3)
        });
        for said in refused.await {
            assert!(said.contains("failed calling webhook"), "{what}: {said}");
            assert!(!said.contains("planted") && !said.contains(PLANTED), "{what}: {said}");
        }
        for object in [cluster("one"), machine("one"), member("one")] {
            life(&client, &object).await;
        }
        register(&kubectl, &registration(&Call { policy: "Ignore", ..call }));
        poll(&format!("with a webhook that is {what} new objects are taken"), async || {
            refusals(&client).await.is_empty().then_some(())
        })
        .await;
    }
}
