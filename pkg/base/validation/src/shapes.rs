//! The fields that rules read, kind by kind, with their types: those of `config/crd`.

use crate::kind::Kind;
use crate::shape::Field;
use crate::shape::Shape::{Boolean, Bytes, Integer, List, Object, Text, Texts};

/// The fields of a kind, each after the one that it is in.
pub(crate) fn of(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Cluster => CLUSTER,
        Kind::ClusterCredential => CREDENTIAL,
        Kind::Machine => MACHINE,
        Kind::KubeFedCluster => MEMBER,
        Kind::KubeFedConfig => FEDERATION,
        Kind::ClusterCidr => RANGE,
    }
}

const CLUSTER: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.tenantID", Text),
    ("spec.type", Text),
    ("spec.version", Text),
    ("spec.networkDevice", Text),
    ("spec.clusterCIDR", Text),
    ("spec.serviceCIDR", Text),
    ("spec.dnsDomain", Text),
    ("spec.features", Object),
    ("spec.features.ipvs", Boolean),
    ("spec.features.gpuType", Text),
    ("spec.features.ipv6DualStack", Boolean),
    ("spec.features.ha", Object),
    ("spec.features.ha.tke", Object),
    ("spec.features.ha.tke.vip", Text),
    ("spec.features.ha.tke.vrid", Integer),
    ("spec.features.ha.thirdParty", Object),
    ("spec.features.ha.thirdParty.vip", Text),
    ("spec.features.ha.thirdParty.vport", Integer),
    ("spec.properties", Object),
    ("spec.properties.maxClusterServiceNum", Integer),
    ("spec.properties.maxNodePodNum", Integer),
    ("spec.machines", List(64)),
    ("spec.machines[]", Object),
    ("spec.machines[].ip", Text),
    ("spec.machines[].port", Integer),
    ("spec.machines[].username", Text),
    ("spec.machines[].password", Bytes),
    ("spec.machines[].privateKey", Bytes),
    ("spec.machines[].passPhrase", Bytes),
    ("spec.machines[].proxy", Object),
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
    ("spec.addresses[].port", Integer),
    ("spec.addresses[].path", Text),
];

const CREDENTIAL: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("tenantID", Text),
    ("clusterName", Text),
    ("caCert", Bytes),
    ("clientCert", Bytes),
    ("clientKey", Bytes),
    ("token", Text),
    ("secretRef", Object),
];

const MACHINE: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.clusterName", Text),
    ("spec.type", Text),
    ("spec.ip", Text),
    ("spec.port", Integer),
    ("spec.username", Text),
    ("spec.password", Bytes),
    ("spec.privateKey", Bytes),
    ("spec.passPhrase", Bytes),
];

const MEMBER: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("metadata.namespace", Text),
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
    ("spec.clusterHealthCheck.timeout", Text),
    ("spec.clusterHealthCheck.failureThreshold", Integer),
    ("spec.clusterHealthCheck.successThreshold", Integer),
];

const RANGE: &[Field] = &[
    ("metadata", Object),
    ("metadata.name", Text),
    ("spec", Object),
    ("spec.perNodeHostBits", Integer),
    ("spec.ipv4", Text),
    ("spec.ipv6", Text),
    ("spec.nodeSelector", Object),
    ("spec.nodeSelector.nodeSelectorTerms", List(64)),
    ("spec.nodeSelector.nodeSelectorTerms[]", Object),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions", List(64)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[]", Object),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].key", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].operator", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].values", List(1024)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].values[]", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields", List(64)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[]", Object),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].key", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].operator", Text),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].values", List(1024)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].values[]", Text),
];
