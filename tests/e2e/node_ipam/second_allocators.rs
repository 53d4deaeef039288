//! Other programs that assign pod CIDRs, each known by the field manager as which it writes
//! (`rule:second-allocator-is-told`).

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::story::Story;

/// Field manager, and the label that the metric has for it.
const WRITERS: [(&str, &str); 7] = [
    ("kube-controller-manager", "kube-controller-manager"),
    ("aws-cloud-controller-manager", "cloud-controller-manager"),
    ("node-ipam-controller", "node-ipam-controller"),
    ("aws-ipam-controller", "aws-ipam-controller"),
    ("kops-controller", "kops-controller"),
    ("antrea-controller", "antrea-controller"),
    ("kubectl-create", "other"),
];

/// One look in ten seconds is made, so a writer that follows another waits for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn each_writer_is_reported_by_event_and_metric() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/16").await;
    for (index, (writer, label)) in WRITERS.into_iter().enumerate() {
        let (name, cidr) = (format!("n{index}"), format!("10.0.{index}.0/24"));
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
        }))
        .unwrap();
        let params = PostParams { field_manager: Some(writer.to_owned()), ..PostParams::default() };
        Api::<Node>::all(story.client.clone()).create(&params, &node).await.unwrap();
        let metric = "node_ipam_second_allocator_total";
        story.manager.until_metric(metric, &[("manager", label)], |count| count > 0.5).await;
        let message = story.event(&name, "SecondAllocator").await.message.unwrap_or_default();
        assert!(
            message.starts_with(&format!("{writer} assigned {cidr} to Node {name}")),
            "{message}"
        );
    }
    story.end();
}
