//! [`ElbAction`]: one write of the API of classic load balancers.

use crate::identity::Tags;
use crate::load_balancers::{ClassicAttributes, ClassicListener, HealthCheck, Scheme};

/// One write of the API of classic load balancers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the fields are the parameters of the call")]
pub enum ElbAction {
    /// CreateLoadBalancer; the scheme is sent when it is internal only.
    Create {
        vpc: String,
        name: String,
        scheme: Scheme,
        listeners: Vec<ClassicListener>,
        subnets: Vec<String>,
        groups: Vec<String>,
        tags: Tags,
    },
    /// ConfigureHealthCheck.
    ConfigureHealthCheck { name: String, check: HealthCheck },
    /// ModifyLoadBalancerAttributes.
    ModifyAttributes { name: String, attributes: ClassicAttributes },
    /// AttachLoadBalancerToSubnets.
    AttachSubnets { name: String, subnets: Vec<String> },
    /// DetachLoadBalancerFromSubnets.
    DetachSubnets { name: String, subnets: Vec<String> },
    /// ApplySecurityGroupsToLoadBalancer, the whole list.
    ApplyGroups { name: String, groups: Vec<String> },
    /// CreateLoadBalancerListeners.
    CreateListeners { name: String, listeners: Vec<ClassicListener> },
    /// DeleteLoadBalancerListeners.
    DeleteListeners { name: String, ports: Vec<u16> },
    /// AddTags.
    AddTags { name: String, tags: Tags },
    /// RemoveTags.
    RemoveTags { name: String, keys: Vec<String> },
    /// DeleteLoadBalancer.
    Delete { name: String },
}

impl ElbAction {
    /// AWS's name of the call.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CreateLoadBalancer",
            Self::ConfigureHealthCheck { .. } => "ConfigureHealthCheck",
            Self::ModifyAttributes { .. } => "ModifyLoadBalancerAttributes",
            Self::AttachSubnets { .. } => "AttachLoadBalancerToSubnets",
            Self::DetachSubnets { .. } => "DetachLoadBalancerFromSubnets",
            Self::ApplyGroups { .. } => "ApplySecurityGroupsToLoadBalancer",
            Self::CreateListeners { .. } => "CreateLoadBalancerListeners",
            Self::DeleteListeners { .. } => "DeleteLoadBalancerListeners",
            Self::AddTags { .. } => "AddTags",
            Self::RemoveTags { .. } => "RemoveTags",
            Self::Delete { .. } => "DeleteLoadBalancer",
        }
    }

    /// The name of the load balancer that it is about.
    pub(crate) fn subject(&self) -> &str {
        match self {
            Self::Create { name, .. }
            | Self::ConfigureHealthCheck { name, .. }
            | Self::ModifyAttributes { name, .. }
            | Self::AttachSubnets { name, .. }
            | Self::DetachSubnets { name, .. }
            | Self::ApplyGroups { name, .. }
            | Self::CreateListeners { name, .. }
            | Self::DeleteListeners { name, .. }
            | Self::AddTags { name, .. }
            | Self::RemoveTags { name, .. }
            | Self::Delete { name } => name,
        }
    }

    /// It takes something away.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::Delete { .. }
                | Self::DeleteListeners { .. }
                | Self::DetachSubnets { .. }
                | Self::RemoveTags { .. }
        )
    }
}
