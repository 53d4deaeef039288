//! Migration from the RangeAllocator to the MultiCIDRRangeAllocator and back.

use std::collections::BTreeMap;

use serde_json::json;
use tests::{Observer, PATIENCE, create_nodes, mk_node, nodes::names};

use crate::scene::{
    MULTI, Scene, cluster_cidr, everybody, find, hub, is_ready, start, until, used,
};

const RANGES: &str = "--cluster-cidr=10.0.0.0/18,fd00::/108 --node-cidr-mask-size-ipv6=120 \
                      --service-cluster-ip-range=10.0.0.0/24";

/// Name to CIDRs.
fn held(nodes: &Observer) -> BTreeMap<String, Vec<String>> {
    let now = nodes.now();
    now.keys().map(|name| (name.to_string(), now.cidrs(name).to_vec())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_moves_there_and_back_changes_no_node() {
    let hub = hub().await;
    let client = hub.plane.client().await;
    let nodes = Observer::start(&client).await;
    let mut before = BTreeMap::new();
    let mut alive = 0;
    for (life, allocator) in ["", MULTI, "", MULTI].into_iter().enumerate() {
        let manager = start(&hub.plane.manager_kubeconfig(), &format!("{allocator} {RANGES}"));
        manager.line("Controller starting...").await;
        create_nodes(&client, names(&format!("n{life}"), 3).map(mk_node)).await;
        alive += 3;
        nodes.until("all are assigned", |now| now.assigned() == alive).await;
        let now = held(&nodes);
        assert!(before.iter().all(|(name, cidrs)| now.get(name) == Some(cidrs)), "life {life}");
        if !allocator.is_empty() {
            let default = until(&hub, "default-cluster-cidr", "counts them", |it| {
                used(it) == [alive as u64 + 1, alive as u64]
            });
            let spec = json!({"ipv4": "10.0.0.0/18", "ipv6": "fd00::/108", "perNodeHostBits": 8});
            assert_eq!(default.await["spec"], spec);
        }
        let external = manager.metric("node_ipam_external_claims", &[]).await;
        assert_eq!(external, Some(0.0), "life {life}");
        before = now;
        manager.terminate();
        assert!(manager.exit(PATIENCE).await.success());
    }
    tests::assert_never_shared(&nodes.history(), &[]);
    let events = hub.run("get events --field-selector involvedObject.kind=Node -o name");
    assert_eq!(events, "", "no Node has an event");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_the_name_that_the_flags_would_make_is_left_alone() {
    let own = [cluster_cidr("default-cluster-cidr", &everybody(&["10.9.0.0/16"], 6))];
    let scene = Scene::begin(&own, "--cluster-cidr=10.0.0.0/16").await;
    assert_eq!(scene.add("a", &[]).await, ["10.9.0.0/26"]);
    let object = scene.until("default-cluster-cidr", "is ready", is_ready).await;
    assert_eq!(object["spec"], everybody(&["10.9.0.0/16"], 6));
    assert!(find(&scene.hub, "default-cluster-cidr").is_some());
    scene.end(&[]).await;
}
