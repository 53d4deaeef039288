//! [`Kind`]: what an informer is to find and keep, known when compiled or learnt at run time;
//! [`Resource`]: the collection of the API in which it is. Informers and writers build their paths
//! from it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::protobuf::Malformed;

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

/// The name in labels of metrics and in logs: `nodes`, `leases.coordination.k8s.io`,
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

/// Reads a type from its protobuf message.
pub type FromProtobuf<T> = fn(&[u8]) -> Result<T, Malformed>;

/// Effect of an object that cannot be decoded on its collection (rule:strict-or-tolerant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// The collection waits until the object can be read: it may hold what others must not get.
    Strict,
    /// The object is skipped and its last good copy kept; the others go on.
    Tolerant,
}

/// How much of an object the API server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it; what the type does not name is skipped while reading.
    Object,
    /// `metadata` only, as a `PartialObjectMetadata`.
    Metadata,
}

/// An object that an informer can list, watch and keep.
///
/// `Deserialize` reads the object as the API server sends it, in JSON.
pub trait Cached: DeserializeOwned + Send + Sync + 'static {
    /// Whether one object that cannot be decoded fails its whole collection.
    const DECODING: Decoding;

    /// The representation that is requested from the API server.
    const VIEW: View = View::Object;

    /// Reads the object from its protobuf message, without the envelope. `None`, the default: the
    /// API server has no protobuf of this type, as of all custom resources.
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = None;

    /// Name, or `namespace/name` for a namespaced object. Unique among the live objects.
    fn key(&self) -> &Arc<str>;

    /// UID. A name that comes back with another UID is another object.
    fn uid(&self) -> &str;

    /// Takes over from an older copy what both have alike, so that whoever keeps a part of one does
    /// not keep a second one alive.
    fn share_with(&mut self, _older: &Self) {}

    /// Notes whether the selector of its source selects the object, where the source has one.
    fn set_selected(&mut self, _is_selected: bool) {}

    /// Version of this copy; of two copies of one object the higher one is newer.
    fn resource_version(&self) -> u64;
}

/// Holds the text of `older` in place of an equal one.
pub(crate) fn share(text: &mut Arc<str>, older: &Arc<str>) {
    if text == older {
        text.clone_from(older);
    }
}

/// A type whose kind is known when the program is compiled.
pub trait StaticKind: Cached {
    /// Where the API server serves it.
    const KIND: Kind;
}

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
