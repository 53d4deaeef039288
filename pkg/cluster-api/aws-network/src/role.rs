//! [`Role`]: what a security group of the cluster is for.

use std::fmt;

/// What a security group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The bastion.
    Bastion,
    /// Instances of the control plane.
    ControlPlane,
    /// Worker nodes.
    Node,
    /// The load balancer of the API server.
    ApiServerLb,
    /// Left to Kubernetes' cloud provider, for its load balancers.
    Lb,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] =
        [Self::Bastion, Self::ControlPlane, Self::Node, Self::ApiServerLb, Self::Lb];

    /// The word in names and tags, which is upstream's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bastion => "bastion",
            Self::ControlPlane => "controlplane",
            Self::Node => "node",
            Self::ApiServerLb => "apiserver-lb",
            Self::Lb => "lb",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
