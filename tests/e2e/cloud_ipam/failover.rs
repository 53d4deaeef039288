//! Leaders that die while Nodes join: each Node has what its VM has, once.

use tests::control_plane::MANAGER_USER;
use tests::{FaultProxy, PATIENCE, Wire, create_nodes, eventually};

use crate::scene::{Scene, alias, mk_vm_node};

const LEASE: &str = "--leader-elect-lease-duration=6s --leader-elect-renew-deadline=5s \
     --leader-elect-retry-period=500ms";
const ALL: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_amid_joining_nodes_is_followed_by_one_that_finishes() {
    let scene = Scene::set().await;
    let first = scene.launch(scene.proxy.kubeconfig(), "CloudAllocator", LEASE);
    first.line("Controller starting...").await;
    let user = MANAGER_USER;
    let second_proxy =
        FaultProxy::start_with(Wire::of_this_test(), &scene.cluster, user, &[]).await;
    let second = scene.launch(second_proxy.kubeconfig(), "CloudAllocator", LEASE);
    second.line("New leader elected").await;
    let nodes = (0..ALL).map(|index| {
        let zone = format!("zone-{}", index % 3);
        mk_vm_node(&scene.stub, &zone, &format!("n-{index}"), &[&alias(index)])
    });
    let nodes: Vec<_> = nodes.collect();
    let joining = create_nodes(&scene.client, nodes);
    let dying = async {
        eventually("the first has assigned some", || {
            let patches = scene.proxy.node_patches();
            patches.iter().filter(|patch| patch.upstream_status == Some(200)).count() >= 5
        })
        .await;
        first.kill();
    };
    tokio::join!(joining, dying);
    let now = scene.nodes.until("all have a pod CIDR", |now| now.assigned() == ALL).await;
    for index in 0..ALL {
        assert_eq!(now.cidrs(&format!("n-{index}")), [alias(index)]);
    }
    for index in 0..ALL {
        scene.ready(&format!("n-{index}")).await;
    }
    second.terminate();
    assert!(second.exit(PATIENCE).await.success());
    scene.check(&second, &[&second_proxy]);
}
