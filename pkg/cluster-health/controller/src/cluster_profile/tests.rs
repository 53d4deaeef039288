//! ClusterProfiles through the pipeline.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;
use workqueue::Next;

use super::ClusterProfiles;
use super::testing::sent;
use crate::api::cluster_profile::CLUSTER_PROFILES;
use crate::engine::tests::pipeline::{Bench, Conforming as _, conforms};

conforms!(ClusterProfiles);

fn written(bench: &Bench<ClusterProfiles>) -> Value {
    bench.scene.api.status(&CLUSTER_PROFILES[0], "ns/a").unwrap()
}

/// rule:a-shared-status-is-shared
#[tokio::test(start_paused = true)]
async fn an_object_that_is_no_longer_selected_gets_one_empty_apply() {
    let bench = Bench::<ClusterProfiles>::start(ClusterProfiles::object("u1", 1, 1, "")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    let conditions = written(&bench)["conditions"].clone();
    let mut ignored = ClusterProfiles::object("u1", 9, 1, "left alone");
    ignored["status"]["conditions"] = conditions;
    let writes = bench.scene.api.writes();
    bench.change("MODIFIED", ignored).await;
    bench.look().await.unwrap();
    assert_eq!((written(&bench), bench.scene.api.writes()), (json!({}), writes + 1));
    bench.change("MODIFIED", ClusterProfiles::object("u1", 10, 1, "left alone")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.scene.api.writes(), writes + 1, "nothing of ours is left");
}

/// rule:a-shared-status-is-shared
#[tokio::test(start_paused = true)]
async fn a_first_write_that_is_under_way_when_an_object_is_no_longer_selected_is_taken_back() {
    let bench = Bench::<ClusterProfiles>::start(ClusterProfiles::object("u1", 1, 1, "")).await;
    bench.scene.api.delay_writes(Duration::from_secs(30));
    bench.look().await.unwrap();
    assert_eq!(bench.written(), None, "it is under way");
    // The cache shows no condition of ours.
    bench.change("MODIFIED", ClusterProfiles::object("u1", 9, 1, "left alone")).await;
    bench.look().await.unwrap();
    sleep(Duration::from_secs(90)).await;
    assert_eq!((written(&bench), bench.scene.api.writes()), (json!({}), 2));
}

/// rule:a-shared-status-is-shared
#[tokio::test(start_paused = true)]
async fn conditions_that_another_installation_renews_stay() {
    // (age of the conditions, whether they are withdrawn)
    for (minutes, withdrawn) in [(1, false), (14, false), (16, true)] {
        let probed = Timestamp::now() - Duration::from_secs(60 * minutes);
        let mut listed = ClusterProfiles::object("u1", 1, 1, "left alone");
        listed["status"]["conditions"] = json!([{
            "type": "infra-controller-manager/Healthy", "status": "True", "reason": "ClusterReady",
            "message": "/readyz responded with ok",
        }]);
        listed["status"]["properties"] = json!([{
            "name": "infra-controller-manager/probe", "value": "ok",
            "lastObservedTime": format!("{probed:.0}"),
        }]);
        let bench = Bench::<ClusterProfiles>::start(listed).await;
        let next = bench.look().await.unwrap();
        assert_eq!(bench.scene.api.writes(), usize::from(withdrawn), "{minutes}");
        match next {
            Next::After(left) => assert!(left <= Duration::from_secs(60 * (15 - minutes))),
            Next::Done => assert!(withdrawn, "it is looked at again"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_profile_of_our_manager_has_the_condition_of_the_control_plane() {
    for (manager, has_it) in [("another", false), ("infra-controller-manager", true)] {
        let listed = sent(|it| it["spec"]["clusterManager"]["name"] = manager.into());
        let bench = Bench::<ClusterProfiles>::start(listed).await;
        bench.look().await.unwrap();
        let status = written(&bench);
        let conditions = status["conditions"].as_array().unwrap();
        let types: Vec<_> = conditions.iter().map(|it| it["type"].as_str().unwrap()).collect();
        let mut expected =
            vec!["infra-controller-manager/Healthy", "infra-controller-manager/Reachable"];
        expected.extend(has_it.then_some("ControlPlaneHealthy"));
        assert_eq!(types, expected);
        assert_eq!(status["properties"][0]["value"], "ok");
        assert!(status.get("accessProviders").is_none() && status.get("version").is_none());
    }
}
