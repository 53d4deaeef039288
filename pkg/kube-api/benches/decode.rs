//! Time of one watch line: `cargo bench -p model`. Target: 7 µs for a Node of 3.4 KiB.
//!
//! The shape is what a kubelet leaves behind: labels, annotations, managedFields, capacity,
//! conditions, nodeInfo and as many images as fill the size.

#![allow(clippy::print_stdout, reason = "the table it prints is what a benchmark is for")]

use std::hint::black_box;
use std::time::Instant;

use kube_api::Node;
use serde::Deserialize;
use serde_json::json;

const ROUNDS: u32 = 200_000;

#[derive(Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
enum Line {
    Modified(Node),
}

fn main() {
    for size in [1_800, 3_480, 6_144] {
        let line = watch_line(size);
        let started = Instant::now();
        for _ in 0..ROUNDS {
            let read: Result<Line, _> = serde_json::from_slice(black_box(line.as_bytes()));
            let Ok(Line::Modified(node)) = read else {
                println!("the line is unreadable: {line}");
                return;
            };
            black_box(node);
        }
        let each = started.elapsed() / ROUNDS;
        println!("one watch line of {} bytes: {each:?}", line.len());
    }
}

fn watch_line(size: usize) -> String {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
               "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "KubeletHasSufficient",
               "message": "kubelet has sufficient of it available"})
    };
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(condition);
    let mut node = json!({"type": "MODIFIED", "object": {
        "kind": "Node", "apiVersion": "v1",
        "metadata": {
            "name": "worker-00042.example.internal", "uid": "5b2f9c0e-0d4e-4a57-9d5c-6f7a8b9c0d1e",
            "resourceVersion": "123456", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": "worker-00042", "topology.kubernetes.io/zone": "z-a"},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {".": {},
                "f:kubernetes.io/arch": {}, "f:kubernetes.io/os": {}}}, "f:status": {}}}],
        },
        "spec": {"podCIDR": "10.0.42.0/24", "podCIDRs": ["10.0.42.0/24"]},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": conditions,
            "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Linux", "architecture": "amd64"},
            "images": [],
        },
    }});
    for image in 0.. {
        let left = size.saturating_sub(node.to_string().len());
        if left < 100 {
            break;
        }
        let name = format!("registry.example/{image}/{}", "a".repeat(left.min(150) - 80));
        if let Some(images) = node["object"]["status"]["images"].as_array_mut() {
            images.push(json!({"names": [name], "sizeBytes": 1_234_567}));
        }
    }
    node.to_string()
}
