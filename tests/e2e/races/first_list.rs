//! Nothing is given out before everything that is taken is known (`rule:list-before-allocate`).

use std::time::{Duration, Instant};

use tests::nodes::names;
use tests::{Match, Wire, create_nodes, mk_node};

use crate::scene::{Scene, launch};

/// Time in which a product that does not wait for its list would send a PATCH.
const TEMPTATION: Duration = Duration::from_millis(700);

/// Releases `hold` after a while; no PATCH may have come before.
async fn nothing_before(scene: &Scene, hold: tests::fault_proxy::Hold) {
    tokio::time::sleep(TEMPTATION).await;
    let released = Instant::now();
    hold.release();
    scene.nodes.until("all have a block", |now| now.assigned() == now.len()).await;
    let patches = scene.proxy.node_patches();
    assert!(!patches.is_empty());
    for patch in patches {
        assert!(patch.arrived > released, "{patch:?} came before the list was complete");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_patch_leaves_before_the_list_is_answered() {
    let scene = Scene::set_on(Wire::ProtobufStreamed).await;
    create_nodes(&scene.client, names("new", 20).map(mk_node)).await;
    let held = (0..20).map(|i| mk_node(format!("held-{i}")).cidr(&format!("10.0.{i}.0/24")));
    create_nodes(&scene.client, held).await;
    let hold = scene.proxy.on(Match::node_lists()).hold_answer();
    let manager = launch(&scene.proxy, "--leader-elect=false --cluster-cidr=10.0.0.0/18");
    hold.arrived(1).await;
    create_nodes(&scene.client, names("late", 20).map(mk_node)).await;
    nothing_before(&scene, hold).await;
    drop(manager);
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_patch_leaves_before_the_last_page_of_the_list_is_there() {
    for wire in [Wire::ProtobufPages, Wire::JsonPages] {
        last_page_is_awaited(wire).await;
    }
}

async fn last_page_is_awaited(wire: Wire) {
    let scene = Scene::set_on(wire).await;
    // The first page of 500 is full of Nodes that want a block, the second knows what is taken.
    create_nodes(&scene.client, names("a", 500).map(mk_node)).await;
    let held = (0..20).map(|i| mk_node(format!("z-{i}")).cidr(&format!("10.0.0.{i}/32")));
    create_nodes(&scene.client, held).await;
    let hold = scene.proxy.on(Match::node_lists().query_contains("continue=")).hold();
    let manager = launch(
        &scene.proxy,
        "--leader-elect=false --cluster-cidr=10.0.0.0/22 --node-cidr-mask-size=32",
    );
    hold.arrived(1).await;
    nothing_before(&scene, hold).await;
    drop(manager);
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_is_asked_for_unless_the_content_type_is_json() {
    for (flag, protobuf) in [("", true), ("--kube-api-content-type=application/json", false)] {
        let scene = Scene::set_on(Wire::ProtobufStreamed).await;
        let manager = scene.start(&format!("--cluster-cidr=10.0.0.0/18 {flag}")).await;
        scene.add("a").await;
        let asked = scene.proxy.requests_like(&Match::node_lists());
        assert!(!asked.is_empty());
        for asked in asked {
            let accept = asked.request.headers["accept"].to_str().unwrap();
            assert_eq!(accept.contains("protobuf"), protobuf, "{flag}: {accept}");
        }
        drop(manager);
    }
}
