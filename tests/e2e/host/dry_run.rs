//! `--dry-run`: the program logs its decisions, stores nothing, and does not disturb the leader.

use std::collections::BTreeSet;

use tests::Match;

use crate::scene::{Scene, launch, writes};

/// Whether a dry run may store an object: its lease, and the account that it works as. Reviews and
/// tokens are not stored.
fn may_be_stored(path: &str) -> bool {
    path.contains("/leases")
        || path.ends_with("/serviceaccounts")
        || path.ends_with("accessreviews")
        || path.ends_with("/token")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_logs_its_decisions_and_stores_only_its_lease() {
    let scene = Scene::set().await;
    tests::mk_node("a").create(&scene.client).await;
    let dry = launch(&scene.proxy, "--dry-run --use-service-account-credentials=true");
    let reported = dry.line("Would set node PodCIDR").await;
    assert!(reported.contains("10.0.0.0/24"), "{reported}");
    assert!(scene.nodes.now().cidrs("a").is_empty());
    assert_eq!(scene.holder().await, "", "the lease of the program itself is free");

    let other = scene.another_proxy().await;
    let real = launch(&other, "--use-service-account-credentials=true");
    scene.nodes.until("the other one does the work", |now| !now.cidrs("a").is_empty()).await;
    scene.serves("b").await;
    assert!(dry.is_running() && real.is_running());

    let sent = scene.proxy.requests_like(&writes());
    let mut stored = BTreeSet::new();
    for recorded in &sent {
        let request = &recorded.request;
        if request.parameter("dryRun") != Some("All") {
            assert!(may_be_stored(&request.path), "{} {}", request.method, request.path);
            stored.insert(request.path.clone());
        }
    }
    assert_ne!(scene.holder_of("infra-controller-manager-dry-run").await, "", "{stored:?}");
    let patched = Match::any().and(|request| request.path == "/api/v1/nodes/a");
    let patched = scene.proxy.requests_like(&patched.and(|request| !request.method.is_safe()));
    assert!(!patched.is_empty(), "the API server judges what is decided");
    assert!(patched.iter().all(|it| it.upstream_status == Some(200)), "{patched:?}");
}
