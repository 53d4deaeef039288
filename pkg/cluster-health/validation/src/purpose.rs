//! [`purpose`]: words for errors about missing fields.

use super::kind::Kind;

/// What a required field is for, where no rule of the schema has a message for it.
pub(crate) fn purpose(kind: Kind, path: &str) -> Option<&'static str> {
    Some(match (kind, path) {
        (Kind::Cluster, "spec") => "the desired cluster",
        (Kind::Cluster, "spec.tenantID") | (Kind::ClusterCredential, "tenantID") => {
            "the tenant that the cluster is of"
        }
        (Kind::Cluster, "spec.type") => "who made the cluster, such as Imported or Baremetal",
        (Kind::Cluster, "spec.addresses[].type") => "what kind of address it is, such as Internal",
        (Kind::Cluster, "spec.addresses[].port") => "the port of the API server, such as 6443",
        (Kind::Cluster, "spec.features.files[].src" | "spec.features.files[].dst") => {
            "a file is copied from src to dst"
        }
        (Kind::Machine, "spec") => "how the machine is reached",
        (Kind::Machine, "spec.type") => "what the machine is, such as Baremetal",
        (_, "spec.machines[].port" | "spec.port") => "the port of SSH, such as 22",
        (_, "spec.machines[].taints[].key" | "spec.taints[].key") => "the name of the taint",
        (_, "spec.machines[].taints[].effect" | "spec.taints[].effect") => {
            "what the taint does, such as NoSchedule"
        }
        (Kind::ClusterCredential, "clusterName") => "the Cluster that it leads into",
        (Kind::ClusterCredential, "secretRef.namespace" | "secretRef.name") => {
            "a Secret is named by its namespace and its name"
        }
        (Kind::KubeFedCluster, "spec") => "how the member is reached",
        (Kind::KubeFedCluster, "spec.secretRef") => "the Secret with the token of the member",
        (Kind::KubeFedConfig, "spec") => "the settings of the federation",
        (Kind::KubeFedConfig, "spec.clusterHealthCheck") => "how members are probed",
        (Kind::KubeFedConfig, _) if path.ends_with("Threshold") => "a number of probes, such as 3",
        (Kind::ClusterCidr, "spec") => "the ranges",
        (Kind::ClusterCidr, "spec.perNodeHostBits") => {
            "the address bits inside of a block, such as 8"
        }
        (Kind::ClusterCidr, "spec.nodeSelector.nodeSelectorTerms") => {
            "must have at least one node selector term"
        }
        (Kind::ClusterCidr, _) if path.ends_with("matchExpressions[].key") => "the key of a label",
        (Kind::ClusterCidr, _) if path.ends_with("matchFields[].key") => "the name of a field",
        (Kind::ClusterCidr, _) if path.ends_with("[].operator") => {
            "how values are compared, such as In"
        }
        (Kind::AwsCluster, "spec") => "what the cluster has on AWS",
        (Kind::AwsCluster, "spec.region") => "the region of AWS",
        _ => return None,
    })
}
