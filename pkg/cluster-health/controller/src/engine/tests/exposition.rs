//! The exposed metrics.

use health::{Endpoints, Lifetime};
use jiff::Timestamp;
use probe::WaivedChecks;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene};
use crate::engine::Contact;

fn series(page: &str) -> Vec<&str> {
    page.lines().filter(|line| !line.starts_with('#')).collect()
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn what_is_known_of_the_way_to_a_cluster_is_exposed_until_it_goes() {
    let scene = Scene::new(0);
    let ending =
        |second| Some(Lifetime { from: None, to: Timestamp::from_second(second).expect("a time") });
    scene.members.set_contact(Contact {
        credential: ending(4_000_000_000),
        certificate: ending(4_100_000_000),
        endpoints: Endpoints { down: 1, total: 3 },
        waived: WaivedChecks::from_names(["SubjectName"]),
    });
    scene.add("ns/a", 1);
    sleep(S(15)).await;
    assert_eq!(scene.metric("clusterhealth_stale_after_seconds{flavour=\"fake\"} "), 40);
    let rows = [
        ("clusterhealth_credential_expiry_timestamp_seconds", "", 4_000_000_000),
        ("clusterhealth_serving_certificate_expiry_timestamp_seconds", "", 4_100_000_000),
        ("clusterhealth_cluster_endpoints", ",state=\"down\"", 1),
        ("clusterhealth_cluster_endpoints", ",state=\"up\"", 2),
    ];
    for (name, further, value) in rows {
        let labels = format!("{{cluster=\"a\",flavour=\"fake\",namespace=\"ns\"{further}}} ");
        assert_eq!(scene.metric(&format!("{name}{labels}")), value, "{name}");
    }
    let waived = "clusterhealth_cluster_tls_checks_waived{check=\"SubjectName\",cluster=\"a\",";
    assert!(scene.metrics().contains(waived));
    scene.registry.remove(&super::cluster("ns/a", 1));
    let page = scene.metrics();
    let left: Vec<_> = series(&page).into_iter().filter(|it| it.contains("cluster=\"")).collect();
    assert_eq!(left, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn ends_that_are_near_and_addresses_that_are_down_are_told_once() {
    let scene = Scene::new(0);
    let end = Timestamp::now().checked_add(S(3 * 86_400)).expect("a time");
    scene.members.set_contact(Contact {
        credential: Some(Lifetime { from: None, to: end }),
        endpoints: Endpoints { down: 1, total: 3 },
        ..Contact::default()
    });
    scene.add("ns/a", 1);
    sleep(S(120)).await;
    assert_eq!(scene.api.events(), ["CredentialExpiring", "EndpointsDown"]);
}

#[tokio::test(start_paused = true)]
async fn without_series_of_each_cluster_a_thousand_clusters_have_fewer_than_five_hundred() {
    let scene = Scene::without_series_of_each_cluster();
    for number in 0..1000 {
        let key = format!("ns/c{number}");
        if number % 3 == 0 {
            scene.members.set(&key, Answer::Failing);
        }
        scene.add(&key, 1);
    }
    sleep(S(60)).await;
    let page = scene.metrics();
    assert_eq!(scene.metric(r#"clusterhealth_clusters{flavour="fake",state="ready"} "#), 666);
    let count = series(&page).len();
    assert!(count < 500, "{count} series");
    assert!(!page.contains("cluster=\""), "one of them is of a cluster");
}
