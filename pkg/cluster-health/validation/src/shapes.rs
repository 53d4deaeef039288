//! The fields of each kind, with their types: those of `config/crd`, all but the status. `shapes/aws_cluster.rs` has
//! those of the largest kind.

pub(crate) mod aws_cluster;

use std::fmt;

use serde_json::Value;

use super::node_selector::{FEWEST_HOST_BITS, MOST_HOST_BITS};
use super::shape::Shape::{Boolean, Bytes, Integer, List, Object, Text, Texts};
use super::shape::{Field, INT32, INT64, PORT, PORT_OR_NONE};

/// The fields of a kind, each after the one that it is in.
pub(crate) fn of(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Cluster => CLUSTER,
        Kind::ClusterCredential => CREDENTIAL,
        Kind::Machine => MACHINE,
        Kind::KubeFedCluster => MEMBER,
        Kind::KubeFedConfig => FEDERATION,
        Kind::ClusterCidr => RANGE,
        Kind::AwsCluster => aws_cluster::CLUSTER,
    }
}

const CLUSTER: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.finalizers", List(64)),
    ("spec.finalizers[]", Text),
    ("spec.tenantID", Text),
    ("spec.displayName", Text),
    ("spec.type", Text),
    ("spec.version", Text),
    ("spec.networkType", Text),
    ("spec.networkDevice", Text),
    ("spec.clusterCIDR", Text),
    ("spec.serviceCIDR", Text),
    ("spec.dnsDomain", Text),
    ("spec.publicAlternativeNames", List(256)),
    ("spec.publicAlternativeNames[]", Text),
    ("spec.features", Object),
    ("spec.features.ipvs", Boolean),
    ("spec.features.publicLB", Boolean),
    ("spec.features.internalLB", Boolean),
    ("spec.features.gpuType", Text),
    ("spec.features.enableMasterSchedule", Boolean),
    ("spec.features.ha", Object),
    ("spec.features.ha.tke", Object),
    ("spec.features.ha.tke.vip", Text),
    ("spec.features.ha.tke.vrid", Integer(1, 255)),
    ("spec.features.ha.thirdParty", Object),
    ("spec.features.ha.thirdParty.vip", Text),
    ("spec.features.ha.thirdParty.vport", PORT),
    ("spec.features.ipv6DualStack", Boolean),
    ("spec.features.hooks", Texts),
    ("spec.features.files", List(256)),
    ("spec.features.files[]", Object),
    ("spec.features.files[].src", Text),
    ("spec.features.files[].dst", Text),
    ("spec.features.upgrade", Object),
    ("spec.features.upgrade.mode", Text),
    ("spec.features.upgrade.strategy", Object),
    ("spec.properties", Object),
    ("spec.properties.maxClusterServiceNum", INT32),
    ("spec.properties.maxNodePodNum", INT32),
    ("spec.properties.oversoldRatio", Texts),
    ("spec.machines", List(64)),
    ("spec.machines[]", Object),
    ("spec.machines[].ip", Text),
    ("spec.machines[].port", PORT),
    ("spec.machines[].username", Text),
    ("spec.machines[].password", Bytes),
    ("spec.machines[].privateKey", Bytes),
    ("spec.machines[].passPhrase", Bytes),
    ("spec.machines[].labels", Texts),
    ("spec.machines[].taints", List(64)),
    ("spec.machines[].taints[]", Object),
    ("spec.machines[].taints[].key", Text),
    ("spec.machines[].taints[].value", Text),
    ("spec.machines[].taints[].effect", Text),
    ("spec.machines[].taints[].timeAdded", Text),
    ("spec.machines[].proxy", Object),
    ("spec.machines[].proxy.type", Text),
    ("spec.machines[].proxy.ip", Text),
    ("spec.machines[].proxy.port", PORT_OR_NONE),
    ("spec.machines[].proxy.username", Text),
    ("spec.machines[].proxy.password", Bytes),
    ("spec.machines[].proxy.privateKey", Bytes),
    ("spec.machines[].proxy.passPhrase", Bytes),
    ("spec.dockerExtraArgs", Texts),
    ("spec.kubeletExtraArgs", Texts),
    ("spec.apiServerExtraArgs", Texts),
    ("spec.controllerManagerExtraArgs", Texts),
    ("spec.schedulerExtraArgs", Texts),
    ("spec.clusterCredentialRef", Object),
    ("spec.clusterCredentialRef.name", Text),
    ("spec.addresses", List(32)),
    ("spec.addresses[]", Object),
    ("spec.addresses[].type", Text),
    ("spec.addresses[].host", Text),
    ("spec.addresses[].port", PORT),
    ("spec.addresses[].path", Text),
];

const CREDENTIAL: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("tenantID", Text),
    ("clusterName", Text),
    ("etcdCACert", Bytes),
    ("etcdCAKey", Bytes),
    ("etcdAPIClientCert", Bytes),
    ("etcdAPIClientKey", Bytes),
    ("caCert", Bytes),
    ("caKey", Bytes),
    ("clientCert", Bytes),
    ("clientKey", Bytes),
    ("token", Text),
    ("bootstrapToken", Text),
    ("certificateKey", Text),
    ("username", Text),
    ("as", Text),
    ("as-groups", List(64)),
    ("as-groups[]", Text),
    ("as-user-extra", Texts),
    ("secretRef", Object),
    ("secretRef.namespace", Text),
    ("secretRef.name", Text),
];

const MACHINE: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.finalizers", List(64)),
    ("spec.finalizers[]", Text),
    ("spec.tenantID", Text),
    ("spec.clusterName", Text),
    ("spec.type", Text),
    ("spec.ip", Text),
    ("spec.port", PORT),
    ("spec.username", Text),
    ("spec.password", Bytes),
    ("spec.privateKey", Bytes),
    ("spec.passPhrase", Bytes),
    ("spec.labels", Texts),
    ("spec.taints", List(64)),
    ("spec.taints[]", Object),
    ("spec.taints[].key", Text),
    ("spec.taints[].value", Text),
    ("spec.taints[].effect", Text),
    ("spec.taints[].timeAdded", Text),
];

const MEMBER: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.apiEndpoint", Text),
    ("spec.caBundle", Bytes),
    ("spec.secretRef", Object),
    ("spec.secretRef.name", Text),
    ("spec.disabledTLSValidations", List(3)),
    ("spec.disabledTLSValidations[]", Text),
    ("spec.proxyURL", Text),
];

const FEDERATION: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.clusterHealthCheck", Object),
    ("spec.clusterHealthCheck.period", Text),
    ("spec.clusterHealthCheck.failureThreshold", INT64),
    ("spec.clusterHealthCheck.successThreshold", INT64),
    ("spec.clusterHealthCheck.timeout", Text),
];

const RANGE: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.perNodeHostBits", Integer(FEWEST_HOST_BITS, MOST_HOST_BITS)),
    ("spec.ipv4", Text),
    ("spec.ipv6", Text),
    ("spec.nodeSelector", Object),
    ("spec.nodeSelector.nodeSelectorTerms", List(16)),
    ("spec.nodeSelector.nodeSelectorTerms[]", Object),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions", List(32)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[]", Object),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].key", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].operator", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].values", List(64)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].values[]", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields", List(32)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[]", Object),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].key", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].operator", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].values", List(64)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].values[]", Text),
];

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

#[cfg(test)]
mod tests;
