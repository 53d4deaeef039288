//! The core with its own roles, and the role by which it reaches our kinds.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::Process;
use tests::clusterctl::of_providers;
use tests::poll::poll;
use tests::programs::control_plane_binaries;

use crate::aws_stage::Stage;
use crate::core_stage::{AWS_CLUSTERS, CLUSTERS, CoreStage, is_provisioned};

const CORE: &str = "system:serviceaccount:capi-system:capi-manager";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const AGGREGATED: &str = "capi-aggregated-manager-role";
/// What the core needs on the kinds of the contract.
const NEEDED: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
/// Verb, group, resource, subresource.
const REFUSED: [[&str; 4]; 9] = [
    ["get", GROUP, "awsclusterstaticidentities", ""],
    ["get", GROUP, "awsclusterroleidentities", ""],
    ["list", GROUP, "awsclustercontrolleridentities", ""],
    ["patch", GROUP, "awsclusters", "status"],
    ["update", GROUP, "awsclusters", ""],
    ["deletecollection", GROUP, "awsclusters", ""],
    ["get", "networking.x-k8s.io", "clustercidrs", ""],
    ["get", "core.kubefed.io", "kubefedclusters", ""],
    ["update", "coordination.k8s.io", "leases", ""],
];

/// Whether the core has a right.
async fn may(stage: &Stage, [verb, group, resource, subresource]: [&str; 4]) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": CORE, "resourceAttributes": {"verb": verb, "group": group, "resource": resource,
            "subresource": subresource, "namespace": "default"}},
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes());
    let answer: Value = stage.plane.client().await.request(request.unwrap()).await.unwrap();
    answer["status"]["allowed"] == true
}

/// The roles of the core as its package has them, without our group: upstream's role names all groups of its own
/// providers, and a provider of another group has nothing but its role.
fn roles() -> Vec<Value> {
    let mut role = of_providers("role.yaml").remove(0);
    role["metadata"] = json!({"name": "capi-manager-role",
        "labels": {"cluster.x-k8s.io/aggregate-to-manager": "true"}});
    let mut found = false;
    for rule in role["rules"].as_array_mut().unwrap() {
        let groups = rule["apiGroups"].as_array_mut().unwrap();
        let all = groups.len();
        groups.retain(|group| group != GROUP);
        found |= groups.len() < all;
    }
    assert!(found, "upstream's role names our group: {role:#}");
    let mut aggregated = of_providers("aggregated_role.yaml").remove(0);
    aggregated["metadata"]["name"] = json!(AGGREGATED);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "capi-manager-rolebinding"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": AGGREGATED},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": CORE}],
    });
    vec![role, aggregated, binding]
}

/// Aggregates roles, as in every cluster.
fn aggregate(stage: &Stage) -> Process {
    let program = control_plane_binaries(&["kube-controller-manager"]).unwrap().remove(0);
    Process::with_kubeconfig(&stage.plane.manager_kubeconfig())
        .program(&program)
        .args(["--controllers=clusterrole-aggregation-controller", "--leader-elect=false"])
        .args(["--use-service-account-credentials=true"])
        .start()
}

/// Gives the core its roles, and then ours. Its kubeconfig.
async fn user(stage: &Stage) -> PathBuf {
    stage.create_all(&roles());
    let clusters = ["watch", "cluster.x-k8s.io", "clusters", ""];
    poll("the core has its own rights", async || may(stage, clusters).await.then_some(())).await;
    assert!(!may(stage, ["get", GROUP, "awsclusters", ""]).await, "not yet");
    stage.run("apply -f config/rbac/cluster-api-provider.yaml");
    for resource in ["awsclusters", "awsclustertemplates"] {
        for verb in NEEDED {
            poll(&format!("the core may {verb} {resource}"), async || {
                may(stage, [verb, GROUP, resource, ""]).await.then_some(())
            })
            .await;
        }
    }
    stage.plane.kubeconfig(CORE, &[]).unwrap()
}

#[ignore = "item core of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn aggregated_role_of_another_group() {
    let mut aggregation = None;
    let with_roles = async |stage: &Stage| {
        aggregation = Some(aggregate(stage));
        user(stage).await
    };
    let Some(stage) = CoreStage::set_as(with_roles, &[]).await else { return };
    let before = stage.totals().await;
    let manager = stage.product("");
    for right in REFUSED {
        assert!(!may(&stage, right).await, "{right:?}");
    }
    stage.create_pair("one");
    stage.until(CLUSTERS, "one", "is provisioned", is_provisioned).await;
    stage.run(&format!("delete {CLUSTERS} one --wait=false"));
    stage.until_gone(CLUSTERS, "one").await;
    stage.until_gone(AWS_CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    let lines = stage.core.lines();
    let refused: Vec<_> = lines.iter().filter(|line| line.contains("is forbidden")).collect();
    assert!(refused.is_empty(), "{refused:?}");
    stage.run("delete -f config/rbac/cluster-api-provider.yaml");
    stage.run(&format!("delete clusterroles capi-manager-role {AGGREGATED}"));
    stage.run("delete clusterrolebindings capi-manager-rolebinding");
    drop(aggregation);
    stage.finish(manager).await;
}
