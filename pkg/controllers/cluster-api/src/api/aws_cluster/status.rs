//! [`AwsClusterStatus`]: what is published of a cluster's infrastructure, in the words of both dialects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::condition::Condition;
use crate::api::endpoint::Endpoint;

/// The status of an AWSCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsClusterStatus {
    /// Everything was there once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The same, in the words of v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ProvisionedOnce>,
    /// Where clients reach the API server, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_endpoints: Vec<Endpoint>,
    /// Zones: a list in contract v1beta2, a map before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_domains: Option<Value>,
    /// Facts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Generation that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The network, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkStatus>,
    /// The network, in the words of v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_status: Option<NetworkStatus>,
    /// The bastion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bastion: Option<BastionStatus>,
    /// Why it cannot go on without help; an early word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The later word for [`AwsClusterStatus::error_reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// The later word for [`AwsClusterStatus::error_message`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// Ids of what was found, for audits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Value>,
    /// Creations of unknown outcome, by what they make.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pending_creates: BTreeMap<String, String>,
    /// When attributes were last compared that plain reads do not show, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_deep_check_time: Option<String>,
}

/// What has happened once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProvisionedOnce {
    /// Everything was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// What upstream's other controllers read of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Security groups, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub security_groups: BTreeMap<String, Value>,
    /// The load balancer of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server_elb: Option<Value>,
    /// Public addresses of the NAT gateways.
    #[serde(rename = "natGatewaysIPs", skip_serializing_if = "Vec::is_empty")]
    pub nat_gateways_ips: Vec<String>,
}

/// The bastion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BastionStatus {
    /// Its id.
    pub id: String,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_state: Option<String>,
    /// Its public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Its address inside of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
}
