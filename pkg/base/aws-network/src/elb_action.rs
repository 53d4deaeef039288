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
