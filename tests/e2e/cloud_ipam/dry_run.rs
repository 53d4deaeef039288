//! `--dry-run` with a cloud: no allocator writes to the cloud.

use tests::Process;

use crate::scene::{Scene, ZONE, mk_vm_node};

const POOL: &str = "--cluster-cidr=10.0.0.0/16";
const WRITE: &str = "instances.updateNetworkInterface";

/// The product with this allocator, without leader election.
fn launch(scene: &Scene, kind: &str, args: &str) -> Process {
    let args = format!("--leader-elect=false {POOL} {args}");
    scene.launch(scene.proxy.kubeconfig(), kind, &args)
}

/// `rule:dry-run-writes-nothing-to-google`
#[tokio::test(flavor = "multi_thread")]
async fn no_allocator_writes_to_the_cloud_in_a_dry_run() {
    let scene = Scene::set().await;
    mk_vm_node(&scene.stub, ZONE, "a", &[]).create(&scene.client).await;
    mk_vm_node(&scene.stub, ZONE, "b", &["10.0.9.0/24"]).create(&scene.client).await;
    for (kind, line) in [
        ("RangeAllocator", "Would set node PodCIDR"),
        ("MultiCIDRRangeAllocator", "it cannot run with --dry-run"),
        ("CloudAllocator", "it cannot run with --dry-run"),
        ("IPAMFromCluster", "it cannot run with --dry-run"),
        ("IPAMFromCloud", "it cannot run with --dry-run"),
    ] {
        let dry = launch(&scene, kind, "--dry-run");
        dry.line(line).await;
        assert!(dry.is_running(), "{kind}");
        assert_eq!(scene.stub.count(WRITE), 0, "{kind}");
    }
    let now = scene.nodes.now();
    assert!(now.cidrs("a").is_empty() && now.cidrs("b").is_empty(), "nothing was written");

    // Without the flag the same process writes to the cloud.
    let manager = launch(&scene, "IPAMFromCluster", "");
    let cidrs = scene.assigned("a").await;
    assert_eq!(scene.stub.aliases(ZONE, "a"), cidrs);
    assert_eq!(scene.stub.count(WRITE), 1);
    scene.end(&manager).await;
}
