//! The engine with scripted members and a scripted management API, on tokio's paused clock.

use std::time::Duration;

use health::{Code, Health};
use scene::{Answer, Scene, cluster};
use tokio::time::sleep;

use super::probes::Job;
use super::tasks;

mod audit;
mod beats;
mod checks;
mod exposition;
pub(crate) mod fields;
mod guard;
mod objective;
mod pages;
mod panics;
pub(crate) mod pipeline;
pub(crate) mod scene;
mod sharing;
mod throttling;

const S: fn(u64) -> Duration = Duration::from_secs;

/// rule:probes-start-in-time, rule:probes-ask-members-only, rule:writes-are-retried-until-done
#[tokio::test(start_paused = true)]
async fn a_management_api_that_refuses_for_minutes_delays_no_probe_and_loses_no_status() {
    let scene = Scene::new(0);
    for number in 0..300 {
        scene.add(&format!("ns/c{number}"), 1);
    }
    sleep(S(30)).await;
    scene.api.refuse(true);
    scene.members.set("ns/c7", Answer::Silent);
    sleep(S(60)).await;
    assert_eq!(scene.health("ns/c7"), Some(Health::Unreachable));
    scene.members.set("ns/c7", Answer::Ok);
    sleep(S(11) + S(3)).await;
    assert_eq!(scene.health("ns/c7"), Some(Health::Ready), "recovery within a period");
    scene.members.set("ns/c9", Answer::Failing);
    sleep(S(46)).await;
    assert_eq!(scene.api.written("ns/c9"), Some("Ready".to_owned()));
    scene.api.refuse(false);
    sleep(S(31)).await;
    assert_eq!(scene.api.written("ns/c7"), Some("Ready".to_owned()));
    assert_eq!(scene.api.written("ns/c9"), Some("NotReady".to_owned()));
    assert!(scene.clusters.writer.oldest(super::flavour::now().monotonic).is_zero());
    let gap = scene.members.longest_gap();
    assert!(gap <= S(11) + S(1), "a member waited {gap:?} for its probe");
}

/// rule:refused-writes-delay-no-others, rule:one-owner-at-a-time
#[tokio::test(start_paused = true)]
async fn a_write_that_may_still_be_carried_out_holds_up_its_own_object_alone() {
    let scene = Scene::new(0);
    scene.api.leave_open("ns/open");
    let keys = |name: &'static str, count| (0..count).map(move |it| format!("ns/{name}{it}"));
    keys("open", 400).chain(keys("well", 100)).for_each(|key| scene.add(&key, 1));
    sleep(S(60)).await;
    let held = scene.clusters.writer.writing().len();
    assert!(held > 64, "{held} count as under way, and no replica may take them over");
    let writes = scene.api.writes();
    scene.facts.store(5, std::sync::atomic::Ordering::Relaxed);
    keys("well", 100).for_each(|key| scene.registry.facts_changed(&cluster(&key, 1)));
    sleep(S(5)).await;
    assert_eq!(scene.api.writes() - writes, 100);
}

