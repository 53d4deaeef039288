//! Both dialects are kept unchanged, by whichever version they are read and written.

use std::fs;

use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::programs::workspace;

use crate::scene::{AWS_CLUSTERS, CLUSTERS, aws_cluster, hub};

const NEWER: [&str; 2] =
    ["clusters.v1beta2.cluster.x-k8s.io", "awsclusters.v1beta2.infrastructure.cluster.x-k8s.io"];

fn sample() -> Vec<Value> {
    let text = fs::read_to_string(workspace().join("config/samples/cluster-api.yaml")).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_and_samples_are_taken_by_server_side_apply_and_read_alike_in_both_versions() {
    let kubectl = Kubectl::without_crds().await;
    kubectl.run("apply --server-side -f config/crd");
    kubectl.await_crds();
    kubectl.run("apply --server-side -f config/samples/cluster-api.yaml");
    let sample = sample();
    for (older, newer, made) in
        [(CLUSTERS, NEWER[0], &sample[0]), (AWS_CLUSTERS, NEWER[1], &sample[1])]
    {
        for kind in [older, newer] {
            let stored = kubectl.object(&format!("{kind} testnetwork3"));
            assert_eq!(stored["spec"], made["spec"], "{kind}");
            let version = kind.split('.').nth(1).unwrap();
            assert!(stored["apiVersion"].as_str().unwrap().ends_with(version), "{kind}");
            assert_eq!(stored["metadata"]["namespace"], "default");
        }
    }
    // Applied again by the other way, nothing is different.
    let version = |kind: &str| {
        kubectl.object(&format!("{kind} testnetwork3"))["metadata"]["generation"].clone()
    };
    kubectl.run("apply --server-side -f config/samples/cluster-api.yaml");
    assert_eq!((version(CLUSTERS), version(AWS_CLUSTERS)), (json!(1), json!(1)));
}

/// Every field of the newer dialect that the controllers read.
fn newer_spec() -> Value {
    json!({
        "region": "eu-west-1", "partition": "aws", "imageLookupFormat": "f", "imageLookupOrg": "1",
        "imageLookupBaseOS": "ubuntu-24.04", "s3Bucket": {"name": "b", "presignedURLDuration": "1h"},
        "secondaryControlPlaneLoadBalancer": {"name": "second", "scheme": "internal", "loadBalancerType": "nlb"},
        "sshKeyName": "", "additionalTags": {"team": "söme one+@x"},
        "network": {
            "vpc": {"cidrBlock": "10.1.0.0/16", "carrierGatewayId": "cagw-1", "ipv6": {"cidrBlock": "x"}, "secondaryCidrBlocks": [{"ipv4CidrBlock": "y"}]},
            "subnets": [
                {"id": "a", "cidrBlock": "10.1.0.0/24", "availabilityZone": "eu-west-1a", "isPublic": true, "tags": {"k": "v"}},
                {"id": "subnet-f0000001"},
            ],
            "natGateways": {"mode": "Single", "availabilityZone": "eu-west-1a"},
            "cni": {"cniIngressRules": [{"description": "d", "protocol": "-1", "fromPort": -1, "toPort": -1}]},
            "securityGroupOverrides": {"node": "sg-1"},
            "additionalNodeIngressRules": [{"description": "", "protocol": "tcp", "fromPort": 1, "toPort": 2,
                "sourceSecurityGroupRoles": ["controlplane"]}],
            "nodePortIngressRuleCidrBlocks": ["10.0.0.0/8"],
        },
        "controlPlaneLoadBalancer": {
            "name": "my-lb", "scheme": "internal", "loadBalancerType": "nlb", "preserveClientIP": true, "targetGroupIPType": "ipv4",
            "additionalListeners": [{"port": 8443, "protocol": "TCP", "healthCheck": {"path": "/readyz"}}],
            "ingressRules": [{"description": "office", "protocol": "tcp", "fromPort": 6443, "toPort": 6443, "cidrBlocks": ["192.0.2.0/24"]}],
            "healthCheckProtocol": "TCP", "healthCheck": {"intervalSeconds": 10},
        },
        "bastion": {"enabled": true, "allowedCIDRBlocks": ["192.0.2.0/24"], "ami": "ami-1"},
        "identityRef": {"kind": "AWSClusterRoleIdentity", "name": "r"},
        "controlPlaneEndpoint": {"host": "h.example.org", "port": 6443},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_newer_dialect_survive_reads_and_writes_by_the_older_version() {
    let kubectl = hub().await;
    let spec = newer_spec();
    kubectl.create(&aws_cluster("v1beta2", "new", &spec));
    let status = json!({
        "ready": true, "initialization": {"provisioned": true}, "observedGeneration": 1,
        "apiEndpoints": [{"host": "h.example.org", "port": 6443}],
        "failureDomains": [{"name": "eu-west-1a", "controlPlane": true, "attributes": {"x": "y"}}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "severity": "Info",
            "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1}],
        "networkStatus": {"securityGroups": {"node": {"id": "sg-1", "ingressRule": [{"protocol": "tcp"}]}},
            "apiServerElb": {"name": "n", "attributes": {"idleTimeout": 600_000_000_000_i64}}, "natGatewaysIPs": ["192.0.2.1"]},
        "bastion": {"id": "i-1", "tags": {"a": "b"}},
        "resources": {"vpc": {"id": "vpc-1", "managed": true}, "natGateways": [{"az": "eu-west-1a"}]},
        "pendingCreates": {"vpc": "2026-01-02T03:04:05Z"},
    });
    kubectl.patch_status(&format!("{AWS_CLUSTERS} new"), &status);
    kubectl.run(&format!("label {AWS_CLUSTERS} new by=older"));
    for kind in [AWS_CLUSTERS, NEWER[1]] {
        let stored = kubectl.object(&format!("{kind} new"));
        assert_eq!((&stored["spec"], &stored["status"]), (&spec, &status), "{kind}");
    }
    // The form of contract v1beta1.
    let map = json!({"failureDomains": null});
    kubectl.patch_status(&format!("{AWS_CLUSTERS} new"), &map);
    let map = json!({"failureDomains": {"eu-west-1a": {"controlPlane": true}}});
    kubectl.patch_status(&format!("{AWS_CLUSTERS} new"), &map);
    let stored = kubectl.object(&format!("{} new", NEWER[1]));
    assert_eq!(stored["status"]["failureDomains"], map["failureDomains"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_both_dialects_keep_their_fields() {
    let kubectl = hub().await;
    let spec = json!({
        "paused": true, "controlPlaneEndpoint": {"host": "h", "port": 443},
        "clusterNetwork": {"apiServerPort": 443, "serviceDomain": "cluster.local",
            "pods": {"cidrBlocks": ["fd00::/48"]}},
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "c"},
        "topology": {"classRef": {"name": "q"}, "version": "v1.36.0"},
    });
    kubectl.create(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "new", "namespace": "default"}, "spec": spec}));
    for kind in [CLUSTERS, NEWER[0]] {
        assert_eq!(kubectl.object(&format!("{kind} new"))["spec"], spec, "{kind}");
    }
}
