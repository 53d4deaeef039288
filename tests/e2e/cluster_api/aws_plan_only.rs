//! `--plan-only` writes the plan into the status and nothing to AWS.

use serde_json::Value;

use crate::aws_stage::{NAME, Stage, is_ready};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, condition};

/// The operations of a plan, in order of their names.
fn operations(object: &Value) -> Vec<String> {
    let writes = object["status"]["plan"]["writes"].as_array().expect("there is a plan");
    let first = |write: &Value| write.as_str().unwrap().split(' ').next().unwrap().to_owned();
    sorted(writes.iter().map(first).collect())
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// rule:plan-only-sends-nothing
#[tokio::test(flavor = "multi_thread")]
async fn what_is_planned_stands_in_the_status_and_is_done_only_without_plan_only() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let has_plan = |it: &Value| it["status"]["plan"]["writes"].is_array();
    let manager = stage.start_with_aws("--plan-only");
    stage.run("apply -f config/samples/cluster-api.yaml");
    let planned = stage.until(AWS_CLUSTERS, NAME, "is planned", has_plan).await;
    assert_eq!(planned["status"]["plan"]["writes"][0], "CreateVpc");
    assert_eq!(planned["status"]["plan"]["problems"], Value::Null);
    assert_eq!(condition(&planned, "PlanOnly")["status"], "True");
    assert_eq!(planned["metadata"]["finalizers"], Value::Null, "there is nothing to clean up");
    stage.end(manager).await;
    assert_eq!(stage.writes(), [""; 0]);

    let manager = stage.start_with_aws("");
    let made = stage
        .until(AWS_CLUSTERS, NAME, "is ready and has no plan", |it| {
            is_ready(it) && it["status"]["plan"].is_null()
        })
        .await;
    assert_eq!(condition(&made, "PlanOnly"), &Value::Null);
    assert_eq!(sorted(stage.writes()), operations(&planned), "as it was planned");
    stage.end(manager).await;

    stage.proxy.forget();
    let manager = stage.start_with_aws("--plan-only");
    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    let planned = stage
        .until(AWS_CLUSTERS, NAME, "has a plan for its end", |it| {
            has_plan(it) && !it["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    stage.end(manager).await;
    assert_eq!(stage.writes(), [""; 0]);
    let manager = stage.start_with_aws("");
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    assert_eq!(sorted(stage.writes()), operations(&planned), "as it was planned");
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
