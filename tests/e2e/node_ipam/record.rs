//! The ConfigMap `icm-pools`, in which the leader publishes the numbers of its pools.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use tests::nodes::names;
use tests::poll::poll;
use tests::{create_nodes, delete_nodes, mk_node};

use crate::story::Story;

const NAME: &str = "icm-pools";

fn records(story: &Story) -> Api<ConfigMap> {
    Api::namespaced(story.client.clone(), "kube-system")
}

/// The only pool of the record.
fn pool(record: &ConfigMap) -> Value {
    let data = record.data.as_ref().expect("data");
    let pools: Vec<Value> = serde_json::from_str(&data["pools"]).unwrap();
    let [pool] = &pools[..] else { panic!("{pools:?}") };
    pool.clone()
}

/// The record, once its pool has so many free blocks.
async fn until_free(story: &Story, free: u64) -> ConfigMap {
    poll("the record has the number of free blocks", async || {
        let record = records(story).get_opt(NAME).await.unwrap()?;
        (pool(&record)["free"] == free).then_some(record)
    })
    .await
}

/// 300 Nodes for 256 blocks. A unit test on the paused clock has the seconds and the number of writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_is_in_the_record_and_a_deleted_record_is_made_again() {
    let story = Story::begin("--cluster-cidr=10.0.0.0/16").await;
    let first = until_free(&story, 256).await;
    let labels = first.metadata.labels.clone().unwrap_or_default();
    assert_eq!(labels["app.kubernetes.io/managed-by"], "infra-controller-manager");
    create_nodes(&story.client, names("n", 300).map(mk_node)).await;
    story.nodes.until("all blocks are taken", |now| now.assigned() == 256).await;
    let full = until_free(&story, 0).await;
    let expected = json!({
        "pool": "10.0.0.0/16", "mask": 24, "state": "serving", "blocks": 256, "used": 256,
        "free": 0, "resting": 0,
    });
    assert_eq!(pool(&full), expected);
    let servable = story.manager.metric("node_ipam_servable_nodes", &[]).await;
    assert_eq!(servable, Some(0.0));

    // 44 Nodes wait, so 44 of these blocks are taken again.
    delete_nodes(&story.client, names("n", 300).take(100)).await;
    let deleted = until_free(&story, 56).await;
    story.manager.until_metric("node_ipam_servable_nodes", &[], |it| it > 55.5).await;
    records(&story).delete(NAME, &DeleteParams::default()).await.unwrap();
    let again = until_free(&story, 56).await;
    assert_ne!(again.metadata.uid, deleted.metadata.uid, "the leader makes it again");
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_of_another_program_is_not_touched_and_costs_no_pod_cidr() {
    let mut story = Story::begin("--cluster-cidr=10.0.0.0/16 --publish-pools=false").await;
    assert_eq!(story.add("a").await, ["10.0.0.0/24"]);
    assert_eq!(records(&story).get_opt(NAME).await.unwrap(), None);
    let theirs: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": NAME}, "data": {"pools": "theirs"},
    }))
    .unwrap();
    let theirs = records(&story).create(&PostParams::default(), &theirs).await.unwrap();
    story.restart("--cluster-cidr=10.0.0.0/16").await;
    let told = story.manager.line("Cannot write ConfigMap kube-system/icm-pools: ").await;
    assert!(told.contains("does not have the label"), "{told}");
    assert_eq!(story.add("b").await, ["10.0.1.0/24"]);
    assert_eq!(records(&story).get(NAME).await.unwrap(), theirs);
    story.end();
}
