//! No schema of `config/crd` stands in the way of an object that was stored before it had its
//! rules.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tests::dynamic::api;
use tests::stored_before::{after_an_upgrade, hopeless};

/// rule:deletions-and-status-writes-are-free
#[tokio::test(flavor = "multi_thread")]
async fn no_schema_stands_in_the_way_of_what_was_stored_before_it() {
    let stored = hopeless();
    let kubectl = after_an_upgrade(&stored).await;
    let client = kubectl.plane.client().await;
    for object in &stored {
        may_be_lived_with(&client, object).await;
    }
}

/// Writes its status in both ways, changes metadata and a field that nothing is wrong with, and
/// deletes it.
async fn may_be_lived_with(client: &Client, object: &Value) {
    let (api, sent) = api(client, object).await;
    let name = sent.metadata.name.clone().unwrap();
    let merge = PatchParams::default();
    let apply = PatchParams::apply("test").force();
    let time = "2026-01-02T03:04:05Z";
    let status = |status: &str| {
        json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": status, "lastProbeTime": time}]},
        })
    };
    for _ in 0..2 {
        api.patch_status(&name, &merge, &Patch::Merge(&status("False"))).await.unwrap();
        api.patch_status(&name, &apply, &Patch::Apply(&status("True"))).await.unwrap();
    }
    let metadata = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/a"]}});
    api.patch(&name, &merge, &Patch::Merge(&metadata)).await.unwrap();
    let harmless = match object["kind"].as_str() {
        Some("KubeFedCluster") => json!({"spec": {"caBundle": "Y2E="}}),
        _ => json!({"spec": {"finalizers": ["cluster"]}}),
    };
    api.patch(&name, &merge, &Patch::Merge(&harmless)).await.unwrap();
    delete(&api, &name).await;
}

async fn delete(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.unwrap();
    let freed = json!({"metadata": {"finalizers": null}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&freed)).await.unwrap();
    assert!(api.get_opt(name).await.unwrap().is_none(), "{name} is gone");
}
