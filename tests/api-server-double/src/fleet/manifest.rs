//! [`manifest`]: Nodes as a kubelet registers them, and as they are in clusters that have run for
//! some time.

use serde_json::{Value, json};

/// How much a Node holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeSize {
    /// What a kubelet writes when it registers: about 3.4 KiB as the API server sends it.
    #[default]
    Registered,
    /// What kubelets, node-feature-discovery and health checks have written after some months: about
    /// 50 KB, most of it managedFields, images, labels and conditions.
    Grown,
}

/// The parts in which Nodes differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) version: u64,
    pub(super) cidr: Option<&'a str>,
}

const REGISTERED: &str = include_str!("node.json");

const LABELS: usize = 183;
const ANNOTATIONS: usize = 40;
const CONDITIONS: usize = 34;
const IMAGES: usize = 50;

/// The manifest of a Node without managedFields, which the API server adds.
///
/// # Panics
/// Never: the manifest is JSON.
pub fn manifest(size: NodeSize, name: &str) -> Value {
    let mut node: Value =
        serde_json::from_str(&REGISTERED.replace("NODE_NAME", name)).expect("it is JSON");
    if size == NodeSize::Grown {
        grow(&mut node);
    }
    node
}

fn grow(node: &mut Value) {
    let metadata = &mut node["metadata"];
    for number in length(&metadata["labels"])..LABELS {
        let key = format!("feature.node.kubernetes.io/cpu-FLAG{number:03}");
        metadata["labels"][key] = "true".into();
    }
    for number in length(&metadata["annotations"])..ANNOTATIONS {
        let key = format!("monitoring.example.com/report-{number:02}");
        metadata["annotations"][key] = format!("{number:070}").into();
    }
    let status = &mut node["status"];
    let conditions = status["conditions"].as_array_mut().expect("a list");
    for number in conditions.len()..CONDITIONS {
        let kind = format!("AcceleratorHealthCheck{number:02}");
        let message = format!("no event of health check {number:02} was found in the kernel log");
        conditions.push(json!({
            "type": kind, "status": "False", "reason": "AcceleratorIsHealthy", "message": message,
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }));
    }
    let images = status["images"].as_array_mut().expect("a list");
    for number in images.len()..IMAGES {
        let image = format!("registry.example.com/platform/observability-agents/part-{number:02}");
        let names = [format!("{image}@sha256:{number:064x}"), format!("{image}:v1.20.{number}")];
        images.push(json!({"names": names, "sizeBytes": 100_000_000 + number}));
    }
}

fn length(map: &Value) -> usize {
    map.as_object().map_or(0, serde_json::Map::len)
}

/// The managedFields that the API server keeps for a manifest: the kubelet owns every field.
pub(crate) fn managed_fields(node: &Value) -> Value {
    let names = |map: &Value| -> Value {
        let keys = map.as_object().into_iter().flatten().map(|(key, _)| (f(key), json!({})));
        Value::Object([(".".to_owned(), json!({}))].into_iter().chain(keys).collect())
    };
    let keyed = |list: &Value| -> Value {
        let items = list
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| (format!("k:{}", json!({"type": item["type"]})), names(item)));
        Value::Object([(".".to_owned(), json!({}))].into_iter().chain(items).collect())
    };
    let (metadata, status) = (&node["metadata"], &node["status"]);
    let fields = json!({
        "f:metadata": {
            "f:annotations": names(&metadata["annotations"]),
            "f:labels": names(&metadata["labels"]),
        },
        "f:status": {
            "f:addresses": keyed(&status["addresses"]),
            "f:allocatable": names(&status["allocatable"]),
            "f:capacity": names(&status["capacity"]),
            "f:conditions": keyed(&status["conditions"]),
            "f:images": {},
            "f:nodeInfo": names(&status["nodeInfo"]),
        },
    });
    json!([{
        "manager": "kubelet", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
    }])
}

fn f(key: &str) -> String {
    format!("f:{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_node_has_the_parts_of_real_ones() {
        let mut node = manifest(NodeSize::Grown, "worker-1");
        node["metadata"]["managedFields"] = managed_fields(&node);
        let length = |part: &Value| part.to_string().len();
        let (metadata, status) = (&node["metadata"], &node["status"]);
        for (part, kilobytes) in [
            (&metadata["managedFields"], 15..19),
            (&status["images"], 11..13),
            (&status["conditions"], 7..10),
            (&metadata["labels"], 8..10),
            (&metadata["annotations"], 3..5),
            (&node, 48..52),
        ] {
            let found = length(part) / 1000;
            assert!(kilobytes.contains(&found), "{found} KB, not {kilobytes:?}");
        }
        assert!(length(&manifest(NodeSize::Registered, "worker-1")) < 3500);
    }
}
