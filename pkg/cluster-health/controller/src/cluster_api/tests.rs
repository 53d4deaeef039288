//! Clusters of Cluster API through the pipeline.

use serde_json::{Value, json};

use super::ClusterApi;
use super::testing::sent;
use crate::api::cluster_api::CLUSTERS;
use crate::engine::tests::pipeline::{Bench, Conforming as _, conforms};

conforms!(ClusterApi);

fn conditions(bench: &Bench<ClusterApi>) -> Value {
    bench.scene.api.status(&CLUSTERS[0], "ns/a").unwrap()["conditions"].clone()
}

/// rule:a-pause-knows-nothing
#[tokio::test(start_paused = true)]
async fn a_paused_cluster_is_not_probed_and_says_why_once() {
    for (pause, why) in [
        (json!({"spec": {"paused": true}}), "spec.paused"),
        (
            json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}),
            "the annotation cluster.x-k8s.io/paused",
        ),
    ] {
        let paused = |version: u64, conditions: &Value| {
            let mut object = ClusterApi::object("u1", version, 1, "");
            for part in ["spec", "metadata"] {
                let Some(fields) = pause[part].as_object() else { continue };
                for (field, value) in fields {
                    match (&mut object[part][field], value) {
                        (Value::Object(of), Value::Object(more)) => of.extend(more.clone()),
                        (of, value) => *of = value.clone(),
                    }
                }
            }
            object["status"]["conditions"] = conditions.clone();
            object
        };
        let bench = Bench::<ClusterApi>::start(ClusterApi::object("u1", 1, 1, "")).await;
        bench.look().await.unwrap();
        assert_eq!(bench.written().as_deref(), Some("Ready"));
        let ready = conditions(&bench);
        bench.change("MODIFIED", paused(9, &ready)).await;
        bench.look().await.unwrap();
        let (written, probes) = (conditions(&bench), bench.scene.members.probes("ns/a"));
        for condition in written.as_array().unwrap() {
            assert_eq!(
                (&condition["status"], &condition["reason"]),
                (&json!("Unknown"), &json!("ClusterPaused"))
            );
            assert!(condition["message"].as_str().unwrap().ends_with(why), "{condition}");
        }
        let writes = bench.scene.api.writes();
        bench.change("MODIFIED", paused(10, &written)).await;
        bench.look().await.unwrap();
        let after = (bench.scene.api.writes(), bench.scene.members.probes("ns/a"));
        assert_eq!(after, (writes, probes));
    }
}

/// rule:a-shared-status-is-shared
#[tokio::test(start_paused = true)]
async fn only_a_cluster_whose_control_plane_was_up_is_probed_and_one_that_is_deleted_is_left_alone()
{
    let waiting = sent(|it| it["status"] = json!({}));
    let bench = Bench::<ClusterApi>::start(waiting).await;
    bench.look().await.unwrap();
    assert_eq!((bench.scene.members.probes("ns/a"), bench.written()), (0, None));
    bench.change("MODIFIED", ClusterApi::object("u1", 9, 1, "")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    let (written, writes) = (conditions(&bench), bench.scene.api.writes());
    let mut deleted = ClusterApi::object("u1", 10, 1, "");
    deleted["metadata"]["deletionTimestamp"] = "2026-11-24T12:00:00Z".into();
    deleted["status"]["conditions"] = written;
    bench.change("MODIFIED", deleted).await;
    bench.scene.members.set("ns/a", crate::engine::tests::scene::Answer::Unreachable);
    bench.look().await.unwrap();
    assert_eq!(bench.scene.api.writes(), writes);
}
