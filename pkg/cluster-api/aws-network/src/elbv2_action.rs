//! [`ElbV2Action`]: one write of the API of the second generation of load balancers.

use crate::identity::Tags;
use crate::load_balancers::{HealthCheck, Scheme};

/// One write of the API of the second generation of load balancers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the fields are the parameters of the call, ARNs throughout")]
pub enum ElbV2Action {
    /// CreateLoadBalancer of the type `network`.
    Create {
        vpc: String,
        name: String,
        scheme: Scheme,
        subnets: Vec<String>,
        groups: Vec<String>,
        tags: Tags,
    },
    /// ModifyLoadBalancerAttributes `load_balancing.cross_zone.enabled`.
    SetCrossZone { load_balancer: String, enabled: bool },
    /// SetSubnets, the whole list.
    SetSubnets { load_balancer: String, subnets: Vec<String> },
    /// SetSecurityGroups, the whole list.
    SetGroups { load_balancer: String, groups: Vec<String> },
    /// CreateTargetGroup for instances, TCP.
    CreateTargetGroup { vpc: String, name: String, port: u16, check: HealthCheck, tags: Tags },
    /// ModifyTargetGroup.
    ConfigureHealthCheck { target_group: String, check: HealthCheck },
    /// ModifyTargetGroupAttributes `preserve_client_ip.enabled`.
    SetPreserveClientIp { target_group: String, enabled: bool },
    /// CreateListener, TCP.
    CreateListener { load_balancer: String, port: u16, target_group: String },
    /// DeleteListener.
    DeleteListener { listener: String },
    /// AddTags.
    AddTags { arns: Vec<String>, tags: Tags },
    /// RemoveTags.
    RemoveTags { arns: Vec<String>, keys: Vec<String> },
    /// DeleteLoadBalancer.
    Delete { load_balancer: String },
    /// DeleteTargetGroup.
    DeleteTargetGroup { target_group: String },
}

impl ElbV2Action {
    /// AWS's name of the call.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CreateLoadBalancer",
            Self::SetCrossZone { .. } => "ModifyLoadBalancerAttributes",
            Self::SetSubnets { .. } => "SetSubnets",
            Self::SetGroups { .. } => "SetSecurityGroups",
            Self::CreateTargetGroup { .. } => "CreateTargetGroup",
            Self::ConfigureHealthCheck { .. } => "ModifyTargetGroup",
            Self::SetPreserveClientIp { .. } => "ModifyTargetGroupAttributes",
            Self::CreateListener { .. } => "CreateListener",
            Self::DeleteListener { .. } => "DeleteListener",
            Self::AddTags { .. } => "AddTags",
            Self::RemoveTags { .. } => "RemoveTags",
            Self::Delete { .. } => "DeleteLoadBalancer",
            Self::DeleteTargetGroup { .. } => "DeleteTargetGroup",
        }
    }

    /// Name or ARN of what it is about; the first of several.
    pub(crate) fn subject(&self) -> &str {
        match self {
            Self::Create { name, .. } | Self::CreateTargetGroup { name, .. } => name,
            Self::SetCrossZone { load_balancer, .. }
            | Self::SetSubnets { load_balancer, .. }
            | Self::SetGroups { load_balancer, .. }
            | Self::CreateListener { load_balancer, .. }
            | Self::Delete { load_balancer } => load_balancer,
            Self::ConfigureHealthCheck { target_group, .. }
            | Self::SetPreserveClientIp { target_group, .. }
            | Self::DeleteTargetGroup { target_group } => target_group,
            Self::DeleteListener { listener } => listener,
            Self::AddTags { arns, .. } | Self::RemoveTags { arns, .. } => {
                arns.first().map_or("", String::as_str)
            }
        }
    }

    /// It takes something away.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::Delete { .. }
                | Self::DeleteListener { .. }
                | Self::DeleteTargetGroup { .. }
                | Self::RemoveTags { .. }
        )
    }
}
