//! Clusters that upstream's provider made: nothing is done to them before they are adopted, and
//! their deletion does not end without a word. The whole table is in `aws-network`
//! (`tests/convergence/ownership.rs`).

use serde_json::{Value, json};

use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

const OWNER: &str = "aws.cluster.x-k8s.io/owner-id";

fn texts(answer: &str, element: &str) -> Vec<String> {
    let start = format!("<{element}>");
    let pieces = answer.split(&*start).skip(1);
    pieces.map(|piece| piece.split('<').next().unwrap().to_owned()).collect()
}

/// Removes our mark from everything that an owner has, and says which VPC it has.
async fn as_upstream_made_it(stage: &Stage, name: &str, owner: &str) -> String {
    let upstream = stage.proxy.upstream();
    let marked = [
        ("Action", "DescribeTags"),
        ("Filter.1.Name", "key"),
        ("Filter.1.Value.1", OWNER),
        ("Filter.2.Name", "value"),
        ("Filter.2.Value.1", owner),
    ];
    let ids = texts(&upstream.ec2(REGION, &marked).await, "resourceId");
    assert!(ids.len() > 8, "{ids:?}");
    for id in &ids {
        let unmark = [("Action", "DeleteTags"), ("ResourceId.1", id), ("Tag.1.Key", OWNER)];
        upstream.ec2(REGION, &unmark).await;
    }
    let balancer = format!("{name}-apiserver");
    let unmark = [
        ("Action", "RemoveTags"),
        ("LoadBalancerNames.member.1", balancer.as_str()),
        ("Tags.member.1.Key", OWNER),
    ];
    upstream.elb(REGION, &unmark).await;
    ids.into_iter().find(|id| id.starts_with("vpc-")).unwrap()
}

/// Deletes objects as if they had never been ours.
async fn forget(stage: &Stage, name: &str) {
    for kind in [AWS_CLUSTERS, CLUSTERS] {
        stage.run(&format!("delete {kind} {name} --wait=false"));
        stage.patch(&format!("{kind} {name}"), "merge", &json!({"metadata": {"finalizers": null}}));
        stage.until_gone(kind, name).await;
    }
}

/// rule:a-deletion-names-what-it-leaves
#[tokio::test(flavor = "multi_thread")]
async fn what_upstream_made_is_left_alone_and_goes_or_stays_as_its_user_says() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let names = ["adopted", "abandoned"];
    let manager = stage.start_with_aws("");
    for name in names {
        stage.create(&ours(name, &spec("10.1.1.0/24")));
        stage.create(&cluster(name));
    }
    let mut owners = Vec::new();
    for name in names {
        let made = stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
        owners.push(made["metadata"]["uid"].as_str().unwrap().to_owned());
    }
    stage.end(manager).await;
    let mut vpcs = Vec::new();
    for (name, owner) in names.into_iter().zip(&owners) {
        vpcs.push(as_upstream_made_it(&stage, name, owner).await);
        forget(&stage, name).await;
    }
    let made = stage.totals().await;
    stage.proxy.forget();

    // With the id of its VPC in the spec, where upstream writes it, and without.
    let manager = stage.start_with_aws("");
    for (name, vpc) in names.into_iter().zip(&vpcs) {
        let mut spec = spec("10.1.1.0/24");
        if name == "adopted" {
            spec["network"]["vpc"]["id"] = json!(vpc);
        }
        stage.create(&ours(name, &spec));
        stage.create(&cluster(name));
    }
    let is_blocked =
        |kind: &'static str| move |it: &Value| condition(it, kind)["reason"] == "OwnershipConflict";
    for name in names {
        stage.until(AWS_CLUSTERS, name, "is upstream's", is_blocked("VpcReady")).await;
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
    }
    for (name, vpc) in names.into_iter().zip(&vpcs) {
        let blocked =
            stage.until(AWS_CLUSTERS, name, "cannot be deleted", is_blocked("Deleting")).await;
        let message = condition(&blocked, "Deleting")["message"].as_str().unwrap();
        let start = format!("cannot finish deletion: {vpc}, ");
        assert!(message.starts_with(&start), "{message}");
        for way in ["adopt=true to delete", "allow-abandon=true to keep them"] {
            assert!(message.contains(way), "{message}");
        }
    }
    assert_eq!(stage.writes(), [""; 0]);
    assert_eq!(stage.totals().await, made);

    stage.run(&format!("annotate {AWS_CLUSTERS} adopted aws.cluster.x-k8s.io/adopt=true"));
    stage.until_gone(AWS_CLUSTERS, "adopted").await;
    let left = stage.totals().await;
    stage
        .run(&format!("annotate {AWS_CLUSTERS} abandoned aws.cluster.x-k8s.io/allow-abandon=true"));
    stage.until_gone(AWS_CLUSTERS, "abandoned").await;
    stage.tells_of("Abandoned", &vpcs[1]).await;
    assert_eq!(stage.totals().await, left, "nothing of the other one is touched");
    for (kind, count) in &made {
        assert_eq!(left[kind] - before[kind], (count - before[kind]) / 2, "{kind}");
    }
    stage.end(manager).await;
}
