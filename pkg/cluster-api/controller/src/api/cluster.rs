//! [`Cluster`] in all its dialects, the [`Machine`]s that belong to it, and the [`Endpoint`] of its
//! API server.

use std::fmt;

use objects::{Object, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Condition;
use super::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use super::{Dialect, Reference};

/// The kind of [`super::CLUSTERS`].
#[derive(Debug)]
pub(crate) enum Cluster {}

impl Schema for Cluster {
    type Body = ClusterBody;
    type Status = ClusterStatus;
    const TELLS_VERSION: Option<&'static str> = Some("infrastructureRef");
}

/// A Cluster without metadata and status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClusterBody {
    #[serde(default)]
    pub(crate) spec: ClusterSpec,
}

/// The fields of the spec that somebody reads or writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterSpec {
    /// Nothing is done with the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_network: Option<ClusterNetwork>,
    /// Where clients reach the API server, in the words of v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_endpoint: Option<Endpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_ref: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) infrastructure_ref: Option<Reference>,
    /// Managed topologies, which this program does not support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topology: Option<Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_server_port: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pods: Option<NetworkRanges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) services: Option<NetworkRanges>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NetworkRanges {
    pub(crate) cidr_blocks: Vec<String>,
}

/// The fields of the status that somebody reads or writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    /// Summary for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    /// Where clients reach the API server, in the words of v1alpha2.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_endpoints: Vec<Endpoint>,
    /// v1alpha2's word for [`Initialization::infrastructure_provisioned`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) infrastructure_ready: Option<bool>,
    /// v1alpha2's word for [`Initialization::control_plane_initialized`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_initialized: Option<bool>,
    /// v1beta2: `status.initialization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initialization: Option<Initialization>,
    /// Why it cannot go on without help; an early word of v1alpha2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<String>,
    /// The later word for [`ClusterStatus::error_reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_reason: Option<String>,
    /// The later word for [`ClusterStatus::error_message`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_message: Option<String>,
    /// Zones, as the infrastructure says them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure_domains: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
}

/// Milestones, which stay true once they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Initialization {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) infrastructure_provisioned: Option<bool>,
    /// A Machine of the control plane has had a Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_initialized: Option<bool>,
}

impl ClusterSpec {
    /// The dialect that earlier releases took from the form of the references.
    fn dialect_by_form(&self) -> Dialect {
        let first = self.infrastructure_ref.as_ref().or(self.control_plane_ref.as_ref());
        match first {
            Some(reference) => reference.dialect_by_form(),
            None if self.topology.is_some() => Dialect::V1Beta2,
            None => Dialect::V1Alpha2,
        }
    }
}

impl ClusterStatus {
    /// The infrastructure was ready once, in either dialect.
    pub(crate) fn infrastructure_was_ready(&self) -> bool {
        let newer = self.initialization.as_ref().and_then(|it| it.infrastructure_provisioned);
        self.infrastructure_ready == Some(true) || newer == Some(true)
    }

    /// A Machine of the control plane has had a Node, in either dialect.
    pub(crate) fn control_plane_was_initialized(&self) -> bool {
        let newer = self.initialization.as_ref().and_then(|it| it.control_plane_initialized);
        self.control_plane_initialized == Some(true) || newer == Some(true)
    }
}

/// In which dialect a Cluster was written (`rule:the-dialect-is-remembered`).
pub(crate) fn dialect(cluster: &Object<Cluster>) -> Dialect {
    let spec = &cluster.body.spec;
    let remembered = cluster.metadata.annotations.get(super::DIALECT_ANNOTATION);
    if let Some(dialect) = remembered.and_then(|name| Dialect::from_name(name)) {
        return dialect;
    }
    if cluster.metadata.has_finalizer(super::CLUSTER_FINALIZER) {
        return spec.dialect_by_form();
    }
    let reference = spec.infrastructure_ref.as_ref().and_then(|it| it.api_version.as_deref());
    Dialect::of_version(cluster.written_as.as_deref().or(reference).unwrap_or_default())
}

