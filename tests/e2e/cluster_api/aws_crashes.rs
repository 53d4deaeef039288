//! The program is killed with calls of AWS under way, whose answers it never gets, and comes back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::aws_proxy::Fate;
use tests::aws_totals::totals;
use tests::{PATIENCE, Process};

use crate::aws_identities::{role, using};
use crate::aws_stage::{NAME, REGION, Stage, is_ready, sample};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster};

/// Lets the program live until it dies of this call.
pub(crate) async fn live_until(stage: &Stage, action: &'static str, number: usize) {
    live_until_fate(stage, Fate::CrashAfter, action, number).await;
}

/// Like [`live_until`], by this fate of the call.
async fn live_until_fate(stage: &Stage, fate: Fate, action: &'static str, number: usize) {
    stage.die_at(fate, action, number);
    let manager = stage.start_with_aws("");
    stage.died().await;
    end(stage, manager).await;
}

/// The dead sends nothing any more.
pub(crate) async fn end(stage: &Stage, manager: Process) {
    manager.kill();
    manager.exit(PATIENCE).await;
    stage.proxy.revive().await;
    stage.proxy.forget();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_in_the_middle_of_making_and_removing_leaves_nothing_twice_and_nothing_behind()
 {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let began = Instant::now();
    stage.proxy.shows_late(Duration::from_secs(5), move || began.elapsed());
    stage.run("apply -f config/samples/cluster-api.yaml");
    // The first two have no token and no name that AWS would refuse twice. Each is followed by the
    // next.
    let points =
        [("CreateVpc", 0), ("AllocateAddress", 1), ("CreateNatGateway", 1), ("CreateRoute", 2)];
    for (action, number) in points {
        live_until(&stage, action, number).await;
    }
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;
    assert_eq!(stage.added(&before).await, sample(3));

    stage.die_after("DeleteNatGateway", 1);
    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    stage.died().await;
    end(&stage, manager).await;
    live_until(&stage, "DeleteVpc", 0).await;
    let manager = stage.start_with_aws("");
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.until_gone(CLUSTERS, NAME).await;
    stage.end(manager).await;
}

/// rule:memory-is-in-the-status
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_deleted_while_no_process_runs_is_removed_without_its_status() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    stage.run("apply -f config/samples/cluster-api.yaml");
    live_until(&stage, "CreateSubnet", 3).await;
    let half = stage.added(&before).await;
    assert!(half["Vpcs"] == 1 && half["Subnets"] >= 1, "{half:?}");
    let none = json!({"status": null});
    stage.patch(&format!("{AWS_CLUSTERS} {NAME} --subresource=status"), "merge", &none);
    assert_eq!(stage.find(AWS_CLUSTERS, NAME).await.unwrap()["status"], Value::Null);
    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    let manager = stage.start_with_aws("");
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.until_gone(CLUSTERS, NAME).await;
    stage.end(manager).await;
}

/// cluster-api-provider-aws#1454, rule:held-before-the-first-write
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_deleted_at_the_first_call_is_held_until_nothing_of_it_is_left() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    stage.proxy.decide(|number, _| if number == 0 { Fate::CrashBefore } else { Fate::Pass });
    stage.run("apply -f config/samples/cluster-api.yaml");
    let manager = stage.start_with_aws("");
    stage.died().await;
    let held = stage.find(AWS_CLUSTERS, NAME).await.unwrap();
    let finalizer = "awscluster.infrastructure.cluster.x-k8s.io";
    assert_eq!(held["metadata"]["finalizers"], json!([finalizer]));
    let identity = &held["metadata"]["annotations"]["aws.cluster.x-k8s.io/owner-id"];
    assert_eq!(*identity, held["metadata"]["uid"]);
    end(&stage, manager).await;

    // AWS carries out the first write, and the answer is lost.
    stage.die_after("CreateVpc", 0);
    let manager = stage.start_with_aws("");
    stage.died().await;
    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    end(&stage, manager).await;
    assert_eq!(stage.added(&before).await["Vpcs"], 1);
    let manager = stage.start_with_aws("");
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.until_gone(CLUSTERS, NAME).await;
    stage.end(manager).await;
}

/// A session of a role ends with the process, and the next process assumes the role again.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_with_the_session_of_a_role_leaves_nothing_twice_and_nothing_behind() {
    let Some(stage) = Stage::set().await else { return };
    // Each account begins with the same.
    let before = stage.totals().await;
    let began = Instant::now();
    stage.proxy.shows_late(Duration::from_secs(5), move || began.elapsed());
    stage.run("label namespace default team=a --overwrite");
    stage.create_all(&[role(), using("role", "Role"), cluster("role")]);
    for action in ["AssumeRole", "CreateVpc", "CreateInternetGateway", "CreateLoadBalancer"] {
        for fate in [Fate::CrashBefore, Fate::CrashAfter] {
            live_until_fate(&stage, fate, action, 0).await;
        }
    }
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, "role", "is ready", is_ready).await;
    let calls = stage.proxy.calls();
    let session = calls.iter().find(|call| call.is_write()).unwrap().key.clone();
    let account = stage.proxy.upstream().with_key(&session);
    let made = totals(&account, REGION).await;
    for (kind, number) in
        [("Vpcs", 1), ("Subnets", 2), ("InternetGateways", 1), ("ClassicLoadBalancers", 1)]
    {
        assert_eq!(made[kind] - before[kind], number, "{kind}: {made:?}");
    }
    stage.die_after("DeleteLoadBalancer", 0);
    stage.run(&format!("delete {CLUSTERS} role --wait=false"));
    stage.died().await;
    end(&stage, manager).await;
    for fate in [Fate::CrashBefore, Fate::CrashAfter] {
        live_until_fate(&stage, fate, "DeleteVpc", 0).await;
    }
    let manager = stage.start_with_aws("");
    stage.until_gone(AWS_CLUSTERS, "role").await;
    assert_eq!(totals(&account, REGION).await, before, "nothing is left");
    stage.end(manager).await;
}
