//! A client that must wait says so, and the lease never waits with it.

use std::time::{Duration, Instant};

use tests::nodes::names;
use tests::{Fault, Match, Stopwatch, create_nodes, mk_node, stalls};

use crate::scene::{AT_ONCE, Scene, lease_writes};

/// Renewals come every 2 s with the default timings.
const GAP: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn at_one_query_per_second_the_wait_shows_and_the_lease_is_renewed_in_time() {
    let scene = Scene::set().await;
    create_nodes(&scene.client, names("n", 400).map(mk_node)).await;
    let renewed = scene.proxy.on(lease_writes()).then(Fault::None);
    let began = Instant::now();
    let manager = scene
        .start("--use-service-account-credentials=true --kube-api-qps=1 --kube-api-burst=1")
        .await;
    // One to take it, and five renewals: 10 s under the full load of the queue.
    renewed.hit(6).await;

    let line = manager
        .line_where("a wait of the controller's client", |line| {
            line.contains("\"Waited before sending request\"") && line.contains("/api/v1/nodes/")
        })
        .await;
    for field in [
        "delay=\"",
        "reason=\"client-side throttling, not priority and fairness\"",
        "verb=\"PATCH\"",
        "URL=\"",
        "/api/v1/nodes/n-",
        "client=\"node-controller\"",
        "qps=1",
        "queue=",
    ] {
        assert!(line.contains(field), "{field:?} is missing in {line}");
    }
    let metrics = manager.metrics().await;
    let client = [("client", "node-controller")];
    let throttled = metrics.value("icm_client_throttled_total", &client).unwrap();
    assert!(throttled >= 5.0, "{throttled} requests had to wait");
    let waited = metrics.value("icm_client_throttle_wait_seconds_sum", &client).unwrap();
    assert!(waited >= 5.0, "{waited} s in all");
    let host = scene.proxy.url().strip_prefix("https://").unwrap();
    let patches = [("verb", "PATCH"), ("host", host)];
    let limiter = "rest_client_rate_limiter_duration_seconds";
    let sum = metrics.value(&format!("{limiter}_sum"), &patches);
    assert!(sum.is_some_and(|seconds| seconds >= 5.0), "{sum:?} s in the limiter");
    let spent = metrics.value("icm_client_bucket_utilization", &client).unwrap();
    assert!(spent > 0.0, "the bucket cannot be full");

    let patches = scene.proxy.requests_like(&Match::node_patches()).len();
    let allowed = began.elapsed().as_secs() + 2; // one at once, one by rounding
    assert!(patches >= 5, "only {patches} PATCHes");
    assert!(u64::try_from(patches).unwrap() <= allowed, "{patches} PATCHes in {allowed} s");
    assert_renewed_in_time(&scene);

    // Those who wait for the throttle do not hold up the end either, nor are they sent.
    manager.terminate();
    let asked = Stopwatch::start();
    assert!(manager.exit(AT_ONCE).await.success());
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(4), "the end took {took:?}");
    assert_eq!(scene.holder().await, "");
    let release = scene.proxy.requests_like(&lease_writes()).pop().unwrap().arrived;
    let late = scene.proxy.node_patches().into_iter().filter(|patch| patch.arrived > release);
    assert_eq!(late.count(), 0, "written after the lease was given back");
}

fn assert_renewed_in_time(scene: &Scene) {
    let renewals = scene.proxy.requests_like(&lease_writes());
    for pair in renewals.windows(2) {
        let gap = stalls::without(pair[0].arrived, pair[1].arrived);
        assert!(gap < GAP, "{gap:?} between two renewals");
    }
}
