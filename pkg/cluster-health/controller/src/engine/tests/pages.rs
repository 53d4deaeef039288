//! The debug page.

use health::Code;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene, cluster};

#[tokio::test(start_paused = true)]
async fn the_debug_page_is_a_table_for_people_and_json_for_programs() {
    let scene = Scene::new(0);
    scene.members.set("ns/bad", Answer::Failing);
    scene.add("ns/bad", 1);
    scene.add("ns/good", 1);
    sleep(S(15)).await;
    let table = scene.page("/debug", None).await;
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("FLAVOUR  CLUSTER  PUBLISHED"), "{table}");
    assert!(lines[1].contains("ns/bad") && lines[1].contains("http-500"), "{table}");
    assert_eq!(lines.len(), 3, "{table}");
    let json = scene.page("/debug?format=json", None).await;
    let page: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let rows = &page["clusters"];
    assert_eq!((&rows[0]["cluster"], &rows[1]["published"]), (&"ns/bad".into(), &"ready".into()));
    let message = rows[0]["message"].as_str().expect("it is text");
    assert!(message.contains("http-500; failed 2 times in a row, next probe after "), "{message}");
    let next = rows[0]["nextProbeInSeconds"].as_f64().expect("it is a number");
    assert!((0.0..=11.0).contains(&next), "{next}");
    let since: Timestamp = rows[0]["availableSince"].as_str().unwrap().parse().unwrap();
    assert!(Timestamp::now().duration_since(since).as_secs() >= 15, "{since}");
    assert_eq!((page["total"].as_u64(), &rows[0]["stored"]), (Some(2), &serde_json::Value::Null));
    assert_eq!(scene.page("/debug", Some("application/json")).await.as_bytes()[0], b'{');
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_clusters_those_that_are_asked_for_are_shown() {
    let scene = Scene::new(0);
    for number in 0..1000 {
        let key = format!("ns/c{number:03}");
        if number % 100 == 7 {
            scene.members.set(&key, Answer::Failing);
        }
        scene.add(&key, 1);
    }
    sleep(S(30)).await;
    let lines = async |query: &str| scene.page(query, None).await.lines().count() - 1;
    let whole = scene.page("/debug", None).await;
    assert_eq!(whole.lines().count(), 1 + 500 + 2, "the limit, and what to do about it");
    assert!(whole.ends_with(
        "500 more; narrow them down with ?name=, ?state= or ?flavour=, or show all with ?limit=0\n"
    ));
    assert_eq!(lines("/debug?limit=0").await, 1000);
    assert_eq!(lines("/debug?state=notready").await, 10);
    assert_eq!(lines("/debug?state=notready&name=c9").await, 1);
    assert_eq!(lines("/debug?flavour=other").await, 0);
    assert!(scene.page("/debug?state=bad", None).await.starts_with("cannot show state"));
    let json = scene.page("/debug?format=json&limit=3&state=ready", None).await;
    let page: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(page["total"].as_u64(), Some(990));
    assert_eq!(page["clusters"].as_array().map(Vec::len), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_held_back_is_shown_with_what_it_waits_for_until_it_is_told_of() {
    let scene = Scene::new(0);
    let (held, other) = (cluster("ns/a", 1), cluster("ns/b", 1));
    for cluster in [&held, &other] {
        scene.registry.hold_back(cluster, Code::SecretMissing, "there is no credential for it");
    }
    let page = scene.page("/debug", None).await;
    let line = page.lines().find(|line| line.contains("ns/a")).unwrap();
    assert!(line.contains("secret-missing") && line.contains("held back"), "{page}");
    let json: Value = serde_json::from_str(&scene.page("/debug?format=json", None).await).unwrap();
    assert_eq!(json["clusters"][0]["message"], "there is no credential for it");
    assert_eq!(json["auditing"], false);
    scene.add("ns/a", 1);
    scene.registry.remove(&other);
    let page = scene.page("/debug", None).await;
    assert!(!page.contains("held back") && page.contains("ns/a"), "{page}");
    assert!(!page.contains("ns/b"), "{page}");
}
