//! The ownership matrix: for each case of whose a network is, what building, keeping and deleting a
//! cluster does to it. The requests that AWS gets are the judge. `aws-network` has the same table on
//! a model (`tests/convergence/ownership.rs`).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::Process;
use tests::aws_proxy::{Call, Fate};

use crate::aws_ownership_cases::{ADOPT, Case, OWNER, adopted, left_alone, of_their_own, ready};
use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::aws_upstream::{Foreign, texts, writes_about};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

/// Makes the objects of all cases. One of them is being deleted before the product starts.
fn enter(stage: &Stage, cases: &[Case]) {
    let objects = cases.iter().flat_map(|case| [case.object.clone(), cluster(case.name)]);
    stage.create_all(&objects.collect::<Vec<_>>());
    stage.run(&format!("delete {CLUSTERS} late"));
    stage.run(&format!("delete {AWS_CLUSTERS} late --wait=false"));
    // Upstream's provider has said so.
    stage.patch_status(&format!("{AWS_CLUSTERS} ids"), &json!({"ready": true}));
}

/// Listeners that another program adds to load balancers of the product.
async fn add_listeners(stage: &Stage, plain: &mut Foreign<'_>) {
    let upstream = stage.proxy.upstream();
    let describe =
        [("Action", "DescribeLoadBalancers"), ("Names.member.1", "default-plain-apiserver")];
    let answer = upstream.elbv2(REGION, &describe).await;
    let arn = texts(&answer, "LoadBalancerArn").remove(0);
    plain.vpc = texts(&answer, "VpcId").remove(0);
    plain.listener(&arn, "strangers-", "9000", false).await;
    let listener = [
        ("Action", "CreateLoadBalancerListeners"),
        ("LoadBalancerName", "restored-apiserver"),
        ("Listeners.member.1.Protocol", "TCP"),
        ("Listeners.member.1.LoadBalancerPort", "9345"),
        ("Listeners.member.1.InstancePort", "9345"),
    ];
    upstream.elb(REGION, &listener).await;
}

/// An object that comes back from a backup: with its annotations, another UID and no status.
async fn restore(stage: &Stage, name: &'static str) {
    let mut object = stage.find(AWS_CLUSTERS, name).await.unwrap();
    for kind in [AWS_CLUSTERS, CLUSTERS] {
        stage.run(&format!("delete {kind} {name} --wait=false"));
        stage.patch(&format!("{kind} {name}"), "merge", &json!({"metadata": {"finalizers": null}}));
        stage.until_gone(kind, name).await;
    }
    let uid = object["metadata"]["uid"].clone();
    object["metadata"] = json!({"name": name, "namespace": "default",
        "annotations": object["metadata"]["annotations"]});
    object["status"] = Value::Null;
    stage.create(&object);
    stage.create(&cluster(name));
    let now = stage.find(AWS_CLUSTERS, name).await.unwrap();
    assert_ne!(now["metadata"]["uid"], uid);
    assert_eq!(now["metadata"]["annotations"][OWNER], uid);
}

/// Whether a call is the first write of an adoption.
fn is_mark(call: &Call) -> bool {
    call.parameters.values().any(|value| value == OWNER) && call.action.contains("Tags")
}

/// The cases whose objects exist when the product starts.
fn living(cases: &[Case]) -> impl Iterator<Item = &Case> {
    cases.iter().filter(|case| case.name != "late")
}

