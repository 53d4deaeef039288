//! [`Call`]: a request as the API server reads it; [`Refusal`]: an answer that refuses it.

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use serde_json::{Value, json};

use crate::store::Key;

/// A kind that the server has.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Plural name.
    pub resource: &'static str,
    /// Kind of one object.
    pub kind: &'static str,
    /// Group and version of its objects.
    pub api_version: &'static str,
    prefix: &'static str,
    /// Whether its objects are in namespaces.
    pub(crate) is_namespaced: bool,
}

const KINDS: [Kind; 11] = [
    Kind::core("nodes", "Node", false),
    Kind::core("events", "Event", true),
    Kind::core("configmaps", "ConfigMap", true),
    Kind::core("secrets", "Secret", true),
    Kind {
        resource: "customresourcedefinitions",
        kind: "CustomResourceDefinition",
        api_version: "apiextensions.k8s.io/v1",
        prefix: "/apis/apiextensions.k8s.io/v1/",
        is_namespaced: false,
    },
    Kind {
        resource: "kubefedclusters",
        kind: "KubeFedCluster",
        api_version: "core.kubefed.io/v1beta1",
        prefix: "/apis/core.kubefed.io/v1beta1/",
        is_namespaced: true,
    },
    Kind {
        resource: "clustercidrs",
        kind: "ClusterCIDR",
        api_version: "networking.x-k8s.io/v1",
        prefix: "/apis/networking.x-k8s.io/v1/",
        is_namespaced: false,
    },
    Kind {
        resource: "clusters",
        kind: "Cluster",
        api_version: "cluster.x-k8s.io/v1beta2",
        prefix: "/apis/cluster.x-k8s.io/v1beta2/",
        is_namespaced: true,
    },
    Kind {
        resource: "awsclusters",
        kind: "AWSCluster",
        api_version: "infrastructure.cluster.x-k8s.io/v1beta2",
        prefix: "/apis/infrastructure.cluster.x-k8s.io/v1beta2/",
        is_namespaced: true,
    },
    // Infrastructure that another program makes.
    Kind {
        resource: "otherclusters",
        kind: "OtherCluster",
        api_version: "infrastructure.cluster.x-k8s.io/v1beta2",
        prefix: "/apis/infrastructure.cluster.x-k8s.io/v1beta2/",
        is_namespaced: true,
    },
    Kind {
        resource: "leases",
        kind: "Lease",
        api_version: "coordination.k8s.io/v1",
        prefix: "/apis/coordination.k8s.io/v1/",
        is_namespaced: true,
    },
];

impl Kind {
    const fn core(resource: &'static str, kind: &'static str, is_namespaced: bool) -> Self {
        Self { resource, kind, api_version: "v1", prefix: "/api/v1/", is_namespaced }
    }

    /// The kinds of a group, as discovery has them; `None` for a path of no group.
    pub(crate) fn served_at(path: &str) -> Option<Vec<Self>> {
        let version = path.strip_prefix("/apis/")?;
        let kinds: Vec<_> = KINDS.into_iter().filter(|it| it.api_version == version).collect();
        (!kinds.is_empty()).then_some(kinds)
    }

    /// The version of a group, for its path; `None` for a path of no group.
    pub(crate) fn version_at(path: &str) -> Option<&'static str> {
        let group = path.strip_prefix("/apis/")?;
        let versions = KINDS.iter().filter_map(|it| it.api_version.split_once('/'));
        versions.into_iter().find_map(|(name, version)| (name == group).then_some(version))
    }

    /// Plural and group, as messages have them.
    fn in_messages(self) -> String {
        match self.api_version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.resource),
            None => self.resource.to_owned(),
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The HTTP method.
    pub method: Method,
    /// Path without query.
    pub path: String,
    /// Parameters in their order.
    pub query: Vec<(String, String)>,
    /// The header `Accept`.
    pub accept: String,
    /// The header `Content-Type`.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
}

