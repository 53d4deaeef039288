//! Clusters are kept by Cluster API's own core, whose part the test plays, and AWSClusters by the
//! product, for either contract.

use serde_json::{Value, json};
use tests::Process;

use crate::aws_contracts::{Older, keeps_newer, keeps_older};
use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

/// The product, which knows the endpoints of the region by flag, and not by the environment.
fn start(stage: &Stage, args: &str) -> Process {
    let endpoints =
        format!("{REGION}:ec2={url},elasticloadbalancing={url},sts={url}", url = stage.proxy.url());
    stage
        .launch("--capi-mode=provider --leader-elect=false")
        .args([format!("--aws-region-endpoints={endpoints}")])
        .args(args.split_whitespace())
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        .start()
}

#[tokio::test(flavor = "multi_thread")]
async fn in_provider_mode_a_network_is_made_for_the_core_once_that_has_adopted_it() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let manager = start(&stage, "");
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
    let zone = format!("{REGION}a");
    keeps_newer(&made, &[(&*zone, true)]);
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]), "it is the core's");
    assert_eq!(made["status"]["bastion"], Value::Null, "the core's dialect has none of its own");
    // The product does not reconcile the Cluster and objects without a Cluster.
    for (kind, name) in [(CLUSTERS, "adopted"), (CLUSTERS, "orphan"), (AWS_CLUSTERS, "orphan")] {
        let object = stage.find(kind, name).await.unwrap();
        assert_eq!(object["metadata"]["finalizers"], Value::Null, "{kind} {name}");
        assert_eq!(object["status"], Value::Null, "{kind} {name}");
    }
    stage.end(manager).await;

    // An older core, and upstream's Machines.
    stage.proxy.forget();
    let manager = start(&stage, "--infra-contract=v1beta1 --mirror-ids-to-spec");
    let mirrored = stage
        .until(AWS_CLUSTERS, "adopted", "has the ids of what was made", |it| {
            let was_seen = it["status"]["observedGeneration"] == it["metadata"]["generation"];
            it["spec"]["network"]["vpc"]["id"].is_string() && was_seen
        })
        .await;
    keeps_older(&mirrored, &[(&*zone, Older { control_plane: true })]);
    is_mirrored(&mirrored);
    assert_eq!(condition(&mirrored, "Ready")["status"], "True");
    assert_eq!(stage.writes(), [""; 0], "nothing is different on AWS");

    stage.run(&format!("delete {AWS_CLUSTERS} adopted --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "adopted").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}

/// The ids of AWS stand where upstream's Machines look for them.
fn is_mirrored(object: &Value) {
    let network = &object["spec"]["network"];
    assert_eq!(network["vpc"]["id"], object["status"]["resources"]["vpc"]["id"]);
    let begins = |value: &Value, with: &str| {
        assert!(value.as_str().is_some_and(|id| id.starts_with(with)), "{value} is no {with}");
    };
    begins(&network["vpc"]["internetGatewayId"], "igw-");
    let subnets = network["subnets"].as_array().unwrap();
    let names = ["public", "private"].map(|role| format!("adopted-subnet-{role}-{REGION}a"));
    assert_eq!(subnets.len(), names.len());
    for (subnet, name) in subnets.iter().zip(names) {
        assert_eq!(subnet["id"], name);
        begins(&subnet["resourceID"], "subnet-");
        begins(&subnet["routeTableId"], "rtb-");
        assert_eq!(subnet["availabilityZone"], format!("{REGION}a"));
    }
}
