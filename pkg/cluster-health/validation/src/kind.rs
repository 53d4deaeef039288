//! [`Kind`] and [`Operation`]: which objects are judged, and what happens to them.

use std::fmt;

use serde_json::Value;

/// With the same fields as the newer one.
const OLDER_AWS: &str = "infrastructure.cluster.x-k8s.io/v1alpha2";

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
    /// `infrastructure.cluster.x-k8s.io`, `v1beta2` and `v1alpha2`.
    AwsCluster,
}

impl Kind {
    /// All of them.
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
            let is_older = *kind == Self::AwsCluster && version == OLDER_AWS;
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
