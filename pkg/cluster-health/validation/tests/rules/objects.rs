//! Objects of each kind that nothing is wrong with.

use serde_json::{Value, json};

pub(crate) fn imported() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-1"},
        "spec": {
            "tenantID": "t", "type": "Imported",
            "addresses": [{"type": "Internal", "host": "10.0.0.1", "port": 6443}],
        },
    })
}

pub(crate) fn baremetal() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-1"},
        "spec": {
            "tenantID": "t", "type": "Baremetal", "version": "1.22.3",
            "clusterCIDR": "10.244.0.0/16", "machines": [master("10.0.0.1"), master("10.0.0.2")],
        },
    })
}

pub(crate) fn master(ip: &str) -> Value {
    json!({"ip": ip, "port": 22, "username": "root", "password": "c2VjcmV0"})
}

pub(crate) fn credential() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-1"}, "tenantID": "t", "clusterName": "cls-1",
        "clientCert": "Y2VydA==", "clientKey": "c2VjcmV0",
    })
}

pub(crate) fn machine() -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc-1"},
        "spec": {
            "tenantID": "t", "type": "Baremetal", "clusterName": "cls-1", "ip": "10.0.1.1",
            "port": 22, "username": "root", "privateKey": "c2VjcmV0",
        },
    })
}

pub(crate) fn member() -> Value {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "one", "namespace": "fed"},
        "spec": {"apiEndpoint": "https://10.0.0.1:6443", "secretRef": {"name": "one"}},
    })
}

pub(crate) fn federation() -> Value {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig",
        "metadata": {"name": "kubefed", "namespace": "fed"},
        "spec": {"clusterHealthCheck":
            {"period": "10s", "timeout": "3s", "failureThreshold": 3, "successThreshold": 1}},
    })
}

pub(crate) fn range() -> Value {
    json!({
        "apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": "r"},
        "spec": {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "ipv6": "fd00::/112",
            "nodeSelector": {"nodeSelectorTerms": [{
                "matchExpressions": [{"key": "example.com/pool", "operator": "In", "values": ["a"]}],
            }]}},
    })
}

pub(crate) fn aws() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"region": "us-east-2", "network": {"vpc": {"cidrBlock": "10.0.0.0/16"},
            "subnets": [{"availabilityZone": "us-east-2a", "cidrBlock": "10.0.0.0/24"}]}},
    })
}

pub(crate) fn all() -> [Value; 8] {
    [imported(), baremetal(), credential(), machine(), member(), federation(), range(), aws()]
}
