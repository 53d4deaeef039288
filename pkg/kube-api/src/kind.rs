//! [`Kind`]: what an informer is to find and keep, known when compiled or learnt at run time.

use std::borrow::Cow;
use std::fmt;

use crate::Resource;

/// A kind of objects, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Every API server serves it.
    BuiltIn(Resource),
    /// A custom resource in the version that its reader understands; perhaps not served.
    Custom(Resource),
    /// To be found by discovery, in the version that the server prefers of those that have it;
    /// perhaps not served.
    Named {
        /// API group.
        group: Cow<'static, str>,
        /// Kind as in manifests, such as `AWSMachineTemplate`.
        kind: Cow<'static, str>,
    },
}

impl Kind {
    /// A kind learnt at run time.
    pub fn named(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self::Named { group: Cow::Owned(group.into()), kind: Cow::Owned(kind.into()) }
    }

    /// API group, empty for core.
    pub fn group(&self) -> &str {
        match self {
            Self::BuiltIn(resource) | Self::Custom(resource) => &resource.group,
            Self::Named { group, .. } => group,
        }
    }

    /// API version; empty where the server chooses it.
    pub fn version(&self) -> &str {
        match self {
            Self::BuiltIn(resource) | Self::Custom(resource) => &resource.version,
            Self::Named { .. } => "",
        }
    }
}

/// As in labels of metrics and in logs: `nodes`, `leases.coordination.k8s.io`,
/// `AWSMachineTemplate.infrastructure.cluster.x-k8s.io`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::BuiltIn(resource) | Self::Custom(resource) => &resource.plural,
            Self::Named { kind, .. } => kind,
        };
        match self.group() {
            "" => f.write_str(name),
            group => write!(f, "{name}.{group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_labelled_by_its_name_and_its_group_if_it_has_one() {
        let nodes = Kind::BuiltIn(Resource::cluster("", "v1", "Node", "nodes"));
        let widgets = Resource::namespaced("example.io", "v1beta1", "Widget", "widgets");
        assert_eq!(nodes.to_string(), "nodes");
        assert_eq!(Kind::Custom(widgets).to_string(), "widgets.example.io");
        assert_eq!(Kind::named("example.io", "Gadget").to_string(), "Gadget.example.io");
    }

    #[test]
    fn a_kind_learnt_at_run_time_has_no_version_of_its_own() {
        let widgets = Resource::namespaced("example.io", "v1beta1", "Widget", "widgets");
        assert_eq!(Kind::BuiltIn(widgets.clone()).version(), "v1beta1");
        assert_eq!(Kind::Custom(widgets).version(), "v1beta1");
        assert_eq!(Kind::named("example.io", "Gadget").version(), "");
    }
}
