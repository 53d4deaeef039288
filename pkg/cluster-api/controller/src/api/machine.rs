//! [`Machine`]: as much of a Machine as tells of its Cluster.

use objects::{Object, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};

/// A Machine of any version: nothing of its spec is read.
#[derive(Debug)]
pub enum Machine {}

impl Schema for Machine {
    type Body = MachineBody;
    type Status = MachineStatus;

    const KEPT_OF_SPEC: Option<&'static [&'static str]> = Some(&[]);
}

/// Nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MachineBody {}

/// What has become of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineStatus {
    /// The Node that it has become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<Value>,
}

/// Key of the Cluster that it belongs to.
pub fn cluster_key(machine: &Object<Machine>) -> Option<String> {
    let name = machine.metadata.labels.get(CLUSTER_NAME_LABEL)?;
    Some(format!("{}/{name}", machine.metadata.namespace()?))
}

/// It is of the control plane: the label is there, whatever its value.
pub fn is_control_plane(machine: &Object<Machine>) -> bool {
    machine.metadata.labels.contains_key(CONTROL_PLANE_LABEL)
}

/// It proves that the control plane of its Cluster has begun to work
/// (`rule:a-node-proves-the-control-plane`).
pub fn proves_control_plane(machine: &Object<Machine>) -> bool {
    let joined = machine.status.node_ref.as_ref().is_some_and(|node| !node.is_null());
    is_control_plane(machine) && joined && !machine.metadata.deleting()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// rule:a-node-proves-the-control-plane
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
