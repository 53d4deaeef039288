//! [`AwsClusterStatus`]: what is published of a cluster's infrastructure, in the words of both
//! dialects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::cluster::Endpoint;
use crate::api::condition::Condition;

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
    /// How private subnets reach the internet: by the spec, or by the flag where that does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat_gateway_mode: Option<String>,
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
    /// What was found and created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// What would be written to AWS, where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// Creations of unknown outcome, by what they make.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pending_creates: BTreeMap<String, String>,
    /// When attributes were last compared that plain reads do not show, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_deep_check_time: Option<String>,
}

impl AwsClusterStatus {
    /// Everything was there once, in either dialect.
    pub fn was_ready(&self) -> bool {
        let newer = self.initialization.as_ref().and_then(|it| it.provisioned);
        self.ready == Some(true) || newer == Some(true)
    }
}

/// What would be written to AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlanStatus {
    /// Writes, in an order in which they can be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// How many more there are than are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<usize>,
    /// What stands in the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// What has happened once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProvisionedOnce {
    /// Everything was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// What was found and created, for audits and for whoever goes on after a crash. All of it may be
/// lost: resources are found by their tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resources {
    /// The VPC that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc: Option<VpcStatus>,
    /// Creations that were answered, by what they have made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub created: BTreeMap<String, Created>,
    /// How many resources of a place have ended, by what they were, where there were any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<String, u32>,
    /// Zones of the region when subnets were chosen for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Since when everything is being deleted, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting_since: Option<String>,
    /// Since when AWS refuses a deletion of what is in use, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_since: Option<String>,
}

/// The VPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VpcStatus {
    /// Its id.
    pub id: String,
    /// It was made for the cluster.
    pub managed: bool,
}

/// A creation that was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Created {
    /// The id that AWS gave, or the name or ARN of a load balancer.
    pub id: String,
    /// When, in RFC 3339.
    pub since: String,
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
