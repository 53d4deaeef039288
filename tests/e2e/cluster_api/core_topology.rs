//! A ClusterClass with our AWSClusterTemplate: the core makes an AWSCluster of it by server-side apply, and it and this
//! program come to rest.

use std::time::Duration;

use serde_json::{Value, json};
use tests::Stopwatch;
use tests::clusterctl::{Clusterctl, of_providers};
use tests::poll::poll;

use crate::aws_stage::{REGION, is_ready, spec};
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, CoreStage, is_provisioned};
use crate::scene::condition;

const CLASSES: &str = "clusterclasses.v1beta2.cluster.x-k8s.io";
const TEMPLATES: &str = "awsclustertemplates.v1beta2.infrastructure.cluster.x-k8s.io";
/// Nothing is installed by clusterctl, so the version has to be given.
const TOPOLOGY: &str =
    concat!("one --flavor=topology --infrastructure=icm-aws:v", env!("CARGO_PKG_VERSION"));
const OTHERS: &str = "kubeadmcontrolplanes,kubeadmcontrolplanetemplates,awsmachinetemplates";
/// How often core and program look at an object without a change, and how many such looks change nothing.
const LOOK: Duration = Duration::from_secs(10);
const LOOKS: f64 = 24.0;

/// Stands for a kind of upstream's AWS provider.
fn upstreams(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.infrastructure.cluster.x-k8s.io"),
            "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {"group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1beta2", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    })
}

/// The kinds of a control plane and of Machines, whose controllers are not here.
fn install(stage: &CoreStage) {
    stage.run("apply -f config/crd/infrastructure.cluster.x-k8s.io_awsclustertemplates.yaml");
    let mut crds = vec![upstreams("AWSMachineTemplate"), upstreams("AWSMachine")];
    for kind in ["kubeadmcontrolplanes", "kubeadmcontrolplanetemplates"] {
        let file = format!("controlplane.cluster.x-k8s.io_{kind}.yaml");
        crds.extend(of_providers(&file).into_iter().map(|mut crd| {
            crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] = json!("v1beta2");
            crd["spec"]["conversion"] = json!({"strategy": "None"});
            crd
        }));
    }
    for crd in &crds {
        stage.may_create(crd);
    }
    stage.await_crds();
}

/// The AWSCluster that the core has made, whose name has a suffix.
async fn name_of(stage: &CoreStage) -> String {
    poll("the Cluster refers to an AWSCluster", async || {
        let object = stage.find(CLUSTERS, "one").await?;
        object["spec"]["infrastructureRef"]["name"].as_str().map(ToOwned::to_owned)
    })
    .await
}

/// Versions of all objects of the topology. Of the Cluster it is that of its spec: the core tells in the status how it
/// tries to reach the control plane.
fn versions(stage: &CoreStage) -> [String; 2] {
    let others = [AWS_CLUSTERS, TEMPLATES, CLASSES, OTHERS].join(",");
    [(CLUSTERS, "generation"), (&*others, "resourceVersion")].map(|(kinds, version)| {
        let columns = format!("KIND:.kind,NAME:.metadata.name,VERSION:.metadata.{version}");
        stage.run(&format!("get {kinds} -n default -o custom-columns={columns}"))
    })
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn template_and_topology_no_endless_patches() {
    let look = format!("--sync-period={}s", LOOK.as_secs());
    let flags = ["--feature-gates=ClusterTopology=true", &look];
    let Some(stage) = CoreStage::set_with(&flags).await else { return };
    let before = stage.totals().await;
    install(&stage);
    let clusterctl = Clusterctl::new(&stage, &stage.installed);
    let manager = stage.product(&format!("--mirror-ids-to-spec {look} --aws-idle-read-qps=1000"));
    let mut objects = clusterctl.generate(TOPOLOGY);
    let found = objects.iter_mut().find(|it| it["kind"] == "AWSClusterTemplate").unwrap();
    // The list has one owner.
    let network = spec("10.1.1.0/24")["network"].clone();
    found["spec"]["template"]["spec"]["network"] = network.clone();
    let (clusters, class): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|it| it["kind"] == "Cluster");
    stage.create_all(&class);
    let is_known = |it: &Value| condition(it, "VariablesReady")["status"] == "True";
    stage.until(CLASSES, "minimal", "has variables", is_known).await;
    stage.create_all(&clusters);
    let name = name_of(&stage).await;
    stage.until(AWS_CLUSTERS, &name, "is ready", is_ready).await;
    let is_mirrored = |it: &Value| it["spec"]["network"]["vpc"]["id"].is_string();
    let made = stage.until(AWS_CLUSTERS, &name, "has the id of its VPC", is_mirrored).await;
    assert!(made["metadata"]["labels"]["topology.cluster.x-k8s.io/owned"].is_string(), "{made:#}");
    assert_eq!(made["spec"]["region"], REGION, "the variable of the class");
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    let is_reconciled = |it: &Value| condition(it, "TopologyReconciled")["status"] == "True";
    stage.until(CLUSTERS, "one", "follows its topology", is_reconciled).await;

    let looks = [("name", "awsclusters")];
    let looked = "workqueue_work_duration_seconds_count";
    // After a change there are a few looks until all conditions stand.
    let at_rest = manager.metric(looked, &looks).await.unwrap_or_default() + 2.0;
    manager.until_metric(looked, &looks, |count| count >= at_rest).await;
    let resting = versions(&stage);
    let (lines, watch) = (stage.core.lines().len(), Stopwatch::start());
    manager.until_metric(looked, &looks, |count| count >= at_rest + LOOKS).await;
    println!("{LOOKS} looks in {:?}", watch.elapsed());
    assert_eq!(versions(&stage), resting, "nothing is written at rest");
    let complaints: Vec<_> = stage.core.lines()[lines..].to_vec();
    let of_topology =
        complaints.iter().filter(|line| line.contains("topology") && line.contains("Patching"));
    assert_eq!(of_topology.collect::<Vec<_>>(), [""; 0]);
    let now = stage.find(AWS_CLUSTERS, &name).await.unwrap();
    assert_eq!(now["spec"]["network"]["subnets"], network["subnets"], "they are the core's");

    stage.run(&format!("delete {CLUSTERS} one --wait=false"));
    stage.until_gone(AWS_CLUSTERS, &name).await;
    stage.until_gone(CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.run(&format!("delete {CLASSES},{TEMPLATES},kubeadmcontrolplanetemplates,awsmachinetemplates --all -n default"));
    stage.finish(manager).await;
}
