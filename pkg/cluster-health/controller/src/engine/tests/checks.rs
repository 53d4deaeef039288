//! Checks of members at work: which run, what they publish, and that no probe waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_server_double::{ApiServer, Reply};
use futures::join;
use futures::stream::{StreamExt as _, pending};
use health::{Code, Health, Published};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene, cluster};
use crate::api::CONFIG_MAPS;
use crate::check_document::{ConfiguredChecks, Document};
use crate::engine::checks::{await_first, run};
use crate::testing::informer_of;

const GATED: &str = "checks: [{name: NodesUp, nodesReady: {}, gatesReady: true}]";
const STATUS: &str = "clusterhealth_check_status{check=\"NodesUp\",cluster=\"a\",flavour=\"fake\",namespace=\"ns\"} ";

fn scene(document: &str) -> Scene {
    let scene = Scene::new(0);
    configure(&scene, document);
    tokio::spawn(run(Arc::clone(&scene.clusters)));
    scene
}

fn configure(scene: &Scene, document: &str) {
    scene.clusters.checks.set(Document::parse(document).unwrap());
}

fn events(scene: &Scene, reason: &str) -> usize {
    scene.api.events().iter().filter(|it| *it == reason).count()
}

#[tokio::test(start_paused = true)]
async fn a_check_that_gates_makes_its_member_not_ready_after_three_failures_and_never_offline() {
    for (gates, expected) in [("true", Health::NotReady), ("false", Health::Ready)] {
        let scene = scene(&GATED.replace("true", gates));
        scene.add("ns/a", 1);
        scene.members.set_ready_nodes("ns/a", 4);
        sleep(S(120)).await;
        assert_eq!(scene.number(STATUS), Some(1.0));
        assert_eq!(events(&scene, "CheckPassed"), 0, "a first result that is good is no news");
        scene.members.set_ready_nodes("ns/a", 1);
        let runs = scene.members.examined();
        while scene.members.examined() < runs + 2 {
            sleep(S(1)).await;
            assert_eq!(scene.health("ns/a"), Some(Health::Ready));
        }
        // The third, and a probe within a second.
        sleep(S(63)).await;
        assert_eq!(scene.health("ns/a"), Some(expected), "{gates}");
        assert_eq!(scene.number(STATUS), Some(0.0));
        assert_eq!(events(&scene, "CheckFailed"), 1);
        let page = scene.page("/debug", None).await;
        let mut lines = page.lines().map(|line| line.rsplit("  ").next());
        assert_eq!(
            (lines.next(), lines.next()),
            (Some(Some("CHECKS")), Some(Some("NodesUp"))),
            "{page}"
        );
        let page = scene.page("/debug?format=json", None).await;
        assert!(page.contains(r#""NodesUp": "failed""#), "{page}");
        assert_eq!(events(&scene, "ClusterNotReady"), usize::from(gates == "true"));
        let code = (gates == "true").then_some(Code::Check);
        assert_eq!(scene.last_code("ns/a"), code);
        scene.members.set_ready_nodes("ns/a", 4);
        sleep(S(63)).await;
        assert_eq!(scene.health("ns/a"), Some(Health::Ready));
        assert_eq!(events(&scene, "CheckPassed"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_delays_no_probe_and_ends_with_its_member() {
    let scene = scene("checks: [{name: NodesUp, nodesReady: {}, gatesReady: true, interval: 30s}]");
    for number in 0..64 {
        scene.add(&format!("ns/{number}"), number);
    }
    sleep(S(600)).await;
    assert_eq!(scene.members.examined(), 32, "no more at once");
    assert!(scene.members.longest_gap() < S(12), "{:?}", scene.members.longest_gap());
    assert_eq!(scene.health("ns/0"), Some(Health::Ready));
    for number in 0..64 {
        scene.clusters.remove(&*scene.flavour, &cluster(&format!("ns/{number}"), number));
    }
    scene.members.set_ready_nodes("ns/a", 4);
    scene.add("ns/a", 1);
    sleep(S(60)).await;
    assert_eq!(scene.number(STATUS), Some(1.0), "their turns are free");
}

#[tokio::test(start_paused = true)]
async fn runs_that_come_too_late_are_dropped_and_counted() {
    let scene = scene("checks: [{name: NodesUp, nodesReady: {}, interval: 30s}]");
    for number in 0..32 {
        scene.add(&format!("ns/{number}"), number);
    }
    sleep(S(60)).await;
    assert_eq!(scene.members.examined(), 32);
    for number in 32..40 {
        scene.members.set_ready_nodes(&format!("ns/{number}"), 4);
        scene.add(&format!("ns/{number}"), number);
    }
    sleep(S(90)).await;
    assert_eq!(scene.members.examined(), 32, "all turns are taken");
    for number in 0..32 {
        scene.clusters.remove(&*scene.flavour, &cluster(&format!("ns/{number}"), number));
    }
    sleep(Duration::from_millis(10)).await;
    assert_eq!(scene.metric("clusterhealth_checks_dropped_total "), 8);
    sleep(S(15)).await;
    assert_eq!(scene.members.examined(), 40);
    assert_eq!(scene.metric("clusterhealth_checks_dropped_total "), 8);
}

#[tokio::test(start_paused = true)]
async fn checks_follow_their_document_and_the_labels_of_the_member() {
    let scene = scene("checks: []");
    scene.members.set_ready_nodes("ns/a", 1);
    scene.add("ns/a", 1);
    sleep(S(120)).await;
    assert_eq!(scene.members.examined(), 0);
    configure(&scene, &GATED.replace("}]", ", selector: tier=a}]"));
    sleep(S(120)).await;
    assert_eq!((scene.members.examined(), scene.number::<f64>(STATUS)), (0, None));
    scene.add_with("ns/a", 1, |target| {
        target.labels.insert("tier".to_owned(), "a".to_owned());
    });
    let member = scene.clusters.find(&*scene.flavour, "ns/a").unwrap();
    let reports = member.view(|it| it.member.check_reports());
    assert_eq!(reports.len(), 1, "a write before the next look keeps its condition");
    sleep(S(120)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
    configure(&scene, "checks: []");
    sleep(S(12)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready), "nothing gates it any more");
    assert_eq!(scene.number::<f64>(STATUS), None);
}

/// rule:a-restart-changes-nothing
#[tokio::test(start_paused = true)]
async fn a_member_that_was_not_ready_stays_so_until_its_checks_are_known_and_pass() {
    let scene = Scene::new(0);
    scene.clusters.checks.await_first();
    let seed = || Published::seed(Health::NotReady, Timestamp::now(), Timestamp::now(), None);
    scene.members.set_ready_nodes("ns/a", 1);
    scene.add_with("ns/a", 1, |target| target.published = Some(seed()));
    sleep(S(30)).await;
    configure(&scene, GATED);
    tokio::spawn(run(Arc::clone(&scene.clusters)));
    sleep(S(120)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
    scene.members.set_ready_nodes("ns/a", 3);
    sleep(S(64)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready));
    assert_eq!(events(&scene, "ClusterReady"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_check_of_a_member_that_does_not_answer_becomes_unknown_without_an_event() {
    let scene = scene(GATED);
    scene.members.set_ready_nodes("ns/a", 4);
    scene.add("ns/a", 1);
    sleep(S(120)).await;
    let runs = scene.members.examined();
    scene.members.set("ns/a", Answer::Unreachable);
    sleep(S(10)).await;
    let before = scene.members.examined();
    assert!(before <= runs + 1);
    sleep(S(300)).await;
    assert_eq!(scene.members.examined(), before, "it is not asked");
    assert_eq!(scene.health("ns/a"), Some(Health::Unreachable));
    assert_eq!(scene.number(STATUS), Some(-1.0));
    assert_eq!(events(&scene, "CheckNotAsked"), 0);
    scene.members.set("ns/a", Answer::Ok);
    sleep(S(15)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready), "its checks run at once");
    assert_eq!(scene.number(STATUS), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn checks_that_may_not_be_read_are_not_taken_for_none() {
    let may_read = Arc::new(AtomicBool::new(false));
    let permits = Arc::clone(&may_read);
    let server = ApiServer::new(move |asked| match asked.query() {
        _ if !permits.load(Ordering::Relaxed) => Reply::failure(403, "Forbidden"),
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") => Reply::Watch(pending().boxed()),
        _ => Reply::Json(200, json!({"metadata": {"resourceVersion": "8"}, "items": []})),
    });
    let (cache, checks) = (informer_of(&CONFIG_MAPS, &server), ConfiguredChecks::new(true));
    let permit = async {
        cache.synced_or_denied().await;
        sleep(S(60)).await;
        assert!(!checks.are_known(), "conditions and gates stay");
        assert_eq!(checks.is_unusable(), Some(true));
        may_read.store(true, Ordering::Relaxed);
    };
    join!(await_first(&cache, &checks), permit);
    assert!(checks.are_known(), "the ConfigMap does not exist");
    assert_eq!(checks.is_unusable(), Some(false));
}
