//! Output of `kubectl get`.

use serde_json::json;
use tests::kubectl::table;

use crate::scene::{AWS_CLUSTERS, CLUSTERS, hub};

#[tokio::test(flavor = "multi_thread")]
async fn clusters_machines_and_aws_clusters_are_printed_with_their_short_names() {
    let kubectl = hub().await;
    kubectl.run("apply -f config/samples/cluster-api.yaml");
    kubectl.patch_status(&format!("{CLUSTERS} testnetwork3"), &json!({"phase": "provisioning"}));
    let clusters = table(&kubectl.run("get cl"));
    assert_eq!(clusters[0], ["NAME", "PHASE", "AGE"]);
    assert_eq!(clusters[1], ["testnetwork3", "provisioning", "AGE"]);

    kubectl.run(&format!(
        "label {AWS_CLUSTERS} testnetwork3 cluster.x-k8s.io/cluster-name=testnetwork3"
    ));
    let endpoint =
        json!({"spec": {"controlPlaneEndpoint": {"host": "h.example.org", "port": 6443}}});
    kubectl.patch(&format!("{AWS_CLUSTERS} testnetwork3"), "merge", &endpoint);
    let status = json!({"ready": true, "resources": {"vpc": {"id": "vpc-1"}}, "natGatewayMode": "Single",
        "bastion": {"id": "i-1", "publicIp": "192.0.2.7"},
        "conditions": [{"type": "Ready", "status": "False", "reason": "QuotaExceeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    kubectl.patch_status(&format!("{AWS_CLUSTERS} testnetwork3"), &status);
    let printed = table(&kubectl.run("get awsc"));
    assert_eq!(printed[0], ["NAME", "CLUSTER", "READY", "REASON", "VPC", "BASTION", "IP", "AGE"]);
    let (name, reason, bastion) = ("testnetwork3", "QuotaExceeded", "192.0.2.7");
    assert_eq!(printed[1], [name, name, "true", reason, "vpc-1", bastion, "AGE"]);
    let wide = [name, name, "true", reason, "vpc-1", "h.example.org", bastion, "Single", "AGE"];
    assert_eq!(table(&kubectl.run("get awsc -o wide"))[1], wide);
    kubectl.create(&json!({"apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default"}, "spec": {"providerID": "aws:///i-1"}}));
    kubectl.patch_status(
        "ma m",
        &json!({"phase": "running", "nodeRef": {"kind": "Node", "name": "n1"}}),
    );
    let machines = table(&kubectl.run("get ma -o wide"));
    assert_eq!(
        machines,
        [["NAME", "PROVIDERID", "PHASE", "NODE"], ["m", "aws:///i-1", "running", "n1"]]
    );
    let category = kubectl.run("get cluster-api -o name");
    for name in ["cluster.cluster", "machine.cluster", "awscluster.infrastructure"] {
        assert!(category.contains(name), "{category}");
    }
}
