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
    /// ModifyListener.
    SetTargetGroup { listener: String, target_group: String },
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