/// rule:refused-writes-delay-no-others
#[tokio::test(start_paused = true)]
async fn a_change_overtakes_thousands_of_first_results_and_heartbeats() {
    let scene = Scene::new(0);
    let add = |name: &str, count| (0..count).for_each(|it| scene.add(&format!("ns/{name}{it}"), 1));
    scene.add("ns/changed", 1);
    add("old", 1000);
    sleep(S(280)).await;
    scene.members.set("ns/changed", Answer::Failing);
    // 32 per second: that many writes take more than a minute. The heartbeats are due after 300 s.
    scene.api.delay_writes(S(2));
    add("new", 2000);
    while scene.health("ns/changed") != Some(Health::NotReady) {
        sleep(Duration::from_millis(100)).await;
    }
    let decided = tokio::time::Instant::now();
    while scene.api.written("ns/changed") != Some("NotReady".to_owned()) {
        sleep(Duration::from_millis(100)).await;
    }
    let took = decided.elapsed();
    let waiting = scene.clusters.writer.oldest(super::flavour::now().monotonic);
    assert!(waiting > S(15), "the queue is full, its oldest write has waited for {waiting:?}");
    // For one of the writes under way, and for its own.
    assert!(took < S(5), "it took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_prober_that_never_ends_is_cancelled_at_the_timeout_and_nobody_waits_for_it() {
    let scene = Scene::new(0);
    scene.members.set("ns/stuck", Answer::Silent);
    scene.add("ns/stuck", 1);
    scene.add("ns/well", 1);
    sleep(S(60)).await;
    assert_eq!(scene.health("ns/stuck"), Some(Health::Unreachable));
    assert_eq!(scene.last_code("ns/stuck"), Some(Code::Timeout));
    assert_eq!(scene.members.longest_probe(), S(3));
    assert!(scene.members.longest_gap() <= S(12));
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_write_that_hangs_holds_no_client_of_a_deleted_cluster() {
    let scene = Scene::new(0);
    scene.api.hang();
    scene.add("ns/a", 1);
    sleep(S(2)).await;
    assert!(scene.members.is_held("ns/a", 1));
    scene.registry.remove(&cluster("ns/a", 1));
    sleep(S(1)).await;
    assert!(!scene.members.is_held("ns/a", 1), "its client is dropped while the write hangs");
}

#[tokio::test(start_paused = true)]
async fn two_scrapes_at_once_both_see_every_cluster_once() {
    let scene = Scene::new(0);
    for number in 0..50 {
        scene.add(&format!("ns/c{number}"), 1);
    }
    sleep(S(15)).await;
    let scrape = || {
        for _ in 0..200 {
            let families = scene.metrics.gather();
            let series = |name| {
                let family = families.iter().find(|family| family.name() == name);
                family.map(|family| family.get_metric().to_vec()).unwrap_or_default()
            };
            assert_eq!(series("clusterhealth_cluster_ready").len(), 50);
            let states = series("clusterhealth_clusters");
            let sum: f64 = states.iter().map(|metric| metric.get_gauge().get_value()).sum();
            assert!((sum - 50.0).abs() < 0.5, "{sum} clusters");
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(scrape);
        scrape();
    });
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_probe_that_ends_after_its_cluster_was_deleted_is_told_to_nobody() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(5)).await;
    let member = scene.watched("ns/a");
    member.trigger(super::flavour::now().monotonic);
    let job = member.begin(&member.task()).expect("a probe is due");
    scene.registry.remove(&cluster("ns/a", 1));
    assert!(member.complete(&job, &tasks::timed_out(job.started, S(3))).is_none());
}

/// rule:stuck-tasks-are-replaced
#[tokio::test(start_paused = true)]
async fn a_task_that_is_gone_is_replaced_after_two_rounds() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(15)).await;
    scene.watched("ns/a").task().cancel();
    sleep(S(40)).await;
    assert_eq!(scene.metric("clusterhealth_task_restarts_total{reason=\"watchdog\"}"), 1);
    let probes = scene.members.probes("ns/a");
    sleep(S(25)).await;
    assert!(scene.members.probes("ns/a") >= probes + 2);
}

/// rule:unwatched-clusters-become-unknown
#[tokio::test(start_paused = true)]
async fn a_cap_that_is_too_small_is_told_and_clusters_that_wait_too_long_become_unknown() {
    let scene = Scene::new(1);
    let keys: Vec<_> = (0..60).map(|number| format!("ns/c{number}")).collect();
    for key in &keys {
        scene.add(key, 1);
    }
    sleep(S(15)).await;
    for key in &keys {
        scene.members.set(key, Answer::Silent);
    }
    sleep(S(100)).await;
    assert_eq!(scene.metric("clusterhealth_capacity_insufficient"), 1);
    let is_unknown = |key: &&String| scene.api.written(key).as_deref() == Some("Unknown");
    let unknown = keys.iter().filter(is_unknown).count();
    assert!(unknown > 10, "{unknown} are unknown");
    assert_eq!(scene.metric("clusterhealth_task_restarts_total{reason=\"watchdog\"}"), 0);
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_deleted_cluster_leaves_nothing_within_a_second() {
    let scene = Scene::new(0);
    scene.api.refuse(true);
    scene.add("ns/a", 1);
    sleep(S(5)).await;
    scene.members.set("ns/a", Answer::Silent);
    sleep(S(50)).await;
    assert!(scene.metrics().contains("transitions_total{cluster=\"a\""));
    assert!(scene.members.is_held("ns/a", 1));
    scene.registry.remove(&cluster("ns/a", 1));
    sleep(S(1)).await;
    assert!(!scene.members.is_held("ns/a", 1), "its client is dropped");
    assert!(!scene.metrics().contains("cluster=\"a\""));
    let probes = scene.members.probes("ns/a");
    scene.api.refuse(false);
    sleep(S(60)).await;
    assert_eq!((scene.members.probes("ns/a"), scene.api.written("ns/a")), (probes, None));
}

/// rule:one-prober-per-uid
#[tokio::test(start_paused = true)]
async fn a_new_object_under_an_old_name_is_another_cluster() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(15)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready));
    scene.members.set("ns/a", Answer::Silent);
    scene.add("ns/a", 2);
    assert_eq!(scene.health("ns/a"), None);
    sleep(S(4)).await;
    assert!(!scene.members.is_held("ns/a", 1));
    assert_eq!(scene.health("ns/a"), Some(Health::Unreachable), "the first result counts at once");
    scene.registry.remove(&cluster("ns/a", 1));
    assert!(scene.registry.knows(&cluster("ns/a", 2)));
}

