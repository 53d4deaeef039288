//! The record of the availability of a cluster, and its metrics.

use health::{Health, Objective, Record, Sums};
use jiff::Timestamp;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene, policy};

fn objective() -> Option<Objective> {
    Objective::parse("99").expect("it is in range")
}

/// A scene with the cluster `ns/a`, with an objective or without.
fn scene(has_objective: bool, record: Option<Record>) -> Scene {
    let scene = Scene::new(0);
    scene.add_with("ns/a", 1, |target| {
        target.policy.objective = objective().filter(|_| has_objective);
        target.record = record;
    });
    scene
}

fn number(scene: &Scene, name: &str, further: &str) -> Option<f64> {
    scene.number(&format!("{name}{{cluster=\"a\",flavour=\"fake\",namespace=\"ns\"{further}}} "))
}

fn written(scene: &Scene) -> Option<String> {
    let status = scene.api.fake("ns/a").expect("it was written");
    status["availability"].as_str().map(str::to_owned)
}

fn sums(text: &str) -> Sums {
    Record::decode(text, Timestamp::now()).expect("a record").sums(Timestamp::now())
}

/// rule:a-record-costs-no-write
#[tokio::test(start_paused = true)]
async fn a_record_goes_with_the_writes_that_are_due_anyway() {
    for has_objective in [true, false] {
        let scene = scene(has_objective, None);
        sleep(S(1200)).await;
        scene.members.set("ns/a", Answer::Failing);
        sleep(S(300)).await;
        assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
        scene.members.set("ns/a", Answer::Ok);
        sleep(S(1200)).await;
        assert!(scene.members.probes("ns/a") > 240);
        // A first result, two changes, and a heartbeat each five minutes.
        let writes = scene.api.writes();
        assert!((8..=12).contains(&writes), "{writes}");
        assert_eq!(written(&scene).is_some(), has_objective);
    }
}

/// rule:a-restart-changes-nothing
#[tokio::test(start_paused = true)]
async fn the_next_process_goes_on_from_the_record_of_the_object() {
    let first = scene(true, None);
    sleep(S(300)).await;
    first.members.set("ns/a", Answer::Failing);
    sleep(S(620)).await;
    let text = written(&first).expect("it has a record");
    drop(first);
    let before = sums(&text);
    assert!(before.bad > S(200) && before.observed > S(500), "{before:?}");
    let next = scene(true, Record::decode(&text, Timestamp::now()));
    sleep(S(60)).await;
    let ratio = before.ratio().expect("it was observed");
    let found = number(&next, "clusterhealth_cluster_availability_ratio", ",window=\"28d\"");
    assert!((found.expect("it is exposed") - ratio).abs() < 0.1, "{found:?} {ratio}");
    let hour = number(&next, "clusterhealth_cluster_availability_ratio", ",window=\"1h\"");
    assert_eq!(hour, Some(1.0), "what is not in the record begins with the process");
    sleep(S(400)).await;
    let after = sums(&written(&next).expect("it has a record"));
    assert!(after.bad == before.bad && after.observed > before.observed + S(60), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn the_objective_and_what_is_left_of_its_budget_are_exposed() {
    let scene = scene(true, None);
    sleep(S(590)).await;
    let budget = "clusterhealth_cluster_error_budget_remaining_ratio";
    assert_eq!(number(&scene, budget, ""), None, "it was observed for less than a day");
    sleep(S(86_400)).await;
    scene.members.set("ns/a", Answer::Failing);
    sleep(S(60)).await;
    let name = |name: &str| format!("clusterhealth_cluster_{name}");
    let value = |it: &str| number(&scene, &name(it), "");
    assert_eq!(value("objective_ratio"), Some(0.99));
    let observed = value("observed_seconds_total").expect("a counter");
    let bad = value("bad_seconds_total").expect("a counter");
    let expected = 86_400.0 + 600.0..86_400.0 + 660.0;
    assert!(expected.contains(&observed) && (20.0..=60.0).contains(&bad), "{observed} {bad}");
    let left = value("error_budget_remaining_ratio").expect("a gauge");
    // Its clock shows the same day all the time, of which the record takes a day at most.
    assert!((left - (1.0 - bad / observed / 0.01)).abs() < 2e-3, "{left} {bad} {observed}");
    let share = value("observed_ratio").expect("a gauge");
    assert!((share - 1.0 / 28.0).abs() < 1e-6, "{share}");
    let month = |window: &str| number(&scene, &name("availability_ratio"), window);
    assert_eq!(month(",window=\"28d\""), month(",window=\"30d\""));
    scene.members.set("ns/a", Answer::Ok);
    scene.add_with("ns/a", 1, |target| target.policy = policy());
    assert_eq!((value("objective_ratio"), value("error_budget_remaining_ratio")), (None, None));
    assert!(value("observed_seconds_total").is_some());
}
