//! Group `core.kubefed.io/v1beta1`.

use std::fmt;

use kube_api::Resource;
use objects::Schema;
use serde::{Deserialize, Serialize};

use crate::api::{Condition, WithSpec};

const GROUP: &str = "core.kubefed.io";

pub(crate) const KUBEFED_CLUSTERS: Resource =
    Resource::namespaced(GROUP, "v1beta1", "KubeFedCluster", "kubefedclusters");
pub(crate) const KUBEFED_CONFIGS: Resource =
    Resource::namespaced(GROUP, "v1beta1", "KubeFedConfig", "kubefedconfigs");

#[derive(Debug)]
pub(crate) enum KubeFedCluster {}

impl Schema for KubeFedCluster {
    type Body = WithSpec<KubeFedClusterSpec>;
    type Status = KubeFedClusterStatus;
}

/// How to reach a member. It is printed without its proxy, whose URL may hold a password.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KubeFedClusterSpec {
    /// Host, `host:port`, IP, `IP:port`, or a URL.
    pub api_endpoint: String,
    /// Authorities of the server's certificate: base64 of PEM.
    pub ca_bundle: String,
    /// The Secret with the token, in the same namespace.
    pub secret_ref: LocalSecretRef,
    /// Checks of the server's certificate to leave out: `*`, `SubjectName`, `ValidityPeriod`.
    #[serde(rename = "disabledTLSValidations")]
    pub disabled_tls_validations: Vec<String>,
    /// The proxy on the way; its user part is a secret.
    #[serde(rename = "proxyURL")]
    pub proxy_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LocalSecretRef {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KubeFedClusterStatus {
    /// `Ready` and `Offline`, and no others: upstream's webhook refuses them.
    pub conditions: Vec<Condition>,
    /// Zones of its Nodes, sorted, each once.
    pub zones: Vec<String>,
    /// Region of its Nodes.
    pub region: Option<String>,
    /// The record of its availability.
    pub availability: Option<String>,
}

impl fmt::Debug for KubeFedClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeFedClusterSpec")
            .field("secret_ref", &self.secret_ref.name)
            .field("disabled_tls_validations", &self.disabled_tls_validations)
            .finish_non_exhaustive()
    }
}

/// The kind `KubeFedConfig`. It is only read.
#[derive(Debug)]
pub(crate) enum KubeFedConfig {}

impl Schema for KubeFedConfig {
    type Body = WithSpec<KubeFedConfigSpec>;
    type Status = ();
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&["clusterHealthCheck"]);
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KubeFedConfigSpec {
    pub cluster_health_check: Option<ClusterHealthCheck>,
}

/// How members are probed. What is absent is left to the flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterHealthCheck {
    /// Between two probes, in Go's syntax: `10s`.
    pub period: Option<String>,
    /// Failed probes in a row that turn a healthy member into a failed one.
    pub failure_threshold: Option<i64>,
    /// Good probes in a row that turn it back.
    pub success_threshold: Option<i64>,
    /// Time limit of one probe, in Go's syntax.
    pub timeout: Option<String>,
}

#[cfg(test)]
mod tests {
    use objects::Object;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_is_read_and_its_proxy_is_not_printed() {
        let member: Object<KubeFedCluster> = Object::read(json!({
            "metadata": {"namespace": "fed", "name": "a", "uid": "u", "resourceVersion": "1"},
            "spec": {"apiEndpoint": "https://h", "secretRef": {"name": "s"},
                "proxyURL": "http://user:hunter2@proxy", "disabledTLSValidations": ["*"]},
            "status": {"conditions": null, "zones": ["a"], "region": null},
        }))
        .unwrap();
        let spec = &member.body.spec;
        assert_eq!((&*spec.api_endpoint, &*spec.secret_ref.name), ("https://h", "s"));
        assert_eq!(spec.proxy_url, "http://user:hunter2@proxy");
        assert_eq!((member.status.zones.len(), &member.status.region), (1, &None));
        let text = format!("{member:?} {spec:?}");
        assert!(!text.contains("hunter2") && text.contains("\"*\""), "{text}");
    }

    #[test]
    fn of_a_config_only_the_block_about_health_is_read() {
        let config: Object<KubeFedConfig> = Object::read(json!({
            "metadata": {"namespace": "fed", "name": "kubefed", "uid": "u", "resourceVersion": "1"},
            "spec": {"scope": "Cluster", "clusterHealthCheck": {"period": "10s", "failureThreshold": 3}},
        }))
        .unwrap();
        let expected = ClusterHealthCheck {
            period: Some("10s".into()),
            failure_threshold: Some(3),
            ..ClusterHealthCheck::default()
        };
        assert_eq!(config.body.spec.cluster_health_check, Some(expected));
    }
}
