//! How long texts and how large objects may be: what `config/crd` says of each kind but AWSCluster, which has its own.

use super::shape::Limit;
use super::shape::Limit::{DateTime, Keys, Longest, Values};
use super::shapes::Kind;

/// The limits of a kind.
pub(crate) fn of(kind: Kind) -> &'static [(&'static str, Limit)] {
    match kind {
        Kind::Cluster => CLUSTER,
        Kind::Machine => MACHINE,
        Kind::KubeFedCluster => MEMBER,
        Kind::ClusterCidr => RANGE,
        Kind::KubeFedConfig => FEDERATION,
        Kind::ClusterCredential | Kind::AwsCluster => &[],
    }
}

const CLUSTER: &[(&str, Limit)] = &[
    ("spec.type", Longest(63)),
    ("spec.networkDevice", Longest(63)),
    ("spec.clusterCIDR", Longest(128)),
    ("spec.serviceCIDR", Longest(128)),
    ("spec.dnsDomain", Longest(253)),
    ("spec.features.ha.tke.vip", Longest(64)),
    ("spec.features.ha.thirdParty.vip", Longest(64)),
    ("spec.machines[].ip", Longest(64)),
    ("spec.machines[].username", Longest(256)),
    ("spec.machines[].taints[].timeAdded", DateTime),
    ("spec.dockerExtraArgs", Keys(256)),
    ("spec.dockerExtraArgs", Values(1024)),
    ("spec.kubeletExtraArgs", Keys(256)),
    ("spec.kubeletExtraArgs", Values(1024)),
    ("spec.apiServerExtraArgs", Keys(256)),
    ("spec.apiServerExtraArgs", Values(1024)),
    ("spec.controllerManagerExtraArgs", Keys(256)),
    ("spec.controllerManagerExtraArgs", Values(1024)),
    ("spec.schedulerExtraArgs", Keys(256)),
    ("spec.schedulerExtraArgs", Values(1024)),
    ("spec.addresses[].host", Longest(253)),
    ("spec.addresses[].path", Longest(1024)),
];

const MACHINE: &[(&str, Limit)] = &[
    ("spec.clusterName", Longest(253)),
    ("spec.type", Longest(253)),
    ("spec.ip", Longest(64)),
    ("spec.username", Longest(256)),
    ("spec.taints[].timeAdded", DateTime),
];

const MEMBER: &[(&str, Limit)] = &[
    ("spec.apiEndpoint", Longest(2048)),
    ("spec.secretRef.name", Longest(253)),
    ("spec.proxyURL", Longest(2048)),
];

const FEDERATION: &[(&str, Limit)] = &[
    ("spec.clusterHealthCheck.period", Longest(64)),
    ("spec.clusterHealthCheck.timeout", Longest(64)),
];

const RANGE: &[(&str, Limit)] = &[
    ("spec.ipv4", Longest(64)),
    ("spec.ipv6", Longest(64)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].key", Longest(317)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].operator", Longest(253)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchExpressions[].values[]", Longest(253)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].key", Longest(317)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].operator", Longest(253)),
    ("spec.nodeSelector.nodeSelectorTerms[].matchFields[].values[]", Longest(253)),
];