/// Builds the cases. The product writes nothing to resources that are not adopted, or only in part,
/// and writes tags first.
async fn build(stage: &Stage, cases: &[Case], goes: &[Foreign<'_>], theirs: &BTreeSet<String>) {
    let manager = stage.start_with_aws("");
    for case in living(cases) {
        let is_built = |it: &Value| case.is_built(it);
        stage.until(AWS_CLUSTERS, case.name, &case.built.1, is_built).await;
    }
    let calls = stage.proxy.calls();
    let [classic, network, _, half] = goes else { panic!() };
    let mut not_yet: BTreeSet<_> = theirs.union(&classic.ids).chain(&half.ids).cloned().collect();
    not_yet.remove(&half.vpc);
    assert_eq!(writes_about(&calls, &not_yet), [""; 0]);
    let addresses = calls.iter().filter(|call| call.action == "AllocateAddress").count();
    assert_eq!(addresses, 0, "no cluster of these makes a NAT gateway");
    let is_about = |it: &&Call| !writes_about(&[(*it).clone()], &network.ids).is_empty();
    let writes: Vec<_> = calls.iter().filter(is_about).collect();
    let first_other = writes.iter().position(|call| !is_mark(call)).unwrap_or(writes.len());
    let is_late = writes[first_other..].iter().any(|call| is_mark(call));
    assert!(first_other > 0 && !is_late, "{writes:#?}");
    stage.end(manager).await;
}

/// Starts another process, which reads everything and has nothing to write.
async fn keep(stage: &Stage, cases: &[Case], goes: &[Foreign<'_>]) -> Process {
    stage.proxy.forget();
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, "restored", "is ready again", is_ready).await;
    let queue = [("name", "awsclusters")];
    let (looked, all) = ("workqueue_work_duration_seconds_count", u32::try_from(cases.len()));
    manager.until_metric(looked, &queue, |count| count >= f64::from(all.unwrap())).await;
    for left in ["workqueue_depth", "workqueue_unfinished_work_seconds"] {
        manager.until_metric(left, &queue, |left| left == 0.0).await;
    }
    let is_of_late = |call: &Call| call.parameters.values().any(|it| goes[2].ids.contains(it));
    let mut writes = stage.proxy.calls();
    writes.retain(|call| call.is_write() && !is_of_late(call));
    assert_eq!(writes, [], "but the deletion that goes on");
    for case in living(cases) {
        let object = stage.find(AWS_CLUSTERS, case.name).await.unwrap();
        assert!(case.is_built(&object), "{}: {object:#}", case.name);
        let was_ready = case.built == ready() || case.name == "ids";
        assert_eq!(object["status"]["ready"] == true, was_ready, "{}", case.name);
    }
    manager
}

async fn delete(stage: &Stage, cases: &[Case]) {
    stage.run(&format!("annotate {AWS_CLUSTERS} half {ADOPT}=true"));
    for case in living(cases) {
        stage.run(&format!("delete {CLUSTERS} {} --wait=false", case.name));
    }
    for case in cases {
        let Some(message) = &case.blocked else {
            stage.until_gone(AWS_CLUSTERS, case.name).await;
            continue;
        };
        let is_blocked = |it: &Value| condition(it, "Deleting")["message"] == **message;
        stage.until(AWS_CLUSTERS, case.name, message, is_blocked).await;
    }
    for case in cases.iter().filter(|case| case.blocked.is_some()) {
        let (name, way_out) = (case.name, case.way_out);
        stage.run(&format!("annotate {AWS_CLUSTERS} {name} {way_out}=true --overwrite"));
        stage.until_gone(AWS_CLUSTERS, name).await;
    }
}

/// rule:ours-by-two-tags, rule:a-deletion-names-what-it-leaves, rule:settings-of-others-stay,
/// rule:only-ours-spoils-an-answer
#[tokio::test(flavor = "multi_thread")]
async fn each_case_of_ownership_is_built_reconciled_and_deleted_without_a_write_to_foreign_resources()
 {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let (goes, mut cases) = adopted(&stage).await;
    let with_adopted = stage.totals().await;
    let (stays, of_others) = left_alone(&stage).await;
    let with_all = stage.totals().await;
    cases.extend(of_others);
    cases.extend(of_their_own());
    let mut theirs: BTreeSet<_> = stays.iter().flat_map(|it| &it.ids).cloned().collect();
    // In the VPC of each cluster there are unusual resources of others, too.
    stage.proxy.neighbours_move_in();
    enter(&stage, &cases);
    build(&stage, &cases, &goes, &theirs).await;

    let mut plain = Foreign::of(stage.proxy.upstream(), "plain");
    add_listeners(&stage, &mut plain).await;
    theirs.extend(plain.ids);
    restore(&stage, "restored").await;
    stage.run(&format!("annotate {AWS_CLUSTERS} network {ADOPT}-"));
    let manager = keep(&stage, &cases, &goes).await;

    delete(&stage, &cases).await;
    for foreign in &stays[..2] {
        stage.has_event_about("Abandoned", &foreign.vpc).await;
    }
    assert_eq!(writes_about(&stage.proxy.calls(), &theirs), [""; 0]);
    let mut wanted = before;
    for (kind, count) in &mut wanted {
        *count += with_all[kind] - with_adopted[kind];
    }
    *wanted.get_mut("TargetGroups").unwrap() += 1;
    assert_eq!(stage.totals().await, wanted, "all of theirs is left, and nothing of ours");
    stage.end(manager).await;
}

/// `clusterctl move` keeps annotations and no status. rule:memory-is-in-the-status
#[tokio::test(flavor = "multi_thread")]
async fn a_regional_nat_gateway_that_aws_refused_is_not_tried_again_after_a_move() {
    const REFUSED: &str = "aws.cluster.x-k8s.io/regional-nat-refused";
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let mode = |mode: &str| json!({"spec": {"network": {"natGateways": {"mode": mode}}}});
    let mut wanted = spec("10.1.1.0/24");
    wanted["network"]["natGateways"] = json!({"mode": "Regional"});
    stage.create_all(&[ours("moved", &wanted), cluster("moved")]);
    let is_regional = |call: &Call| call.parameter("AvailabilityMode") == "regional";
    stage.proxy.decide(move |_, call| {
        if is_regional(call) { Fate::Refuse("UnsupportedOperation") } else { Fate::Pass }
    });
    let manager = stage.start_with_aws("");
    let made = stage.until(AWS_CLUSTERS, "moved", "is ready", is_ready).await;
    assert_eq!(made["status"]["natGatewayMode"], "PerAZ");
    let noted = format!("{} UnsupportedOperation", made["metadata"]["uid"].as_str().unwrap());
    let is_noted = |it: &Value| it["metadata"]["annotations"][REFUSED] == noted;
    assert!(is_noted(&made), "{made}");
    let shown = condition(&made, "NatGatewaysReady")["message"].as_str().unwrap().to_owned();
    assert!(shown.contains("AWS answered UnsupportedOperation"), "{shown}");
    let of = format!("{AWS_CLUSTERS} moved");
    stage.patch(&of, "merge", &json!({"metadata": {"annotations": {REFUSED: null}}}));
    stage.until(AWS_CLUSTERS, "moved", "has its annotation again", is_noted).await;
    stage.end(manager).await;

    // AWS offers it by now.
    restore(&stage, "moved").await;
    stage.proxy.decide(|_, _| Fate::Pass);
    stage.proxy.forget();
    let manager = stage.start_with_aws("");
    let back = stage.until(AWS_CLUSTERS, "moved", "is ready again", is_ready).await;
    assert_eq!(stage.writes(), [""; 0]);
    let addresses = |it: &Value| it["status"]["networkStatus"]["natGatewaysIPs"].clone();
    assert_eq!((addresses(&back), addresses(&back).is_array()), (addresses(&made), true));

    stage.patch(&of, "merge", &mode("PerAZ"));
    let is_forgotten = |it: &Value| it["metadata"]["annotations"].get(REFUSED).is_none();
    stage.until(AWS_CLUSTERS, "moved", "has another mode", is_forgotten).await;
    stage.patch(&of, "merge", &mode("Regional"));
    let has_it = |it: &Value| it["status"]["natGatewayMode"] == "Regional";
    stage.until(AWS_CLUSTERS, "moved", "tries again", has_it).await;
    stage.run(&format!("delete {CLUSTERS} moved --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "moved").await;
    assert!(stage.proxy.calls().iter().any(is_regional));
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
