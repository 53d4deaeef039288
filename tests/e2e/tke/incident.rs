//! The incident for which cluster-health was written, played again: a cluster stayed Failed for
//! ever once its API server had been down at the wrong moment, while the manager's client waited in
//! a queue of its own making.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use tests::control_plane::ADMIN_GROUP;
use tests::fault_proxy::Recorded;
use tests::{Fault, FaultProxy, Match, Stopwatch, eventually, stalls};
use tokio::time::sleep;

use crate::scene::Scene;
use crate::totals;

const PERIOD: Duration = Duration::from_secs(5);
const FLAGS: &str = "--kube-api-qps=1 --kube-api-burst=1 --healthcheck-period=5s \
    --cluster-health-tke-timeout=5s --cluster-health-summary-interval=3s \
    --cluster-health-summary-page-size=300";
/// Number of objects whose names are looked up without an answer in time.
const IN_THE_QUEUE: usize = 300;
/// After each refusal a write waits 6 s or more, until the server could no longer carry it out:
/// four of them stand for the two minutes of the incident, unless it is asked for those.
const REFUSALS: usize = 4;
/// `INCIDENT_REFUSED_SECONDS=120` has writes refused for as long as in the incident.
const REFUSED_SECONDS: &str = "INCIDENT_REFUSED_SECONDS";
/// One probe that is answered and one request, on a machine that is busy but does not stand still.
const SLACK: Duration = Duration::from_secs(1);
/// A write that was refused may yet be carried out for so long.
const APPLICABLE: Duration = Duration::from_secs(6);

/// A write of the status that says that the cluster runs.
fn recovery() -> Match {
    Match::method(Method::PATCH)
        .and(|it| it.path.ends_with("/clusters/cls-one/status"))
        .and(|it| it.json()["status"]["phase"] == "Running")
}

/// Writes of the status that say that the cluster runs, in order of their arrival, from then on.
fn recoveries(proxy: &FaultProxy, from: Instant) -> Vec<Recorded> {
    let mut writes = proxy.requests_like(&recovery());
    writes.retain(|it| it.arrived > from);
    writes
}

/// `rule:probes-ask-members-only`, `rule:writes-are-retried-until-done`
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_cluster_runs_again_within_a_period_while_the_management_api_is_slow_and_refuses()
{
    let mut scene = Scene::set().await;
    totals::populate(&scene.member.client().await).await;
    scene.import("cls-one");
    scene.admit("cls-one");
    let proxy = FaultProxy::start(&scene.hub.plane, "somebody", &[ADMIN_GROUP]).await;
    let is_status = |path: &str| path.starts_with("/apis/platform") && path.ends_with("/status");
    let is_lookup = |path: &str| path.contains("/clustercredentials");
    let slow =
        Match::any().and(move |it| !it.is_watch() && !is_status(&it.path) && !is_lookup(&it.path));
    proxy.on(slow).then(Fault::DelayAfter(Duration::from_millis(300)));
    let manager = scene.start_by(proxy.kubeconfig(), FLAGS);
    let began = Stopwatch::start();
    let status = scene.until("cls-one", "is summed up", totals::are_there).await;
    assert_eq!(status["phase"], "Running");
    totals::assert_exact(&status);

    // Longer than a look-up is waited for, so that the queue stays.
    let lookups = Match::method(Method::GET).and(move |it| !it.is_watch() && is_lookup(&it.path));
    proxy.on(lookups).then(Fault::DelayAfter(Duration::from_secs(30)));
    let more = (0..IN_THE_QUEUE).map(|number| Scene::cluster_at(&format!("cls-{number}"), &[1]));
    scene.hub.create_all(&more.collect::<Vec<_>>());
    let queue = [("name", "cluster_health_tke")];
    let limit = 200.0;
    manager.until_metric("workqueue_depth", &queue, |depth| depth > limit).await;

    scene.member.stop_api_server().await;
    let refused = |it: &serde_json::Value| {
        let message = it["message"].as_str().unwrap_or_default();
        it["phase"] == "Failed" && message.contains("connect-refused")
    };
    scene.until("cls-one", "fails by connect-refused", refused).await;
    let failed = Instant::now();

    // Not the other answers of an API server that starts: the write of one would be waited for.
    let refusing = proxy.on(recovery()).then(Fault::status(500));
    scene.member.start_api_server().await.unwrap();
    let up = Instant::now();
    eventually("the recovery is published", || !recoveries(&proxy, failed).is_empty()).await;
    let reported = stalls::without(up, recoveries(&proxy, failed)[0].arrived);
    println!("published {reported:?} after the member was up again");
    assert!(reported < PERIOD.mul_f64(1.1) + SLACK, "published only after {reported:?}");
    // Whatever the product tries, nothing is written: it tries again.
    eventually("it is refused", || recoveries(&proxy, failed).len() >= REFUSALS).await;
    let refused_for = std::env::var(REFUSED_SECONDS).map_or(0, |text| text.parse().unwrap());
    while up.elapsed() < Duration::from_secs(refused_for) {
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(scene.cluster("cls-one")["status"]["phase"], "Failed");
    refusing.remove();
    let possible = Instant::now();
    let status = scene.until("cls-one", "runs again", |it| it["phase"] == "Running").await;
    let tries = recoveries(&proxy, failed);
    let pauses = tries.windows(2).map(|pair| pair[1].arrived - pair[0].arrived);
    let longest = pauses.max().expect("it was refused several times");
    let written = tries.last().expect("it was written").arrived;
    let took = stalls::without(possible, written);
    println!("written {took:?} after writes were possible, with pauses of {longest:?} at most");
    assert!(took <= longest.max(APPLICABLE + PERIOD) + SLACK, "written only after {took:?}");
    assert_eq!((&status["reason"], &status["message"]), (&json!(""), &json!("")));
    let status = scene.until("cls-one", "is summed up again", totals::are_there).await;
    totals::assert_exact(&status);

    let metrics = manager.metrics().await;
    let depth = metrics.value("workqueue_depth", &queue).unwrap_or_default();
    assert!(depth > limit / 2.0, "the queue was gone: {depth}");
    // Those who wait in the queue would be 200 s late.
    let lag = |suffix: &str, labels: &[(&str, &str)]| {
        let name = format!("clusterhealth_schedule_lag_seconds_{suffix}");
        metrics.value(&name, labels).unwrap_or_default()
    };
    let all = lag("count", &[("flavour", "tke")]);
    let in_time = lag("bucket", &[("flavour", "tke"), ("le", "5")]);
    assert!(all - in_time < 0.5, "{} of {all} probes were late", all - in_time);
    let longest = PERIOD.mul_f64(1.1) + SLACK;
    let least = began.elapsed().as_secs_f64() / longest.as_secs_f64();
    assert!(all >= least.floor(), "{all} probes instead of {least:.1}");
    scene.end(manager).await;
}