#[tokio::test(start_paused = true)]
async fn another_credential_swaps_the_client_and_probes_and_the_same_one_does_neither() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(5)).await;
    let (probes, made) = (scene.members.probes("ns/a"), scene.members.made());
    scene.add("ns/a", 1);
    sleep(S(1)).await;
    assert_eq!((scene.members.probes("ns/a"), scene.members.made()), (probes, made));
    scene.add_with("ns/a", 1, |target| target.inputs = 2);
    sleep(S(1)).await;
    assert_eq!((scene.members.probes("ns/a"), scene.members.made()), (probes + 1, made + 1));
}

#[tokio::test(start_paused = true)]
async fn another_address_is_another_cluster_and_one_address_more_is_not() {
    let scene = Scene::new(0);
    let at = |addresses: &[&str]| {
        let addresses: Vec<Box<str>> = addresses.iter().map(|&it| it.into()).collect();
        let inputs = health::hash(&addresses.join(","));
        scene.add_with("ns/a", 1, move |target| {
            target.addresses = addresses;
            target.inputs = inputs;
        });
    };
    at(&["one"]);
    sleep(S(5)).await;
    scene.members.set("ns/a", Answer::Failing);
    at(&["two", "one"]);
    sleep(S(1)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready));
    at(&["three"]);
    sleep(S(1)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
    // A list that cannot be read has nothing in common with any.
    scene.members.set("ns/a", Answer::Ok);
    sleep(S(12)).await;
    scene.members.set("ns/a", Answer::Failing);
    at(&[]);
    at(&["four"]);
    sleep(S(1)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
}

/// rule:unchanged-status-is-written-at-heartbeats-only
#[tokio::test(start_paused = true)]
async fn a_status_is_written_when_it_changes_and_once_per_heartbeat() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(299)).await;
    assert_eq!(scene.api.writes(), 1);
    sleep(S(20)).await;
    assert_eq!(scene.api.writes(), 2);
    scene.facts.store(5, std::sync::atomic::Ordering::Relaxed);
    scene.registry.facts_changed(&cluster("ns/a", 1));
    sleep(S(1)).await;
    assert_eq!(scene.api.writes(), 3);
}

/// rule:changed-inputs-void-the-probe-under-way
#[tokio::test(start_paused = true)]
async fn a_probe_of_the_old_address_that_hangs_says_nothing_about_the_new_one() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(5)).await;
    scene.members.set("ns/a", Answer::Silent);
    sleep(Duration::from_millis(6500)).await;
    assert!(scene.watched("ns/a").view(|it| it.member.is_probing()), "a probe is under way");
    let probes = scene.members.probes("ns/a");
    scene.members.set("ns/a", Answer::Ok);
    scene.add_with("ns/a", 1, |target| {
        target.addresses = vec!["two".into()];
        target.inputs = 2;
    });
    sleep(S(1)).await;
    assert_eq!(scene.members.probes("ns/a"), probes + 1, "the new address is not made to wait");
    sleep(S(3)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready));
    assert_eq!(scene.api.events(), [""; 0], "the old address has no event");
}

