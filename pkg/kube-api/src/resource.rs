//! [`Resource`]: which collection of the API an object belongs to, as a value, so that a kind can
//! be learnt at run time. Informers and writers build their paths from it.

use std::borrow::Cow;

/// One kind of object and where the API server keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group, empty for core.
    pub group: Cow<'static, str>,
    /// API version inside the group, such as `v1`.
    pub version: Cow<'static, str>,
    /// Kind as in manifests, such as `Node`.
    pub kind: Cow<'static, str>,
    /// Plural resource name, such as `nodes`; the label of metrics and logs.
    pub plural: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// The kind that makes custom kinds.
    pub const CRDS: Self = Self::cluster(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );

    /// A kind whose objects belong to the whole cluster.
    pub const fn cluster(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced: false,
        }
    }

    /// A kind whose objects live in namespaces.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        let mut resource = Self::cluster(group, version, kind, plural);
        resource.namespaced = true;
        resource
    }

    /// `group/version`, or `version` in core: what a manifest calls `apiVersion`.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Path of the collection: of one namespace, or of the whole cluster.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let (version, plural) = (self.api_version(), &self.plural);
        match namespace {
            Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{plural}"),
            None => format!("/{root}/{version}/{plural}"),
        }
    }

    /// Path of the object with this key: its name, or `namespace/name`.
    pub fn object_path(&self, key: &str) -> String {
        match key.split_once('/') {
            Some((namespace, name)) => format!("{}/{name}", self.collection_path(Some(namespace))),
            None => format!("{}/{key}", self.collection_path(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: Resource = Resource::cluster("", "v1", "Node", "nodes");
    const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");

    #[test]
    fn core_stands_under_api_and_groups_under_apis() {
        assert_eq!(NODES.api_version(), "v1");
        assert_eq!(NODES.collection_path(None), "/api/v1/nodes");
        assert_eq!(LEASES.api_version(), "coordination.k8s.io/v1");
        assert_eq!(LEASES.collection_path(None), "/apis/coordination.k8s.io/v1/leases");
    }

    #[test]
    fn a_key_with_a_namespace_leads_into_that_namespace() {
        assert_eq!(NODES.object_path("n1"), "/api/v1/nodes/n1");
        assert_eq!(
            LEASES.object_path("kube-system/l"),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"
        );
    }
}
