//! `config/admission`: what upstream's users write into a status that the API server drops.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::poll::poll;

fn cluster(name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"tenantID": "t", "type": "Imported", "addresses": spec}, "status": status,
    })
}

fn addresses(hosts: &[&str]) -> Value {
    let at = |host: &&str| json!({"type": "Real", "host": host, "port": 6443, "path": "/p"});
    hosts.iter().map(at).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_in_the_status_of_a_new_cluster_are_copied_to_its_spec() {
    let kubectl = Kubectl::with_crds().await;
    let made = |name: &str| kubectl.object(&format!("cls {name}"));
    let status = json!({"addresses": addresses(&["a", "b"]), "phase": "Running"});
    assert!(
        !kubectl.may_create(&cluster("before", &json!([]), &status)),
        "its addresses are dropped"
    );

    kubectl.run("apply -f config/admission");
    // The server takes a policy in within moments.
    let mut names = BTreeSet::new();
    poll("the policy acts", async || {
        let name = format!("cls-{}", names.len());
        // Nor does it know the fields of new kinds at once, and refuses objects until then.
        if !kubectl.may_create(&cluster(&name, &json!([]), &status)) {
            return None;
        }
        names.insert(name.clone());
        (made(&name)["spec"]["addresses"] == addresses(&["a", "b"])).then_some(())
    })
    .await;
    let own = addresses(&["own"]);
    // (name, spec.addresses, status, what spec.addresses becomes)
    for (name, spec, status, expected) in
        [("own", &own, &status, &own), ("both", &own, &json!({"phase": "Running"}), &own)]
    {
        kubectl.create(&cluster(name, spec, status));
        assert_eq!(&made(name)["spec"]["addresses"], expected, "{name}");
    }
    // Without the field at all, as upstream's users write it.
    let mut bare = cluster("bare", &json!([]), &status);
    bare["spec"].as_object_mut().unwrap().remove("addresses");
    kubectl.create(&bare);
    let bare = made("bare");
    assert_eq!(bare["spec"]["addresses"], addresses(&["a", "b"]));
    assert_eq!(bare["status"]["addresses"], Value::Null, "the API server drops the status");
    // Only what is made: a status that changes later changes no spec.
    kubectl.patch_status("cls own", &json!({"addresses": addresses(&["later"])}));
    kubectl.run("label cls own changed=yes");
    assert_eq!(made("own")["spec"]["addresses"], own);
}
