//! [`AwsClusterStatus`]: what is published of a cluster's infrastructure, in the words of both
//! dialects.

use std::collections::BTreeMap;

use aws_network::Zone;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::cluster::Endpoint;
use crate::api::Condition;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AwsClusterStatus {
    /// Everything was there once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<bool>,
    /// v1beta2: `status.initialization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initialization: Option<ProvisionedOnce>,
    /// Where clients reach the API server, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_endpoints: Vec<Endpoint>,
    /// Zones: a list in contract v1beta2, a map before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_domains: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    /// The network, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkStatus>,
    /// The network, in the words of v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_status: Option<NetworkStatus>,
    /// The mode in effect: that of the spec, or of the flag where that does not say; `PerAZ` where
    /// AWS offers no regional NAT gateway; absent where that is not possible either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nat_gateway_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bastion: Option<BastionStatus>,
    /// Why it cannot go on without help; an early word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<String>,
    /// The later word for [`AwsClusterStatus::error_reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_reason: Option<String>,
    /// The later word for [`AwsClusterStatus::error_message`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<Resources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanStatus>,
    /// Creations of unknown outcome, by what they make.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) pending_creates: BTreeMap<String, String>,
    /// When attributes were last compared that plain reads do not show, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_deep_check_time: Option<String>,
}

impl AwsClusterStatus {
    /// Everything was there once, in either dialect.
    pub(crate) fn was_ready(&self) -> bool {
        let newer = self.initialization.as_ref().and_then(|it| it.provisioned);
        self.ready == Some(true) || newer == Some(true)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PlanStatus {
    /// Writes, in an order in which they can be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) writes: Vec<String>,
    /// How many more there are than are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) omitted: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
}

/// Milestones, which stay true once they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProvisionedOnce {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provisioned: Option<bool>,
}

/// Resources that were found and created, for audits and for the time after a crash. All of it may
/// be lost: resources are found by their tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Resources {
    /// The VPC that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vpc: Option<VpcStatus>,
    /// Creations that were answered, by what they have made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) created: BTreeMap<String, Created>,
    /// How many resources of a logical id have ended, where there were any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) attempts: BTreeMap<String, u32>,
    /// Zones of the region when subnets were chosen for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) zones: Vec<String>,
    /// Zones of the spec that AWS was asked about, since they may be edge zones. AWS is asked again about one
    /// that cannot be read, as after a downgrade.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "readable")]
    pub(crate) known_zones: Vec<Zone>,
    /// Since when everything is being deleted, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deleting_since: Option<String>,
    /// Since when AWS refuses a deletion of what is in use, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blocked_since: Option<String>,
}

/// Reads a list without the entries that are not as this release knows them.
fn readable<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Zone>, D::Error> {
    let all = Vec::<Value>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect())
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VpcStatus {
    pub(crate) id: String,
    pub(crate) managed: bool,
}

/// A creation that was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Created {
    /// The id that AWS gave, or the name or ARN of a load balancer.
    pub(crate) id: String,
    /// When, in RFC 3339.
    pub(crate) since: String,
}

/// Ids of the network that upstream's other controllers read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NetworkStatus {
    /// Security groups, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) security_groups: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_server_elb: Option<Value>,
    #[serde(rename = "secondaryAPIServerELB", skip_serializing_if = "Option::is_none")]
    pub(crate) secondary_api_server_elb: Option<Value>,
    #[serde(rename = "natGatewaysIPs", skip_serializing_if = "Vec::is_empty")]
    pub(crate) nat_gateways_ips: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct BastionStatus {
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) private_ip: Option<String>,
}
