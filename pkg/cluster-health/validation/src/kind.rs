//! [`Kind`] and [`Operation`]: which objects are judged, and what happens to them. [`purpose`]: words for errors about
//! missing fields.

use std::fmt;

use serde_json::Value;

/// With the same fields as the newest one.
const OLDER_AWS: [&str; 2] =
    ["infrastructure.cluster.x-k8s.io/v1beta1", "infrastructure.cluster.x-k8s.io/v1alpha2"];

/// A kind with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `platform.tkestack.io/v1`.
    Cluster,
    /// `platform.tkestack.io/v1`.
    ClusterCredential,
    /// `platform.tkestack.io/v1`.
    Machine,
    /// `core.kubefed.io/v1beta1`.
    KubeFedCluster,
    /// `core.kubefed.io/v1beta1`.
    KubeFedConfig,
    /// `networking.x-k8s.io/v1`.
    ClusterCidr,
    /// `infrastructure.cluster.x-k8s.io`, `v1beta2`, `v1beta1` and `v1alpha2`.
    AwsCluster,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Cluster,
        Self::ClusterCredential,
        Self::Machine,
        Self::KubeFedCluster,
        Self::KubeFedConfig,
        Self::ClusterCidr,
        Self::AwsCluster,
    ];

    /// The kind that an object says it is of; `None` when there are no rules for that.
    pub fn of(object: &Value) -> Option<Self> {
        let (version, name) = (object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?);
        let is_it = |kind: &Self| {
            let is_older = *kind == Self::AwsCluster && OLDER_AWS.contains(&version);
            kind.name() == name && (kind.api_version() == version || is_older)
        };
        Self::ALL.into_iter().find(is_it)
    }

    /// Group and version, as in the field `apiVersion`; the newest of several.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Cluster | Self::ClusterCredential | Self::Machine => "platform.tkestack.io/v1",
            Self::KubeFedCluster | Self::KubeFedConfig => "core.kubefed.io/v1beta1",
            Self::ClusterCidr => "networking.x-k8s.io/v1",
            Self::AwsCluster => "infrastructure.cluster.x-k8s.io/v1beta2",
        }
    }

    /// Spelling in the field `kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::ClusterCredential => "ClusterCredential",
            Self::Machine => "Machine",
            Self::KubeFedCluster => "KubeFedCluster",
            Self::KubeFedConfig => "KubeFedConfig",
            Self::ClusterCidr => "ClusterCIDR",
            Self::AwsCluster => "AWSCluster",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The operation on an object.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// The object is created.
    Create,
    /// The object replaces the stored one.
    Update {
        /// The stored object.
        old: &'a Value,
    },
}

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
        (Kind::AwsCluster, _) if path.ends_with("additionalListeners[].port") => {
            "the port of the listener"
        }
        _ => return None,
    })
}
