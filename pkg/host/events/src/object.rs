//! What an event is about, and how serious it is.
//!
//! Made by controllers, consumed by [`crate::Recorder`].

/// The object of an event (`involvedObject`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Group and version, as `v1` or `coordination.k8s.io/v1`.
    pub api_version: String,
    /// Kind, as `Node`.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects, whose events land in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`; empty when unknown, and then `kubectl describe` may not show the event.
    pub uid: String,
}

impl ObjectRef {
    /// A Node.
    pub fn node(name: &str, uid: &str) -> Self {
        Self::new("v1", "Node", "", name, uid)
    }

    /// A Lease.
    pub fn lease(namespace: &str, name: &str, uid: &str) -> Self {
        Self::new("coordination.k8s.io/v1", "Lease", namespace, name, uid)
    }

    /// Any object; `namespace` is empty for cluster-scoped ones.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    /// Where events about this object are kept (rule:events-live-beside-their-object).
    pub(crate) fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }

    /// `namespace/name`, or the name alone: for logs.
    pub(crate) fn display_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

/// How serious an event is; Kubernetes knows these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something happened that is part of normal operation.
    Normal,
    /// Something an operator may have to act upon.
    Warning,
}

impl EventType {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
