//! The product reports what keeps an AWSCluster from being created.

use serde_json::{Value, json};
use tests::poll::poll;

use crate::aws_stage::{NAME, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, Scene, aws_cluster, cluster, condition};

#[tokio::test(flavor = "multi_thread")]
async fn a_spec_that_cannot_be_used_is_reported_once_until_its_user_corrects_it() {
    let Some(stage) = Stage::set().await else { return };
    let manager = stage.start_with_aws("");
    stage.create(&ours("wrong", &spec("192.168.0.0/24")));
    stage.create(&cluster("wrong"));
    // An AWSCluster without a Cluster, and one that another program manages, are not touched.
    stage.create(&ours("orphan", &spec("10.1.1.0/24")));
    stage.create(&aws_cluster("v1beta2", "managed", &spec("10.1.1.0/24")));
    stage.create(&cluster("managed"));
    let wrong = stage
        .until(AWS_CLUSTERS, "wrong", "is refused", |it| {
            condition(it, "Ready")["reason"] == "InvalidConfiguration"
        })
        .await;
    let message = condition(&wrong, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("spec.network.subnets[1]"), "{message}");
    assert_eq!(wrong["status"]["errorReason"], "InvalidConfiguration");
    assert_eq!(wrong["status"]["failureMessage"], message);
    stage.has_event("InvalidConfiguration").await;
    let owned = |it: &Value| it["metadata"]["ownerReferences"].is_array();
    stage.until(AWS_CLUSTERS, "managed", "has an owner", owned).await;
    assert!(stage.proxy.calls().is_empty(), "{:?}", stage.proxy.calls());
    let version = |it: &Value| it["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&stage.find(AWS_CLUSTERS, "wrong").await.unwrap()), version(&wrong));

    let of = format!("{AWS_CLUSTERS} wrong");
    stage.patch(&of, "merge", &json!({"spec": spec("10.1.1.0/24")}));
    let right = stage.until(AWS_CLUSTERS, "wrong", "is ready", is_ready).await;
    assert_eq!(right["status"]["errorReason"], Value::Null);
    assert_eq!(condition(&right, "NatGatewaysReady")["reason"], "Disabled");
    for name in ["orphan", "managed"] {
        let object = stage.find(AWS_CLUSTERS, name).await.unwrap();
        assert_eq!(object["metadata"]["finalizers"], Value::Null, "{name}");
        assert_eq!(object["status"], Value::Null, "{name}");
    }
    stage.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subnets_in_edge_zones_wait_for_the_opt_in_and_are_read_from_aws() {
    let Some(stage) = Stage::set().await else { return };
    stage.proxy.opt_in_to_edge_zones(false);
    let before = stage.totals().await;
    let manager = stage.start_with_aws("--mirror-ids-to-spec");
    let mut far = spec("10.1.1.0/24");
    let subnets = far["network"]["subnets"].as_array_mut().unwrap();
    for (number, zone) in ["us-east-2-lcl-1a", "us-east-2-wl1-cmh-wlz-1"].iter().enumerate() {
        let cidr = format!("10.1.{}.0/24", number + 2);
        subnets.push(json!({"cidrBlock": cidr, "availabilityZone": zone, "isPublic": true}));
    }
    stage.create(&ours("far", &far));
    stage.create(&cluster("far"));
    let refused = stage
        .until(AWS_CLUSTERS, "far", "waits for the opt-in", |it| {
            condition(it, "Ready")["reason"] == "InvalidConfiguration"
        })
        .await;
    let message = condition(&refused, "Ready")["message"].as_str().unwrap();
    for words in [
        "[2].availabilityZone: us-east-2-lcl-1a: opt in to zone group us-east-2-lcl-1 first",
        "[3].availabilityZone: us-east-2-wl1-cmh-wlz-1: opt in to zone group us-east-2-wl1 first",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(stage.writes(), [""; 0]);

    stage.proxy.opt_in_to_edge_zones(true);
    let of = format!("{AWS_CLUSTERS} far");
    stage.run(&format!("annotate {of} look=again"));
    let ready = stage.until(AWS_CLUSTERS, "far", "is ready", is_ready).await;
    assert_eq!(condition(&ready, "CarrierGatewayReady")["status"], "True");
    let zones = ready["status"]["failureDomains"].as_array().unwrap();
    assert_eq!(
        zones.iter().map(|it| it["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["us-east-2a"]
    );
    let mirrored = stage
        .until(AWS_CLUSTERS, "far", "has the ids", |it| {
            it["spec"]["network"]["vpc"]["carrierGatewayId"].is_string()
        })
        .await;
    let far = &mirrored["spec"]["network"]["subnets"][3];
    assert_eq!(
        (&far["zoneType"], &far["parentZoneName"]),
        (&json!("wavelength-zone"), &json!("us-east-2c"))
    );
    stage.end(manager).await;
    stage.proxy.forget();
    let manager = stage.start_with_aws("");
    poll("it has looked", async || (stage.proxy.calls().len() >= 9).then_some(())).await;
    let asked =
        stage.proxy.calls().into_iter().filter(|it| it.action == "DescribeAvailabilityZones");
    assert_eq!((asked.count(), stage.writes()), (0, Vec::new()), "its zones are known");

    stage.run(&format!("delete {CLUSTERS} far --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "far").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_credentials_says_so_and_one_with_them_goes_on() {
    let Some(stage) = Stage::set().await else { return };
    let manager = stage.start("");
    stage.create(&ours("locked", &spec("10.1.1.0/24")));
    stage.create(&cluster("locked"));
    let credentials = |it: &Value| condition(it, "PrincipalCredentialRetrieved").clone();
    let reported = stage
        .until(AWS_CLUSTERS, "locked", "says that there are no credentials", |it| {
            credentials(it)["status"] == "False"
        })
        .await;
    assert_eq!(credentials(&reported)["reason"], "CredentialsNotFound", "{reported:#}");
    assert_eq!(condition(&reported, "Ready")["status"], "False");
    stage.end(manager).await;
    let manager = stage.start_with_aws("");
    let ready = stage.until(AWS_CLUSTERS, "locked", "is ready", is_ready).await;
    assert_eq!(credentials(&ready)["status"], "True");

    // cluster-api-provider-aws#4584
    let of = format!("{AWS_CLUSTERS} locked");
    stage.run(&format!("annotate {of} cluster.x-k8s.io/paused=yes"));
    let paused = |it: &Value| condition(it, "Paused")["status"] == "True";
    stage.until(AWS_CLUSTERS, "locked", "is paused", paused).await;
    stage.proxy.forget();
    stage.run(&format!("delete {of} --wait=false"));
    stage
        .until(AWS_CLUSTERS, "locked", "says why it does not go", |it| {
            let said = condition(it, "Paused")["message"].as_str().unwrap_or_default();
            said.ends_with("the deletion waits, too")
        })
        .await;
    assert!(stage.proxy.calls().is_empty(), "{:?}", stage.proxy.calls());
    stage.end(manager).await;
}

/// cluster-api-provider-aws#2606, rule:abandoned-only-by-its-user
#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_made_goes_without_credentials_when_its_user_says_so() {
    let scene = Scene::set().await;
    let manager = scene.start("");
    scene.create(&ours("never", &spec("10.1.1.0/24")));
    scene.create(&cluster("never"));
    let denied = |it: &Value| condition(it, "PrincipalCredentialRetrieved")["status"] == "False";
    scene.until(AWS_CLUSTERS, "never", "says that there are no credentials", denied).await;
    scene.run(&format!("delete {CLUSTERS} never --wait=false"));
    let way_out = "the annotation aws.cluster.x-k8s.io/allow-abandon=true to finish the deletion";
    scene
        .until(AWS_CLUSTERS, "never", "stays and says why", |it| {
            let deleting = condition(it, "Deleting");
            let said = deleting["message"].as_str().unwrap_or_default();
            deleting["reason"] == "DeletingFailed" && said.ends_with(way_out)
        })
        .await;
    scene.run(&format!("annotate {AWS_CLUSTERS} never aws.cluster.x-k8s.io/allow-abandon=true"));
    scene.until_gone(AWS_CLUSTERS, "never").await;
    scene.has_event("Abandoned").await;
    scene.until_gone(CLUSTERS, "never").await;
    scene.end(manager).await;
}

/// rule:eks-is-not-adopted
#[tokio::test(flavor = "multi_thread")]
async fn the_network_of_an_eks_cluster_is_not_adopted() {
    let Some(stage) = Stage::set().await else { return };
    let group = "controlplane.cluster.x-k8s.io";
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    stage.create(
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("awsmanagedcontrolplanes.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "AWSManagedControlPlane", "plural": "awsmanagedcontrolplanes"},
            "versions": [{"name": "v1beta2", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]}}),
    );
    stage.await_crds();
    stage.create(
        &json!({"apiVersion": format!("{group}/v1beta2"), "kind": "AWSManagedControlPlane",
        "metadata": {"name": NAME, "namespace": "default"}}),
    );
    stage.run("apply -f config/samples/cluster-api.yaml");
    stage.run(&format!("annotate {AWS_CLUSTERS} {NAME} aws.cluster.x-k8s.io/adopt=true"));
    let manager = stage.start_with_aws("");
    let refused = |it: &Value| {
        let ready = condition(it, "Ready");
        ready["reason"] == "OwnershipConflict"
            && ready["message"].as_str().is_some_and(|it| it.contains("AWSManagedControlPlane"))
    };
    stage.until(AWS_CLUSTERS, NAME, "is refused", refused).await;
    assert_eq!(stage.proxy.calls().len(), 0, "AWS is not asked");
    stage.run(&format!("delete awsmanagedcontrolplanes.{group} {NAME}"));
    poll("it goes on", async || stage.writes().contains(&"CreateVpc".to_owned()).then_some(()))
        .await;
    stage.end(manager).await;
}