/// Where clients reach the API server of a Cluster, once that is known. The published endpoint follows
/// that of the spec.
pub(crate) fn endpoint(cluster: &Object<Cluster>) -> Option<&Endpoint> {
    let published = cluster.status.api_endpoints.first();
    published.or(cluster.body.spec.control_plane_endpoint.as_ref()).filter(|it| it.is_set())
}

/// Whether the spec or an annotation pauses a Cluster. A user who moves or mends its objects relies
/// on no write to any of them but the condition that says so.
pub(crate) fn is_paused(cluster: &Object<Cluster>) -> bool {
    cluster.body.spec.paused == Some(true)
        || cluster.metadata.annotations.contains_key(super::PAUSED_ANNOTATION)
}

/// A host and a port. Upstream writes an empty host for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: i32,
}

impl Endpoint {
    pub(crate) fn is_set(&self) -> bool {
        !self.host.is_empty() && self.port > 0
    }
}

/// `host:port` as in a URL: an IPv6 address stands in brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A Machine of any version: nothing of its spec is read.
#[derive(Debug)]
pub(crate) enum Machine {}

impl Schema for Machine {
    type Body = MachineBody;
    type Status = MachineStatus;

    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&[]);
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MachineBody {}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MachineStatus {
    /// The Node that it has become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_ref: Option<Value>,
}

/// Key of the Cluster that it belongs to.
pub(crate) fn cluster_key(machine: &Object<Machine>) -> Option<String> {
    let name = machine.metadata.labels.get(CLUSTER_NAME_LABEL)?;
    Some(format!("{}/{name}", machine.metadata.namespace()?))
}

/// Whether a Machine has the label of the control plane, whatever the value.
pub(crate) fn is_control_plane(machine: &Object<Machine>) -> bool {
    machine.metadata.labels.contains_key(CONTROL_PLANE_LABEL)
}

/// Whether a Machine proves that the control plane of its Cluster works: it is not being deleted and
/// has become a Node.
pub(crate) fn proves_control_plane(machine: &Object<Machine>) -> bool {
    let joined = machine.status.node_ref.as_ref().is_some_and(|node| !node.is_null());
    is_control_plane(machine) && joined && !machine.metadata.deleting()
}

#[cfg(test)]
mod endpoint_tests {
    use super::*;

    #[test]
    fn an_endpoint_reads_as_in_a_url_and_one_without_host_or_port_is_none() {
        let endpoint = |host: &str, port| Endpoint { host: host.to_owned(), port };
        assert_eq!(endpoint("h.example.org", 6443).to_string(), "h.example.org:6443");
        assert_eq!(endpoint("fd00::1", 443).to_string(), "[fd00::1]:443");
        assert!(endpoint("h", 1).is_set());
        assert!(!endpoint("", 1).is_set() && !endpoint("h", 0).is_set());
    }
}

#[cfg(test)]
mod machine_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_living_control_plane_machine_with_a_node_proves_the_control_plane() {
        let machine = |labels: Value, status: Value, deleted: Value| -> Object<Machine> {
            Object::read(json!({"metadata": {"name": "m", "namespace": "ns", "uid": "u",
                "resourceVersion": "1", "labels": labels, "deletionTimestamp": deleted},
                "spec": {"bootstrap": {"data": "c2VjcmV0"}}, "status": status}))
            .unwrap()
        };
        let node = json!({"nodeRef": {"name": "n1"}});
        let label =
            json!({"cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/cluster-name": "c"});
        let proof = machine(label.clone(), node.clone(), Value::Null);
        assert!(proves_control_plane(&proof));
        assert_eq!(cluster_key(&proof).as_deref(), Some("ns/c"));
        assert!(
            !proof.whole().to_string().contains("c2VjcmV0"),
            "the data for its start is not kept"
        );
        assert!(!proves_control_plane(&machine(json!({}), node.clone(), Value::Null)));
        assert!(!proves_control_plane(&machine(
            label.clone(),
            json!({"nodeRef": null}),
            Value::Null
        )));
        assert!(!proves_control_plane(&machine(label, node, json!("2026-01-01T00:00:00Z"))));
    }
}

#[cfg(test)]
mod tests;