/// What of the API a path names.
#[derive(Clone, Debug)]
pub struct Target {
    /// The kind.
    pub kind: Kind,
    /// The object; its name is empty for a collection.
    pub key: Key,
    /// Such as `status`, or empty.
    pub subresource: String,
}

impl Call {
    /// Reads the head of a request.
    pub fn new(head: &Parts, body: Bytes) -> Self {
        let header = |name: &str| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let query = head.uri.query().unwrap_or_default();
        Self {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            accept: header("accept"),
            content_type: header("content-type"),
            body,
        }
    }

    /// A parameter, empty when it is absent.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Whether it asks for a watch.
    pub fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), "true" | "1")
    }

    /// Whether it writes an object that is no Lease.
    pub(crate) fn changes_objects(&self) -> bool {
        self.method != Method::GET && self.target().is_some_and(|it| it.kind.resource != "leases")
    }

    /// Whether only metadata is asked for.
    pub fn wants_metadata(&self) -> bool {
        self.accept.contains("as=PartialObjectMetadata")
    }

    /// The body, null when it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What the path names; `None` for what the server does not have.
    pub fn target(&self) -> Option<Target> {
        KINDS.iter().find_map(|kind| {
            let rest = self.path.strip_prefix(kind.prefix)?;
            let (namespace, rest) = match rest.strip_prefix("namespaces/") {
                Some(rest) if kind.is_namespaced => rest.split_once('/')?,
                _ => ("", rest),
            };
            let mut parts = rest.split('/');
            if parts.next() != Some(kind.resource) {
                return None;
            }
            let (name, subresource) = (parts.next(), parts.next());
            let (resource, namespace) = (kind.resource, namespace.to_owned());
            let key = Key { resource, namespace, name: name.unwrap_or_default().to_owned() };
            let subresource = subresource.unwrap_or_default().to_owned();
            Some(Target { kind: *kind, key, subresource })
        })
    }
}

/// A `Status` of failure.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Reason for machines.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
    /// Field and message of each invalid value.
    pub causes: Vec<(&'static str, String)>,
    /// Kind and name that it is about.
    about: (String, String),
}

impl Refusal {
    /// A refusal with this message.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let about = Default::default();
        Self { code, reason, message: message.into(), causes: Vec::new(), about }
    }

    /// The refusal of a request for an object: 404, 409 or 422.
    pub fn about(target: &Target, code: u16, reason: &'static str, why: &str) -> Self {
        let (kind, name) = (target.kind.in_messages(), &target.key.name);
        let message = match reason {
            "NotFound" => format!("{kind} {name:?} not found"),
            "AlreadyExists" => format!("{kind} {name:?} already exists"),
            _ => format!("Operation cannot be fulfilled on {kind} {name:?}: {why}"),
        };
        let about = (target.kind.resource.to_owned(), name.clone());
        Self { about, ..Self::new(code, reason, message) }
    }

    /// The refusal of invalid fields.
    pub fn invalid(target: &Target, causes: Vec<(&'static str, String)>) -> Self {
        let list = causes.iter().map(|(field, why)| format!("{field}: {why}"));
        let list = list.collect::<Vec<_>>().join(", ");
        let message = format!("{} {:?} is invalid: {list}", target.kind.kind, target.key.name);
        let about = (target.kind.resource.to_owned(), target.key.name.clone());
        Self { causes, about, ..Self::new(422, "Invalid", message) }
    }

    /// The object of the answer.
    pub fn status(&self) -> Value {
        let causes = self.causes.iter().map(|(field, message)| {
            json!({"reason": "FieldValueInvalid", "field": field, "message": message})
        });
        let (kind, name) = &self.about;
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": self.code, "reason": self.reason, "message": self.message,
            "details": {"kind": kind, "name": name, "causes": causes.collect::<Vec<_>>()},
        })
    }
}
