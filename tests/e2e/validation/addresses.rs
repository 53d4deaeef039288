//! Addresses that a new Cluster has in its status, which an API server drops.

use kube::api::PostParams;
use serde_json::{Value, json};
use tests::dynamic::api;
use tests::poll::poll;
use tests::programs::workspace;

use crate::replicas::{hub, product};

/// The shipped registration, at this port.
fn registration(port: u16) -> Value {
    let text = std::fs::read_to_string(workspace().join("config/webhook/addresses.yaml")).unwrap();
    let mut found: Value = serde_saphyr::from_str(&text).unwrap();
    let url = format!("https://127.0.0.1:{port}/mutate");
    found["webhooks"][0]["clientConfig"] = json!({ "url": url });
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_in_the_status_of_a_new_cluster_are_copied_to_its_spec() {
    let kubectl = hub().await;
    let (_manager, port) = product(&kubectl, &["--leader-elect=false"]).await;
    let client = kubectl.plane.client().await;
    let addresses = json!([{"type": "Real", "host": "10.0.0.1", "port": 6443}]);
    let imported = |name: &str| {
        json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"tenantID": "t", "type": "Imported"},
            "status": {"addresses": addresses}})
    };
    let kept = async |object: &Value| {
        let (clusters, sent) = api(&client, object).await;
        let made = clusters.create(&PostParams::default(), &sent).await.ok()?;
        Some(made.data["spec"]["addresses"].clone())
    };
    // The control: without the webhook they are lost, or the schema refuses an Imported Cluster without any.
    assert_ne!(kept(&imported("cls-before")).await.as_ref(), Some(&addresses));
    kubectl.create(&registration(port));
    let mut count = 0;
    poll("they are kept", async || {
        count += 1;
        let found = kept(&imported(&format!("cls-{count}"))).await?;
        (found == addresses).then_some(())
    })
    .await;
    let mut own = imported("cls-own");
    own["spec"]["addresses"] = json!([{"type": "Real", "host": "10.0.0.2", "port": 6443}]);
    assert_eq!(kept(&own).await.unwrap()[0]["host"], "10.0.0.2");
}