/// rule:stuck-tasks-are-replaced
#[tokio::test(start_paused = true)]
async fn what_a_replaced_task_found_is_not_taken_in() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(5)).await;
    let (member, now) = (scene.watched("ns/a"), super::flavour::now());
    let old = member.task();
    member.trigger(now.monotonic);
    let job = member.begin(&old).expect("a probe is due");
    sleep(S(15)).await;
    let new = member.replace_if_stuck(now.monotonic + S(60)).expect("it is stuck");
    assert!(member.begin(&old).is_none(), "the old task begins nothing more");
    let next = member.begin(&new).expect("the new task probes at once");
    let report = |job: &Job| tasks::timed_out(job.started, S(3));
    assert!(member.complete(&job, &report(&job)).is_none());
    assert!(member.view(|it| it.member.is_probing()), "the new probe goes on");
    assert!(member.complete(&next, &report(&next)).is_some());
}

#[tokio::test(start_paused = true)]
async fn events_tell_of_changes_and_of_the_first_failure_of_a_run() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(12)).await;
    scene.members.set("ns/a", Answer::Failing);
    sleep(S(60)).await;
    scene.members.set("ns/a", Answer::Ok);
    sleep(S(12)).await;
    let reasons = scene.api.events();
    assert_eq!(reasons, ["RetrievingClusterHealthFailed", "ClusterNotReady", "ClusterReady"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_result_is_told_once_and_so_is_each_other_cause_of_the_same_trouble() {
    let scene = Scene::new(0);
    scene.members.set("ns/a", Answer::Failing);
    scene.add("ns/a", 1);
    sleep(S(30)).await;
    assert_eq!((scene.api.events(), scene.api.writes()), (vec!["ClusterNotReady".into()], 1));
    scene.members.set("ns/a", Answer::Refusing);
    sleep(S(30)).await;
    let told = vec!["ClusterNotReady".to_owned(); 2];
    assert_eq!((scene.api.events(), scene.api.writes()), (told, 2));
}

/// rule:a-pause-knows-nothing
#[tokio::test(start_paused = true)]
async fn a_paused_cluster_is_left_alone_and_what_was_known_of_it_is_forgotten() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    sleep(S(12)).await;
    scene.add_with("ns/a", 1, |target| target.paused = true);
    let probes = scene.members.probes("ns/a");
    sleep(S(300)).await;
    assert_eq!(scene.members.probes("ns/a"), probes);
    assert_eq!(scene.health("ns/a"), None);
    assert_eq!(scene.api.written("ns/a"), Some("paused".to_owned()));
    assert!(!scene.metrics().contains("clusterhealth_cluster_ready{"));
    // It was well before, and is not any more.
    scene.members.set("ns/a", Answer::Failing);
    scene.members.take(Duration::from_millis(500));
    let writes = scene.api.writes();
    scene.add("ns/a", 1);
    sleep(Duration::from_millis(250)).await;
    assert_eq!(scene.api.writes(), writes, "nothing is known yet");
    sleep(S(1)).await;
    assert_eq!(scene.members.probes("ns/a"), probes + 1);
    assert_eq!(scene.api.written("ns/a"), Some("NotReady".to_owned()));
    assert!(scene.metrics().contains("clusterhealth_cluster_ready{"));
}

/// rule:a-pause-knows-nothing
#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_paused_while_nobody_looked_is_told_of_as_paused() {
    let scene = Scene::new(0);
    scene.add_with("ns/a", 1, |target| {
        let at = super::flavour::now().wall;
        target.published = Some(health::Published::seed(Health::Ready, at, at, None));
        target.paused = true;
    });
    sleep(S(1)).await;
    assert_eq!(scene.health("ns/a"), None);
    assert_eq!(scene.api.written("ns/a"), Some("paused".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_wrote_while_our_own_write_was_under_way_is_written_over() {
    let scene = Scene::new(0);
    scene.api.delay_writes(S(3));
    scene.add("ns/a", 1);
    sleep(S(2)).await;
    assert_eq!(scene.api.writes(), 0, "it is under way");
    let (cluster, foreign) = (cluster("ns/a", 1), Some(7));
    scene.registry.shows(&cluster, foreign);
    sleep(S(2)).await;
    assert_eq!(scene.api.writes(), 1);
    sleep(S(5)).await;
    assert_eq!(scene.api.writes(), 2, "it was applied before the other one, or after");
    sleep(S(60)).await;
    assert_eq!(scene.api.writes(), 2);
}
