//! Clusters are kept by Cluster API's own core, whose part the test plays, and AWSClusters by the
//! product.

use serde_json::{Value, json};

use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

#[tokio::test(flavor = "multi_thread")]
async fn in_provider_mode_a_network_is_made_for_the_core_once_that_has_adopted_it() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    // The endpoints of a region by flag, and not by the environment.
    let endpoints =
        format!("{REGION}:ec2={url},elasticloadbalancing={url}", url = stage.proxy.url());
    let manager = stage
        .launch("--capi-mode=provider --leader-elect=false")
        .args([format!("--aws-region-endpoints={endpoints}")])
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        .start();
    for name in ["adopted", "orphan"] {
        stage.create(&ours(name, &spec("10.1.1.0/24")));
        stage.create(&cluster(name));
    }
    let core = stage.find(CLUSTERS, "adopted").await.unwrap();
    assert!(stage.proxy.calls().is_empty(), "{:?}", stage.proxy.calls());
    // As the core does: no controller, and the version that it has stored.
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "name": "adopted", "uid": core["metadata"]["uid"]});
    let adopted = json!({"metadata": {"ownerReferences": [owner],
        "labels": {"cluster.x-k8s.io/cluster-name": "adopted"}}});
    stage.patch(&format!("{AWS_CLUSTERS} adopted"), "merge", &adopted);
    let made = stage.until(AWS_CLUSTERS, "adopted", "is ready", is_ready).await;
    // What the contract wants.
    let status = &made["status"];
    assert_eq!(status["initialization"]["provisioned"], true);
    let zone = json!([{"name": format!("{REGION}a"), "controlPlane": true}]);
    assert_eq!(status["failureDomains"], zone);
    assert_eq!(condition(&made, "Ready")["status"], "True");
    assert_eq!(condition(&made, "Paused")["status"], "False");
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]), "it is the core's");
    assert_eq!(status["bastion"], Value::Null, "the core's dialect has none of its own");
    // The Cluster, and what nobody has adopted, are not ours.
    for (kind, name) in [(CLUSTERS, "adopted"), (CLUSTERS, "orphan"), (AWS_CLUSTERS, "orphan")] {
        let object = stage.find(kind, name).await.unwrap();
        assert_eq!(object["metadata"]["finalizers"], Value::Null, "{kind} {name}");
        assert_eq!(object["status"], Value::Null, "{kind} {name}");
    }

    stage.run(&format!("delete {AWS_CLUSTERS} adopted --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "adopted").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
