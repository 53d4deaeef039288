//! Resident memory of a cached Node, in a process of its own so that nothing else counts
//! (acceptance: at most 2 KB at 20,000 nodes of 6 KB).

#![allow(clippy::unwrap_used, reason = "clippy does not know the functions of a test for tests")]

use std::convert::Infallible;
use std::fs;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use informer::{Informer, InformerMetrics};
use kube::Client;
use kube::client::Body;
use kube_api::Node;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const NODES: usize = 20_000;
const JSON_BYTES: usize = 6_000;
const MOST_PER_NODE: usize = 2_048;

#[tokio::test]
async fn a_cached_node_of_six_kilobytes_takes_at_most_two() {
    let informer = informer_of_a_large_cluster();
    let before = resident();
    let stop = CancellationToken::new();
    let (running, stopped) = (informer.clone(), stop.clone());
    let task = tokio::spawn(async move { running.run(stopped).await });
    tokio::time::timeout(Duration::from_secs(300), informer.synced()).await.unwrap();
    let each = resident().saturating_sub(before) / NODES;
    assert_eq!(informer.len(), NODES);
    println!("{each} bytes resident per cached Node");
    assert!(each <= MOST_PER_NODE, "{each} bytes per Node");
    assert!(each >= size_of::<Node>(), "{each} bytes per Node cannot be all of it");
    stop.cancel();
    task.await.unwrap();
}

/// A server that makes each line when it is asked for, so that its own memory stays small.
fn informer_of_a_large_cluster() -> Informer<Node> {
    let template = node_template();
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        assert!(query.contains("sendInitialEvents=true"), "{query}");
        let template = template.clone();
        let nodes = stream::iter(0..NODES).map(move |number| node_line(&template, number));
        let end = json!({"type": "BOOKMARK", "object": {"metadata": {
            "resourceVersion": "900000", "annotations": {"k8s.io/initial-events-end": "true"}}}});
        // Cut as HTTP/2 cuts it, so that lines straddle frames.
        let frames = nodes
            .chain(stream::once(async move { format!("{end}\n") }))
            .flat_map(|line| {
                let halves = [line[..line.len() / 2].to_owned(), line[line.len() / 2..].to_owned()];
                stream::iter(halves.map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from(part)))))
            })
            .chain(stream::pending());
        async { Ok::<_, Infallible>(Response::new(StreamBody::new(frames))) }
    });
    let metrics = InformerMetrics::new(&prometheus::Registry::new(), "test").unwrap();
    Informer::of_all(Client::new(service, "default"), &metrics)
}

fn node_line(template: &str, number: usize) -> String {
    let line = template
        .replace("NAME", &format!("worker-{number:05}.example.internal"))
        .replace("UID", &format!("5b2f9c0e-0d4e-4a57-9d5c-6f7a8b{number:06}"))
        .replace("VERSION", &(100_000 + number).to_string())
        .replace("CIDR4", &format!("10.{}.{}.0/24", number / 256, number % 256))
        .replace("CIDR6", &format!("fd00:0:0:{number:x}::/64"));
    format!("{{\"type\":\"ADDED\",\"object\":{line}}}\n")
}

/// A dual-stack Node with what a kubelet leaves behind, padded with images.
fn node_template() -> String {
    let mut node = json!({
        "kind": "Node",
        "metadata": {
            "name": "NAME", "uid": "UID", "resourceVersion": "VERSION",
            "labels": {"kubernetes.io/hostname": "NAME", "kubernetes.io/os": "linux"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:images": {}}}}],
        },
        "spec": {"podCIDR": "CIDR4", "podCIDRs": ["CIDR4", "CIDR6"]},
        "status": {"images": []},
    });
    while node.to_string().len() < JSON_BYTES {
        let image: Value = json!({"names": ["registry.example/image".repeat(5)], "sizeBytes": 1});
        node["status"]["images"].as_array_mut().unwrap().push(image);
    }
    node.to_string()
}

fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
