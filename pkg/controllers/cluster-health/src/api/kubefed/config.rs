//! [`KubeFedConfig`]: settings of a federation, of which the block about health is read.

use objects::Schema;
use serde::{Deserialize, Serialize};

use crate::api::WithSpec;

/// The kind `KubeFedConfig`. It is only read.
#[derive(Debug)]
pub enum KubeFedConfig {}

impl Schema for KubeFedConfig {
    type Body = WithSpec<KubeFedConfigSpec>;
    type Status = ();
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&["clusterHealthCheck"]);
}

/// What is needed of the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KubeFedConfigSpec {
    /// How members are probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_health_check: Option<ClusterHealthCheck>,
}

/// How members are probed. What is absent is left to the flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterHealthCheck {
    /// Between two probes, in Go's syntax: `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// Failed probes in a row that turn a healthy member into a failed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<i64>,
    /// Good probes in a row that turn it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_threshold: Option<i64>,
    /// Of one probe, in Go's syntax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}
