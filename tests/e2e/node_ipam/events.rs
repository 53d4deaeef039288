//! Output of node-ipam for users: events, warnings before a pool is full, metrics.

use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use tests::poll;

use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_warns_at_80_and_95_percent_by_log_event_and_metric() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/27 --node-cidr-mask-size=32").await;
    let pressure = "node_ipam_pool_pressure_percent";
    let pool = [("clusterCIDR", "10.0.0.0/27")];
    for index in 1..=25 {
        story.add(&format!("n{index}")).await;
    }
    assert_eq!(story.manager.metric(pressure, &pool).await, Some(0.0));
    for (index, line, used) in [(26, 80.0, "26 of 32"), (31, 95.0, "31 of 32")] {
        for earlier in index - 4..index {
            if index == 31 {
                story.add(&format!("n{earlier}")).await;
            }
        }
        let name = format!("n{index}");
        story.add(&name).await;
        let event = story.event(&name, "PodCIDRPoolNearlyFull").await;
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        let message = event.message.unwrap_or_default();
        for part in ["10.0.0.0/27", "/32", used] {
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
        story.manager.line(used).await;
        assert_eq!(story.manager.metric(pressure, &pool).await, Some(line));
    }
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_and_its_first_free_block_have_an_event_on_the_lease() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/23,fd00::/56").await;
    let servable = "node_ipam_servable_nodes";
    story.add("a").await;
    assert_eq!(story.manager.metric(servable, &[]).await, Some(1.0), "IPv4 is the scarcer family");
    story.add("b").await;
    assert_eq!(story.manager.metric(servable, &[]).await, Some(0.0));
    let events = Api::<Event>::namespaced(story.client.clone(), "kube-system");
    let event = async |reason: &str| {
        let params = ListParams::default().fields(&format!("reason={reason}"));
        poll(reason, async || events.list(&params).await.unwrap().items.pop()).await
    };
    let full = event("PodCIDRPoolFull").await;
    assert_eq!(full.type_.as_deref(), Some("Warning"));
    assert_eq!(full.involved_object.kind.as_deref(), Some("Lease"));
    let message = full.message.unwrap_or_default();
    assert!(message.contains("all blocks of 10.0.0.0/23 are in use"), "{message}");
    story.remove("a").await;
    let message = event("PodCIDRPoolHasRoom").await.message.unwrap_or_default();
    assert!(message.contains("one more Node can get a pod CIDR"), "{message}");
    assert_eq!(story.manager.metric(servable, &[]).await, Some(1.0));
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_starved_node_has_one_event_in_the_form_that_stock_uses() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/24").await;
    story.add("a").await;
    story.starves("b").await;
    let event = story.event("b", "CIDRNotAvailable").await;
    let object = &event.involved_object;
    assert_eq!(object.kind.as_deref(), Some("Node"));
    assert_eq!(object.api_version.as_deref(), Some("v1"));
    assert_eq!(object.uid.as_deref(), Some(&*story.nodes.now()["b"].uid));
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(event.type_.as_deref(), Some("Normal"));
    assert_eq!(event.source.and_then(|source| source.component).as_deref(), Some("cidrAllocator"));
    let message = event.message.unwrap_or_default();
    assert!(message.starts_with("Node b status is now: CIDRNotAvailable"), "{message}");
    let starved = story.manager.metric("node_ipam_pending_nodes", &[("state", "starved")]).await;
    assert_eq!(starved, Some(1.0));
    story.end();
}

/// `rule:a-bad-node-stops-only-itself`
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_cidr_overlaps_a_service_range_has_an_event_and_is_counted() {
    let mut story =
        Story::begin("--cluster-cidr=10.0.0.0/22 --service-cluster-ip-range=10.0.0.0/24").await;
    story.add_foreign("odd", &["10.0.0.128/25"]).await;
    let event = story.event("odd", "PodCIDROverlapsServices").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let message = event.message.unwrap_or_default();
    assert!(message.contains("10.0.0.128/25") && message.contains("10.0.0.0/24"), "{message}");
    let overlaps = "node_ipam_service_range_overlaps";
    assert_eq!(story.manager.metric(overlaps, &[]).await, Some(1.0));
    assert_eq!(story.add("a").await, ["10.0.1.0/24"]);
    story.remove("odd").await;
    story.manager.until_metric(overlaps, &[], |pods| pods == 0.0).await;
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_stock_are_there_under_their_names() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/22").await;
    story.add("a").await;
    story.remove("a").await;
    story.until_used("10.0.0.0/22", 0.0).await;
    let pool = [("clusterCIDR", "10.0.0.0/22")];
    let queue = [("name", "cidrallocator_node")];
    for (name, labels, value) in [
        ("node_ipam_controller_cidrset_cidrs_allocations_total", &pool[..], 1.0),
        ("node_ipam_controller_cidrset_cidrs_releases_total", &pool, 1.0),
        ("node_ipam_controller_cidrset_usage_cidrs", &pool, 0.0),
        ("node_ipam_controller_cirdset_max_cidrs", &pool, 4.0),
        ("node_ipam_controller_cidrset_allocation_tries_per_request_count", &pool, 1.0),
        ("workqueue_depth", &queue, 0.0),
        ("workqueue_unfinished_work_seconds", &queue, 0.0),
        ("workqueue_longest_running_processor_seconds", &queue, 0.0),
        (
            "running_managed_controllers",
            &[("name", "nodeipam"), ("manager", "infra-controller-manager")],
            1.0,
        ),
        ("node_ipam_assignment_duration_seconds_count", &[], 1.0),
        ("node_ipam_patch_results_total", &[("class", "done")], 1.0),
        ("node_ipam_conflicts", &[], 0.0),
        ("node_ipam_external_claims", &[], 0.0),
        ("node_ipam_service_range_overlaps", &[], 0.0),
        ("node_ipam_first_patch_delay_seconds_count", &[], 1.0),
        ("node_ipam_foreign_assignments_total", &[], 0.0),
    ] {
        // The worker may still be at the end of its last pass.
        story.manager.until_metric(name, labels, |now| (now - value).abs() < 1e-9).await;
    }
    let metrics = story.manager.metrics().await;
    for name in ["workqueue_adds_total", "workqueue_queue_duration_seconds_count"] {
        assert!(metrics.value(name, &queue).is_some_and(|value| value > 0.0), "{name}");
    }
    story.end();
}

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
///
/// rule:second-allocator-is-told
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
