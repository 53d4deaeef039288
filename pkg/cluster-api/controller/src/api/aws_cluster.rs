//! [`AwsCluster`]: the union of its dialects. `aws_spec.rs` reads it into what both mean.

mod status;

use std::collections::BTreeMap;

use objects::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::aws_identity::IdentityReference;
use super::cluster::Endpoint;

pub(crate) use status::{
    AwsClusterStatus, BastionStatus, Created, NetworkStatus, PlanStatus, ProvisionedOnce,
    Resources, VpcStatus,
};

/// The kind of [`super::AWS_CLUSTERS`].
#[derive(Debug)]
pub(crate) enum AwsCluster {}

impl Schema for AwsCluster {
    type Body = AwsClusterBody;
    type Status = AwsClusterStatus;
}

/// An AWSCluster without metadata and status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AwsClusterBody {
    #[serde(default)]
    pub(crate) spec: AwsClusterSpec,
}

/// The fields that somebody reads or writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AwsClusterSpec {
    pub(crate) region: String,
    /// The key pair of the bastion; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ssh_key_name: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) additional_tags: BTreeMap<String, String>,
    /// The network, in the words of v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<Network>,
    /// The network, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_spec: Option<Network>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_load_balancer: Option<LoadBalancer>,
    /// A second load balancer of the API server, which is not its endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secondary_control_plane_load_balancer: Option<LoadBalancer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bastion: Option<Bastion>,
    /// The identity whose credentials are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity_ref: Option<IdentityReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_endpoint: Option<Endpoint>,
    /// Other fields of upstream; `aws_spec::unsupported` lists those without effect.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

impl AwsClusterSpec {
    /// The network, in whichever words.
    pub(crate) fn network(&self) -> Option<&Network> {
        self.network.as_ref().or(self.network_spec.as_ref())
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Network {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vpc: Option<Vpc>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) subnets: Vec<Subnet>,
    /// How private subnets reach the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nat_gateways: Option<NatGateways>,
    /// Security group rules for the Pod network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cni: Option<Cni>,
    /// Security groups that are used as they are, by role and id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) security_group_overrides: BTreeMap<String, String>,
    /// More rules for the control plane.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) additional_control_plane_ingress_rules: Vec<IngressRule>,
    /// More rules for the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) additional_node_ingress_rules: Vec<IngressRule>,
    /// CIDRs that may reach node ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) node_port_ingress_rule_cidr_blocks: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Vpc {
    /// The id of an existing VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cidr_block: Option<String>,
    /// The VPC has an IPv6 CIDR. `aws_spec::unsupported` lists the fields without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ipv6: Option<BTreeMap<String, Value>>,
    /// More CIDRs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) secondary_cidr_blocks: Vec<SecondaryCidrBlock>,
    /// Other fields of upstream; `aws_spec::unsupported` lists those without effect.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SecondaryCidrBlock {
    pub(crate) ipv4_cidr_block: String,
    /// Other fields, which are kept.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Subnet {
    /// `subnet-…` of one that exists, or the name of a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cidr_block: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) availability_zone: Option<String>,
    /// Whether it has a route to the internet gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_public: Option<bool>,
    /// Whether it has an IPv6 CIDR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_ipv6: Option<bool>,
    /// That CIDR; the next free one of the VPC where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ipv6_cidr_block: Option<String>,
    /// The type of its zone: `availability-zone`, `local-zone` or `wavelength-zone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone_type: Option<String>,
    /// The parent of an edge zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_zone_name: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tags: BTreeMap<String, String>,
    /// Other fields of upstream; `aws_spec::unsupported` lists those without effect.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NatGateways {
    /// `PerAZ`, `Single`, `None` or `Regional`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    /// Zone of the single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) availability_zone: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Cni {
    /// Ports between control plane and nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cni_ingress_rules: Option<Vec<IngressRule>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct IngressRule {
    pub(crate) description: String,
    pub(crate) protocol: String,
    pub(crate) from_port: i32,
    pub(crate) to_port: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cidr_blocks: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ipv6_cidr_blocks: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) source_security_group_ids: Vec<String>,
    /// Security groups of the cluster, by role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) source_security_group_roles: Vec<String>,
    #[serde(rename = "natGatewaysIPsSource", skip_serializing_if = "Option::is_none")]
    pub(crate) nat_gateways_ips_source: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LoadBalancer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// `internet-facing` or `internal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheme: Option<String>,
    /// `classic`, `nlb` or `disabled`.
    #[serde(rename = "loadBalancerType", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// Every node of it serves all zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cross_zone_load_balancing: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) subnets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) health_check_protocol: Option<String>,
    /// How an instance is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) health_check: Option<HealthCheck>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) additional_security_groups: Vec<String>,
    /// Ingress rules or CIDRs that are allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ingress_rules: Vec<IngressRule>,
    /// `None` or `Enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dns_resolution_check: Option<String>,
    /// Instances see the address of the client.
    #[serde(rename = "preserveClientIP", skip_serializing_if = "Option::is_none")]
    pub(crate) preserve_client_ip: Option<bool>,
    /// More ports of a network load balancer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) additional_listeners: Vec<AdditionalListener>,
    /// `ipv4` or `ipv6`.
    #[serde(rename = "targetGroupIPType", skip_serializing_if = "Option::is_none")]
    pub(crate) target_group_ip_type: Option<String>,
    /// Other fields of upstream; `aws_spec::unsupported` lists those without effect.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

/// A port of a network load balancer, with a target group of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AdditionalListener {
    pub(crate) port: i64,
    /// `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// `ipv4` or `ipv6`.
    #[serde(rename = "targetGroupIPType", skip_serializing_if = "Option::is_none")]
    pub(crate) target_group_ip_type: Option<String>,
    /// How an instance is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) health_check: Option<HealthCheck>,
    /// Other fields, which are kept.
    #[serde(flatten)]
    pub(crate) others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HealthCheck {
    /// Of an additional listener: `TCP`, `HTTP` or `HTTPS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// Of an additional listener: the port that is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interval_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u32>,
    /// Checks in a row until an instance is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threshold_count: Option<u32>,
    /// Checks in a row until it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unhealthy_threshold_count: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Bastion {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enabled: Option<bool>,
    /// Ingress rules or CIDRs that are allowed.
    #[serde(rename = "allowedCIDRBlocks", skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed_cidr_blocks: Vec<String>,
    /// Allow no ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disable_ingress_rules: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ami: Option<String>,
}
