//! An audit, next to a controller that still publishes.

use health::Health;
use tokio::time::sleep;

use super::S;
use super::scene::{Answer, Scene};

/// rule:an-audit-writes-nothing
#[tokio::test(start_paused = true)]
async fn an_audit_writes_nothing_and_shows_lasting_differences_everywhere() {
    let scene = Scene::auditing();
    *scene.stored.lock() = Some(Health::Ready);
    scene.members.set("ns/bad", Answer::Failing);
    scene.add("ns/bad", 1);
    scene.add("ns/good", 1);
    sleep(S(15)).await;
    let differs = |name: &str| {
        let labels = format!("{{cluster=\"{name}\",flavour=\"fake\",namespace=\"ns\"}} ");
        scene.metric(&format!("clusterhealth_cluster_audit_differs{labels}"))
    };
    assert_eq!([differs("bad"), differs("good")], [0, 0], "it may be a matter of moments");
    sleep(S(300)).await;
    assert_eq!([differs("bad"), differs("good")], [1, 0]);
    let total =
        r#"clusterhealth_audit_differences{flavour="fake",ours="notready",stored="ready"} "#;
    assert_eq!(scene.metric(total), 1);
    let page = scene.page("/debug", None).await;
    let line = page.lines().find(|line| line.contains("ns/bad")).expect("it is shown");
    assert!(line.contains("notready") && line.ends_with("ready"), "{page}");
    assert!(page.ends_with(
        "Audit: no status is written. STORED is the stored health where it differs from the result of the probes.\n"
    ));
    let json = scene.page("/debug?format=json&name=bad", None).await;
    let page: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(page["clusters"][0]["stored"], "ready");
    assert!(page["clusters"][0]["differsForSeconds"].as_f64().expect("a number") > 250.0, "{page}");
    *scene.stored.lock() = Some(Health::NotReady);
    sleep(S(30)).await;
    assert_eq!([differs("bad"), differs("good")], [0, 1]);
    assert_eq!((scene.api.writes(), scene.api.events()), (0, vec![]));
}
