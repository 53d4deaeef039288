//! [`AwsCluster`]: the union of its dialects. `aws_spec.rs` reads it into what both mean.

mod status;

use std::collections::BTreeMap;

use objects::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cluster::Endpoint;

pub use status::{
    AwsClusterStatus, BastionStatus, Created, NetworkStatus, PlanStatus, ProvisionedOnce,
    Resources, VpcStatus,
};

/// The kind of [`super::AWS_CLUSTERS`].
#[derive(Debug)]
pub enum AwsCluster {}

impl Schema for AwsCluster {
    type Body = AwsClusterBody;
    type Status = AwsClusterStatus;
}

/// What an AWSCluster has beside metadata and status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AwsClusterBody {
    /// What is wanted.
    #[serde(default)]
    pub spec: AwsClusterSpec,
}

/// The fields that somebody reads or writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsClusterSpec {
    /// The region.
    pub region: String,
    /// The key pair of the bastion; an empty text is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_key_name: Option<String>,
    /// Tags of every resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_tags: BTreeMap<String, String>,
    /// The network, in the words of v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The network, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_spec: Option<Network>,
    /// The load balancer of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_load_balancer: Option<LoadBalancer>,
    /// The bastion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Bastion>,
    /// Whose credentials are used, in upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<Value>,
    /// Where clients reach the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
    /// Fields of upstream, some of which are not acted upon.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

impl AwsClusterSpec {
    /// The network, in whichever words.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref().or(self.network_spec.as_ref())
    }
}

/// A network.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Network {
    /// The VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc: Option<Vpc>,
    /// The subnets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    /// How private subnets reach the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat_gateways: Option<NatGateways>,
    /// What the network of Pods needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cni: Option<Cni>,
    /// Security groups that are used as they are, by role and id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub security_group_overrides: BTreeMap<String, String>,
    /// More rules for the control plane.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_control_plane_ingress_rules: Vec<IngressRule>,
    /// More rules for the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_node_ingress_rules: Vec<IngressRule>,
    /// Who may reach node ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_port_ingress_rule_cidr_blocks: Vec<String>,
}

/// A VPC.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Vpc {
    /// Of one that exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its CIDR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr_block: Option<String>,
    /// Fields of upstream, some of which are not acted upon.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// A subnet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subnet {
    /// `subnet-…` of one that exists, or the name of a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its CIDR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr_block: Option<String>,
    /// Its zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Whether it has a route to the internet gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_public: Option<bool>,
    /// More tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Fields of upstream, some of which are not acted upon.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// NAT gateways.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NatGateways {
    /// `PerAZ`, `Single` or `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Zone of the single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
}

/// The network of Pods.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cni {
    /// Ports between control plane and nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cni_ingress_rules: Option<Vec<IngressRule>>,
}

/// A rule of a security group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IngressRule {
    /// For people.
    pub description: String,
    /// Protocol.
    pub protocol: String,
    /// First port.
    pub from_port: i32,
    /// Last port.
    pub to_port: i32,
    /// Addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cidr_blocks: Vec<String>,
    /// IPv6 addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipv6_cidr_blocks: Vec<String>,
    /// Security groups, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_security_group_ids: Vec<String>,
    /// Security groups of the cluster, by role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_security_group_roles: Vec<String>,
    /// The public addresses of the NAT gateways.
    #[serde(rename = "natGatewaysIPsSource", skip_serializing_if = "Option::is_none")]
    pub nat_gateways_ips_source: Option<bool>,
}

/// A load balancer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// `classic`, `nlb` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_type: Option<String>,
    /// Every node of it serves all zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_zone_load_balancing: Option<bool>,
    /// Its subnets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// What an instance is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_protocol: Option<String>,
    /// How an instance is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// More security groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_security_groups: Vec<String>,
    /// Who may reach it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingress_rules: Vec<IngressRule>,
    /// `None` or `Enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_resolution_check: Option<String>,
    /// Instances see the address of the client.
    #[serde(rename = "preserveClientIP", skip_serializing_if = "Option::is_none")]
    pub preserve_client_ip: Option<bool>,
    /// Fields of upstream, some of which are not acted upon.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// A health check.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HealthCheck {
    /// What HTTP asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Seconds from check to check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// Seconds until a check counts as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Checks in a row until an instance is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_count: Option<u32>,
    /// Checks in a row until it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_threshold_count: Option<u32>,
}

/// A bastion.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bastion {
    /// There is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Who may reach it.
    #[serde(rename = "allowedCIDRBlocks", skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidr_blocks: Vec<String>,
    /// Nobody may reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_ingress_rules: Option<bool>,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ami: Option<String>,
}
