//! The contract of Cluster API between its own core and what makes infrastructure: the real core together with the product.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::aws_proxy::Fate;

use crate::aws_stage::{REGION, is_ready, ours, spec};
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, CoreStage, History, cluster, is_provisioned};
use crate::scene::condition;

const LABEL: &str = "cluster.x-k8s.io/cluster-name";
const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
/// Outside of the network.
const WRONG: &str = "192.168.0.0/24";

/// The endpoint of an object; `None` while it has none.
fn endpoint(object: &Value) -> Option<&Value> {
    let endpoint = &object["spec"]["controlPlaneEndpoint"];
    (endpoint["host"].as_str().is_some_and(|host| !host.is_empty())).then_some(endpoint)
}

/// Whether the condition of the Cluster about its infrastructure has what `Ready` of the AWSCluster has.
fn mirrors(cluster: &Value, ready: &Value) -> bool {
    let mirrored = condition(cluster, "InfrastructureReady");
    ["status", "reason", "message"].iter().all(|field| mirrored[field] == ready[field])
}

fn is_false(object: &Value, kind: &str) -> bool {
    condition(object, kind)["status"] == "False"
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_before_owner_and_label() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    stage.create(&ours("one", &spec("10.1.1.0/24")));
    let history = stage.history(AWS_CLUSTERS, "one").await;
    manager.line("No Cluster refers to the AWSCluster yet").await;
    assert!(stage.proxy.calls().is_empty(), "{:?}", stage.proxy.calls());
    stage.create(&cluster("one"));
    let ready = stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await;
    let core = stage.find(CLUSTERS, "one").await.unwrap();
    assert_eq!(ready["metadata"]["ownerReferences"][0]["uid"], core["metadata"]["uid"]);
    for version in history.versions() {
        let metadata = &version["metadata"];
        let is_owned = metadata["ownerReferences"][0]["kind"] == "Cluster"
            && metadata["labels"][LABEL] == "one";
        let is_touched = metadata["finalizers"].is_array() || version["status"].is_object();
        assert!(is_owned || !is_touched, "{version:#}");
    }
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn endpoint_before_provisioned_copied_once() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    let history = stage.history(AWS_CLUSTERS, "one").await;
    let of_core = stage.history(CLUSTERS, "one").await;
    stage.create_pair("one");
    let copied = stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    assert_eq!(copied["status"]["phase"], "Provisioned");
    let made = stage.find(AWS_CLUSTERS, "one").await.unwrap();
    assert_eq!(endpoint(&copied), endpoint(&made));
    assert!(endpoint(&made).is_some(), "{made:#}");
    let versions = history.versions();
    let mut provisioned =
        versions.iter().filter(|it| it["status"]["initialization"]["provisioned"] == true);
    assert!(provisioned.all(|it| endpoint(it).is_some()), "{versions:#?}");
    let copies: BTreeSet<_> =
        of_core.versions().iter().filter_map(endpoint).map(Value::to_string).collect();
    assert_eq!(copies.len(), 1);
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn endpoint_of_the_user_is_kept() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    let wanted = json!({"host": "api.example.org", "port": 8443});
    let mut given = ours("one", &spec("10.1.1.0/24"));
    given["spec"]["controlPlaneEndpoint"] = wanted.clone();
    stage.create(&given);
    stage.create(&cluster("one"));
    // One that the user gave the Cluster is not replaced by that of the load balancer.
    stage.create(&ours("two", &spec("10.1.1.0/24")));
    let mut of_cluster = cluster("two");
    of_cluster["spec"]["controlPlaneEndpoint"] = wanted.clone();
    stage.create(&of_cluster);
    for name in ["one", "two"] {
        let copied = stage.until(CLUSTERS, name, "is provisioned", is_provisioned).await;
        assert_eq!(endpoint(&copied), Some(&wanted), "{name}");
    }
    let made = stage.find(AWS_CLUSTERS, "one").await.unwrap();
    assert_eq!(endpoint(&made), Some(&wanted));
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn failure_domains_sorted() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    let subnet = |block: &str, zone: &str, public: bool| {
        json!({"cidrBlock": block, "isPublic": public,
        "availabilityZone": format!("{REGION}{zone}")})
    };
    let network = json!({"vpc": {"cidrBlock": "10.1.0.0/16"}, "natGateways": {"mode": "None"}, "subnets": [
        subnet("10.1.2.0/24", "b", true), subnet("10.1.3.0/24", "b", false),
        subnet("10.1.0.0/24", "a", true), subnet("10.1.1.0/24", "a", false)]});
    stage.create(&ours("one", &json!({"region": REGION, "network": network})));
    stage.create(&cluster("one"));
    let copied = stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    let zones =
        ["a", "b"].map(|zone| json!({"name": format!("{REGION}{zone}"), "controlPlane": true}));
    assert_eq!(copied["status"]["failureDomains"], json!(zones));
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn provisioned_stays_and_ready_is_mirrored_as_infrastructure_ready_and_failure_is_no_end() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    let of_core = stage.history(CLUSTERS, "one").await;
    stage.create(&ours("one", &spec(WRONG)));
    stage.create(&cluster("one"));
    let failed = |it: &Value| {
        it["status"]["deprecated"]["v1beta1"]["failureReason"] == "InvalidConfiguration"
    };
    let refused = stage.until(CLUSTERS, "one", "has the failure", failed).await;
    assert!(!is_provisioned(&refused));
    let right = json!({"spec": spec("10.1.1.0/24")});
    stage.patch(&format!("{AWS_CLUSTERS} one"), "merge", &right);
    stage.until(CLUSTERS, "one", "is provisioned after a failure", is_provisioned).await;
    let made = stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await;
    let ready = condition(&made, "Ready").clone();
    stage.until(CLUSTERS, "one", "mirrors Ready", |it| mirrors(it, &ready)).await;

    // It gets worse after that.
    let wrong = json!({"spec": spec(WRONG)});
    stage.patch(&format!("{AWS_CLUSTERS} one"), "merge", &wrong);
    let worse = stage.until(AWS_CLUSTERS, "one", "is not ready", |it| is_false(it, "Ready")).await;
    assert_eq!(worse["status"]["initialization"]["provisioned"], true);
    let not_ready = condition(&worse, "Ready").clone();
    stage.until(CLUSTERS, "one", "mirrors that it is not", |it| mirrors(it, &not_ready)).await;
    stage.patch(&format!("{AWS_CLUSTERS} one"), "merge", &right);
    let again = |it: &Value| condition(it, "InfrastructureReady")["status"] == "True";
    stage.until(CLUSTERS, "one", "mirrors Ready again", again).await;
    let versions = of_core.versions();
    let first = versions.iter().position(is_provisioned).unwrap();
    assert!(versions[first..].iter().all(is_provisioned), "provisioned stays");
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn status_ready_for_v1beta1() {
    let Some(stage) = CoreStage::set().await else { return };
    let crd = "label crd awsclusters.infrastructure.cluster.x-k8s.io --overwrite";
    stage.run(&format!("{crd} cluster.x-k8s.io/v1beta2- cluster.x-k8s.io/v1beta1=v1beta2"));
    let manager = stage.product("--infra-contract=v1beta1");
    stage.create_pair("one");
    let copied = stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    let zone = json!([{"name": format!("{REGION}a"), "controlPlane": true}]);
    assert_eq!(copied["status"]["failureDomains"], zone);
    let made = stage.find(AWS_CLUSTERS, "one").await.unwrap();
    assert_eq!(endpoint(&copied), endpoint(&made));
    let ready = |it: &Value| condition(it, "InfrastructureReady")["status"] == "True";
    stage.until(CLUSTERS, "one", "has ready infrastructure", ready).await;
    stage.run(&format!("{crd} cluster.x-k8s.io/v1beta1- cluster.x-k8s.io/v1beta2=v1beta2"));
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn conditions_have_reason_and_time() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    let histories =
        [stage.history(AWS_CLUSTERS, "one").await, stage.history(CLUSTERS, "one").await];
    stage.create_pair("one");
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    stage.run(&format!("delete {CLUSTERS} one --wait=false"));
    stage.until_gone(CLUSTERS, "one").await;
    let mut seen = BTreeSet::new();
    for version in histories.iter().flat_map(History::versions) {
        for it in version["status"]["conditions"].as_array().into_iter().flatten() {
            let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
            assert!(["True", "False", "Unknown"].contains(&&*text("status")), "{it}");
            assert!(
                !text("reason").is_empty() && text("lastTransitionTime").ends_with('Z'),
                "{it}"
            );
            assert_ne!(text("reason"), "InvalidConditionReported", "{it}");
            seen.insert(text("type"));
        }
    }
    for kind in ["Ready", "VpcReady", "Paused", "InfrastructureReady", "Available"] {
        assert!(seen.contains(kind), "{seen:?}");
    }
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn paused_by_spec_and_annotation_is_shown() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    stage.create_pair("one");
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    let paused =
        |wanted: &'static str| move |it: &Value| condition(it, "Paused")["status"] == wanted;
    stage.patch(&format!("{CLUSTERS} one"), "merge", &json!({"spec": {"paused": true}}));
    stage.until(CLUSTERS, "one", "is paused by its spec", paused("True")).await;
    stage.until(AWS_CLUSTERS, "one", "is paused by its Cluster", paused("True")).await;
    stage.patch(&format!("{CLUSTERS} one"), "merge", &json!({"spec": {"paused": null}}));
    stage.until(AWS_CLUSTERS, "one", "goes on", paused("False")).await;
    stage.run(&format!("annotate {AWS_CLUSTERS} one cluster.x-k8s.io/paused="));
    stage.until(AWS_CLUSTERS, "one", "is paused by its annotation", paused("True")).await;
    stage.until(CLUSTERS, "one", "is not paused", paused("False")).await;
    stage.run(&format!("annotate {AWS_CLUSTERS} one cluster.x-k8s.io/paused-"));
    stage.until(AWS_CLUSTERS, "one", "goes on again", paused("False")).await;
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn managed_by_is_not_touched() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    for (name, marks) in [("one", "annotations"), ("two", "labels")] {
        let mut managed = ours(name, &spec("10.1.1.0/24"));
        managed["metadata"][marks] = json!({MANAGED_BY: "another-system"});
        stage.create(&managed);
        stage.create(&cluster(name));
        let owned = |it: &Value| it["metadata"]["ownerReferences"].is_array();
        stage.until(AWS_CLUSTERS, name, "has an owner", owned).await;
    }
    // The product reconciles an object that came later.
    stage.create_pair("last");
    stage.until(CLUSTERS, "last", "is provisioned", is_provisioned).await;
    for name in ["one", "two"] {
        let object = stage.find(AWS_CLUSTERS, name).await.unwrap();
        assert_eq!(
            (&object["metadata"]["finalizers"], &object["status"]),
            (&Value::Null, &Value::Null),
            "{name}"
        );
        // Its system makes it ready.
        let done =
            json!({"spec": {"controlPlaneEndpoint": {"host": "api.example.org", "port": 6443}}});
        stage.patch(&format!("{AWS_CLUSTERS} {name}"), "merge", &done);
        stage.patch_status(
            &format!("{AWS_CLUSTERS} {name}"),
            &json!({"initialization": {"provisioned": true}}),
        );
        stage.until(CLUSTERS, name, "is provisioned by another system", is_provisioned).await;
    }
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn watch_filter_and_namespace() {
    let flags = ["--namespace=default", "--watch-filter=mine"];
    let Some(stage) = CoreStage::set_with(&flags).await else { return };
    let manager = stage.product(&flags.join(" "));
    stage.run("create namespace elsewhere");
    let labelled = |mut object: Value| {
        object["metadata"]["labels"] = json!({"cluster.x-k8s.io/watch-filter": "mine"});
        object
    };
    let elsewhere = |mut object: Value| {
        object["metadata"]["namespace"] = "elsewhere".into();
        object
    };
    let pair = |name: &str| [ours(name, &spec("10.1.1.0/24")), cluster(name)];
    stage.create_all(&pair("other"));
    stage.create_all(&pair("one").map(labelled).map(elsewhere));
    stage.create_all(&pair("one").map(labelled));
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    for of in ["other", "one -n elsewhere"] {
        for kind in [CLUSTERS, AWS_CLUSTERS] {
            let object = stage.object(&format!("{kind} {of}"));
            let touched = (&object["metadata"]["finalizers"], &object["status"]);
            assert_eq!(touched, (&Value::Null, &Value::Null), "{kind} {of}");
        }
    }
    // No controller deletes what is in a namespace, and the next test reconciles all.
    stage.run(&format!("delete {CLUSTERS},{AWS_CLUSTERS} --all -n elsewhere"));
    stage.run("delete namespace elsewhere --wait=false");
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn cluster_deletion_waits_ready_false() {
    let Some(stage) = CoreStage::set().await else { return };
    let before = stage.totals().await;
    let manager = stage.product("");
    stage.create_pair("one");
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    stage.proxy.decide(|_, call| match &*call.action {
        "DeleteVpc" => Fate::Refuse("RequestLimitExceeded"),
        _ => Fate::Pass,
    });
    stage.run(&format!("delete {CLUSTERS} one --wait=false"));
    let deleting =
        |it: &Value| condition(it, "Ready")["reason"] == "Deleting" && is_false(it, "Ready");
    stage.until(AWS_CLUSTERS, "one", "is being deleted", deleting).await;
    let waits = |it: &Value| {
        is_false(it, "InfrastructureReady")
            && condition(it, "Deleting")["reason"] == "WaitingForInfrastructureDeletion"
    };
    let waiting = stage.until(CLUSTERS, "one", "waits for its infrastructure", waits).await;
    assert_eq!(waiting["status"]["phase"], "Deleting");
    stage.proxy.forget();
    stage.until_gone(AWS_CLUSTERS, "one").await;
    stage.until_gone(CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.finish(manager).await;
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn infra_lost_is_told() {
    let Some(stage) = CoreStage::set().await else { return };
    let manager = stage.product("");
    stage.create_pair("one");
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    stage.run(&format!("delete {AWS_CLUSTERS} one --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "one").await;
    let lost = |it: &Value| condition(it, "InfrastructureReady")["reason"] == "ObjectDeleted";
    let told = stage.until(CLUSTERS, "one", "says that its infrastructure is lost", lost).await;
    assert!(is_false(&told, "InfrastructureReady") && is_provisioned(&told), "{told:#}");
    stage.finish(manager).await;
}
