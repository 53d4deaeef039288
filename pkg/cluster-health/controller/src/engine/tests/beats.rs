//! The Leases of members at work: what they say is heard at each probe.

use std::sync::Arc;

use health::{EvidenceSource, Health, Policy, Published, Renewal};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::S;
use super::scene::{Answer, Scene, policy};

fn renew(scene: &Scene, key: &str, time: &str, readyz: Option<&str>) {
    let uid = &scene.watched(key).cluster.uid;
    let said = Renewal { time: Some(time.into()), duration: None, readyz: readyz.map(Into::into) };
    scene.clusters.beats.renew(&Arc::from(format!("fake-{uid}")), said);
}

/// rule:our-outage-is-not-theirs
#[tokio::test(start_paused = true)]
async fn a_lease_speaks_for_a_member_until_it_is_silent_or_the_member_answers() {
    let scene = Scene::new(0);
    for key in ["ns/a", "ns/b"] {
        scene.add(key, 1);
    }
    scene.clusters.beats.set_live(true);
    sleep(S(15)).await;
    renew(&scene, "ns/a", "1", None);
    for key in ["ns/a", "ns/b"] {
        scene.members.set(key, Answer::Unreachable);
    }
    sleep(S(40)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready));
    assert_eq!(scene.health("ns/b"), Some(Health::Unreachable), "it has no Lease");
    assert!(scene.api.events().iter().any(|it| it == "ProbePathDown"));
    assert_eq!(scene.metric("clusterhealth_members_path_down{flavour=\"fake\"} "), 1);
    assert_eq!(scene.metric("clusterhealth_members_by_beat{beat=\"well\",flavour=\"fake\"} "), 1);

    renew(&scene, "ns/a", "2", Some("http-500"));
    sleep(S(15)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
    // Nothing can be heard for an hour, which nobody counts.
    scene.clusters.beats.set_live(false);
    sleep(S(3600)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::NotReady));
    scene.clusters.beats.set_live(true);
    sleep(S(200)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Unreachable), "its Lease is silent");
    scene.members.set("ns/a", Answer::Ok);
    sleep(S(15)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Ready), "an answer decides");
}

/// rule:our-outage-is-not-theirs
#[tokio::test(start_paused = true)]
async fn a_cut_path_or_lost_renewals_change_nothing_and_both_together_are_an_outage() {
    let scene = Scene::new(0);
    scene.add("ns/a", 1);
    scene.clusters.beats.set_live(true);
    sleep(S(15)).await;
    // The member renews every 20 s; its clock is an hour behind from the second time on.
    let beat_for = async |minutes: u64, hour: &str| {
        for minute in 0..minutes {
            for second in ["00", "20", "40"] {
                renew(&scene, "ns/a", &format!("2026-11-28T{hour}:{minute:02}:{second}Z"), None);
                sleep(S(20)).await;
            }
        }
    };
    let is_unchanged = || {
        let transitions = scene.metrics().contains("clusterhealth_cluster_transitions_total");
        !transitions && scene.health("ns/a") == Some(Health::Ready)
    };
    scene.members.set("ns/a", Answer::Unreachable);
    beat_for(60, "12").await;
    assert!(is_unchanged(), "the path of the probes was cut for an hour");
    assert_eq!(scene.metric("clusterhealth_members_path_down{flavour=\"fake\"} "), 1);
    beat_for(10, "11").await;
    assert!(is_unchanged(), "the clock of the member went back");
    scene.clusters.beats.set_live(false);
    sleep(S(600)).await;
    scene.clusters.beats.set_live(true);
    beat_for(3, "10").await;
    assert!(is_unchanged(), "the API server of the management cluster was down for ten minutes");
    scene.members.set("ns/a", Answer::Ok);
    sleep(S(3600)).await;
    assert!(is_unchanged(), "nothing was renewed for an hour");

    beat_for(1, "13").await;
    let (cut, limit) = (Instant::now(), S(33) + 3 * S(60));
    scene.members.set("ns/a", Answer::Unreachable);
    while scene.health("ns/a") != Some(Health::Unreachable) {
        sleep(S(1)).await;
        assert!(cut.elapsed() <= limit, "after {:?}", cut.elapsed());
    }
    assert!(cut.elapsed() > S(120), "after {:?}", cut.elapsed());
}

/// rule:unwatched-clusters-become-unknown
#[tokio::test(start_paused = true)]
async fn without_a_namespace_of_leases_a_member_that_is_judged_by_one_becomes_unknown_and_says_so()
{
    let scene = Scene::without_leases();
    let by_lease = |target: &mut super::super::flavour::Target| {
        target.policy = Policy { evidence: EvidenceSource::Beats, ..policy() };
    };
    scene.add_with("ns/a", 1, by_lease);
    sleep(S(120)).await;
    assert_eq!(scene.health("ns/a"), Some(Health::Unknown));
    let (_, _, message) = scene.watched("ns/a").said(super::super::flavour::now().monotonic);
    for part in ["annotation infra-controller-manager/evidence", "--cluster-health-beats-namespace"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(scene.members.probes("ns/a"), 0);
    assert_eq!(scene.api.written("ns/a").as_deref(), Some("Unknown"));
}

/// rule:a-restart-changes-nothing
#[tokio::test(start_paused = true)]
async fn of_a_member_that_was_offline_before_a_restart_a_lease_of_any_age_says_nothing() {
    let scene = Scene::new(0);
    scene.members.set("ns/a", Answer::Unreachable);
    let since = Timestamp::now();
    scene.add_with("ns/a", 1, |target| {
        target.published = Some(Published::seed(Health::Unreachable, since, since, None));
    });
    renew(&scene, "ns/a", "1", None);
    scene.clusters.beats.set_live(true);
    let is_told = || scene.api.events().iter().any(|it| it == "ProbePathDown");
    sleep(S(60)).await;
    assert!(!is_told() && scene.health("ns/a") == Some(Health::Unreachable));
    renew(&scene, "ns/a", "2", None);
    sleep(S(15)).await;
    assert!(is_told() && scene.health("ns/a") == Some(Health::Unreachable));
}
