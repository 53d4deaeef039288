//! ClusterProfiles through the pipeline.

use serde_json::{Value, json};

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
