//! A panic in a prober or a flavour costs the work on one cluster only.

use std::sync::atomic::Ordering;

use health::Health;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene};
use crate::engine::flavour::now;
use crate::engine::serve;

/// rule:stuck-tasks-are-replaced
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_prober_is_contained_and_the_task_goes_on() {
    let scene = Scene::new(0);
    scene.members.set("ns/bad", Answer::Panic);
    scene.add("ns/bad", 1);
    sleep(S(8)).await;
    assert!(scene.metric("clusterhealth_task_restarts_total{reason=\"panic\"}") >= 4);
    scene.members.set("ns/bad", Answer::Ok);
    sleep(S(10)).await;
    assert_eq!(scene.health("ns/bad"), Some(Health::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_each_time_comes_to_its_regular_interval() {
    let scene = Scene::new(0);
    scene.members.set("ns/bad", Answer::Panic);
    scene.add("ns/bad", 1);
    sleep(S(120)).await;
    let probes = scene.members.probes("ns/bad");
    assert!((12..=20).contains(&probes), "{probes} probes in two minutes");
}

/// rule:panics-end-no-service
#[tokio::test(start_paused = true)]
async fn a_panic_while_a_status_is_made_loses_no_write() {
    let scene = Scene::new(0);
    scene.panics.in_fields.store(true, Ordering::Relaxed);
    scene.add("ns/a", 1);
    sleep(S(2)).await;
    assert_eq!(scene.api.written("ns/a"), Some("Ready".to_owned()));
    assert!(scene.clusters.writer.oldest(now().monotonic).is_zero());
}

/// rule:panics-end-no-service
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_round_of_the_patrol_ends_nothing_but_the_look_at_one_cluster() {
    let scene = Scene::new(0);
    let keys = ["ns/a", "ns/b"];
    for key in keys {
        scene.add(key, 1);
    }
    sleep(S(5)).await;
    for key in keys {
        scene.members.set(key, Answer::Silent);
    }
    scene.panics.in_fingerprint.store(true, Ordering::Relaxed);
    // No probe is completed, so that only the sweeper speaks of them.
    for _ in 0..60 {
        for key in keys {
            scene.watched(key).task().cancel();
        }
        sleep(S(1)).await;
    }
    let unknown = keys.iter().filter(|key| scene.api.written(key).as_deref() == Some("Unknown"));
    assert_eq!(unknown.count(), 1, "the other one is told, too");
    for key in keys {
        assert_eq!(scene.health(key), Some(Health::Unknown));
        scene.members.set(key, Answer::Ok);
    }
    sleep(S(40)).await;
    assert!(keys.iter().all(|key| scene.api.written(key).as_deref() == Some("Ready")));
}

/// rule:panics-end-no-service
#[tokio::test(start_paused = true)]
async fn a_service_that_panics_fails_the_controller_and_one_that_ends_does_not() {
    let scene = Scene::new(0);
    let broken = serve(&scene.clusters, Some(async { panic!("a service that panics") })).await;
    assert!(matches!(broken, Err(manager::Failure::Panicked(_))));
    assert!(serve(&scene.clusters, Some(async {})).await.is_ok());
}
