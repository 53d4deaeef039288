//! No schema of `config/crd` stands in the way of an object that was stored before it had its
//! rules.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::programs::workspace;

use crate::dynamic::api;

/// The schema of an older release: types, and no rule.
fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for rule in ["x-kubernetes-validations", "minimum", "maximum", "pattern", "maxLength"] {
                // A field may have such a name; that is an object.
                if !fields.get(rule).is_some_and(Value::is_object) {
                    fields.remove(rule);
                }
            }
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

/// A server that has had these objects before its schemas had rules, and has the rules now.
pub(crate) async fn after_an_upgrade(objects: &[Value]) -> Kubectl {
    let kubectl = Kubectl::without_crds().await;
    let files = [
        "platform.tkestack.io_clusters",
        "platform.tkestack.io_machines",
        "core.kubefed.io_kubefedclusters",
    ];
    let files = files.map(|file| format!("config/crd/{file}.yaml"));
    for file in &files {
        let text = std::fs::read_to_string(workspace().join(file)).unwrap();
        let mut crd: Value = serde_saphyr::from_str(&text).unwrap();
        without_rules(&mut crd);
        kubectl.create(&crd);
    }
    kubectl.run("wait --for=condition=established --timeout=60s crd --all");
    for object in objects {
        poll("the kind is served", async || kubectl.may_create(object).then_some(())).await;
    }
    for file in &files {
        kubectl.run(&format!("replace -f {file}"));
    }
    for object in objects {
        let mut names = 0;
        // What is taken meanwhile is in nobody's way.
        poll("the rules are in force", async || {
            names += 1;
            let mut another = object.clone();
            another["metadata"]["name"] = json!(format!("another.{names}"));
            (!kubectl.may_create(&another)).then_some(())
        })
        .await;
    }
    kubectl
}

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

/// Everything is wrong with them that a schema finds.
pub(crate) fn hopeless() -> [Value; 3] {
    let cluster = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls.bad"},
        "spec": {"tenantID": "t", "type": "Baremetal", "clusterCIDR": "x",
            "machines": [{"ip": "x", "port": 0, "username": ""}, {"ip": "x", "port": 70_000, "username": ""}],
            "features": {"ha": {"tke": {"vip": "lb", "vrid": 999}, "thirdParty": {}}},
            "addresses": [{"type": "Real", "host": "", "port": 0, "path": "a"}]},
    });
    let machine = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc.bad"},
        "spec": {"clusterName": "", "type": "", "ip": "", "port": 0, "username": ""},
    });
    let member = json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": {"apiEndpoint": "", "secretRef": {"name": "A"}, "proxyURL": "x",
            "disabledTLSValidations": ["*", "SubjectName"]},
    });
    [cluster, machine, member]
}
