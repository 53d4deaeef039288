//! The sample on AWS, from its making to its end.

use std::time::Duration;

use serde_json::{Value, json};
use tests::poll::poll;

use crate::aws_stage::{NAME, REGION, Stage, is_ready, sample};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, condition};

/// Number of calls until the network exists and no work is left.
const CREATE_AND_SETTLE: usize = 58 + 9 + WHOSE_CREDENTIALS;
/// The question at STS.
const WHOSE_CREDENTIALS: usize = 1;
/// Number of calls of a reconcile without a difference.
const LOOK: usize = 9;

async fn paused_is(stage: &Stage, status: &str) {
    let wanted = |it: &Value| condition(it, "Paused")["status"] == status;
    stage.until(AWS_CLUSTERS, NAME, "says whether it is paused", wanted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_is_built_reconciled_changed_and_removed() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let manager = stage.start_with_aws("");
    stage.run("apply -f config/samples/cluster-api.yaml");
    let made = stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;
    assert_eq!(stage.added(&before).await, sample(3));
    is_published(&stage, &made).await;
    stage.has_event("SuccessfulCreateVPC").await;
    // cluster-api-provider-aws#1346
    stage
        .has_event_about("SuccessfulAllocateAddress", "AllocateAddress for us-east-2b: eipalloc-")
        .await;
    stage.has_event("Ready").await;

    // A look at what is as it should be.
    let of = format!("{AWS_CLUSTERS} {NAME}");
    stage.run(&format!("annotate {of} cluster.x-k8s.io/paused=yes"));
    paused_is(&stage, "True").await;
    let calls = stage.proxy.calls().len();
    println!("{calls} calls to make the sample");
    assert!(calls <= CREATE_AND_SETTLE, "{calls} calls to make it");
    stage.proxy.forget();
    stage.run(&format!("annotate {of} cluster.x-k8s.io/paused-"));
    paused_is(&stage, "False").await;
    let calls = stage.proxy.calls().len();
    println!("{calls} calls for a look");
    assert!(calls <= LOOK, "{calls} calls for a look");
    assert_eq!(stage.writes(), [""; 0]);
    stage.end(manager).await;

    // Another program finds all as it should be, and mends what is broken later.
    let manager = stage.start_with_aws("--sync-period=10s");
    poll("it has looked", async || (stage.proxy.calls().len() >= 2 * LOOK).then_some(())).await;
    assert_eq!(stage.writes(), [""; 0]);
    is_mended(&stage).await;
    let labels = [("operation", "CreateRoute")];
    manager.until_metric("awscluster_drift_repairs_total", &labels, |count| count >= 1.0).await;
    stage.has_event_about("SuccessfulCreateRoute", "; repairs drift: + 0.0.0.0/0 to ").await;

    // Live, without an end of what is ready.
    let single = json!({"spec": {"networkSpec": {"natGateways": {"mode": "Single"}}}});
    stage.patch(&of, "merge", &single);
    stage.until_added(&before, &sample(1)).await;
    let changed = stage
        .until(AWS_CLUSTERS, NAME, "has said so", |it| {
            it["status"]["network"]["natGatewaysIPs"].as_array().is_some_and(|it| it.len() == 1)
        })
        .await;
    assert_eq!(changed["status"]["ready"], true);
    assert_eq!(changed["status"]["natGatewayMode"], "Single");
    stage.has_event("SuccessfulReleaseEIP").await;
    assert_eq!(changed["spec"]["controlPlaneEndpoint"], made["spec"]["controlPlaneEndpoint"]);

    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.until_gone(CLUSTERS, NAME).await;
    stage.end(manager).await;
}

async fn is_published(stage: &Stage, made: &Value) {
    let host = "testnetwork3-apiserver.us-east-1.elb.amazonaws.com";
    let endpoint = json!({"host": host, "port": 6443});
    assert_eq!(made["spec"]["controlPlaneEndpoint"], endpoint);
    assert_eq!(made["status"]["apiEndpoints"], json!([endpoint]));
    assert_eq!(made["status"]["initialization"]["provisioned"], true);
    let held = "awscluster.infrastructure.cluster.x-k8s.io";
    assert_eq!(made["metadata"]["finalizers"], json!([held]));
    let identity = &made["metadata"]["annotations"]["aws.cluster.x-k8s.io/owner-id"];
    assert_eq!(*identity, made["metadata"]["uid"]);
    let zones = ["a", "b", "c"]
        .map(|zone| json!({"name": format!("{REGION}{zone}"), "controlPlane": true}));
    assert_eq!(made["status"]["failureDomains"], json!(zones));
    let network = &made["status"]["network"];
    assert_eq!(*network, made["status"]["networkStatus"]);
    assert_eq!(network["natGatewaysIPs"].as_array().unwrap().len(), 3);
    assert_eq!(network["apiServerElb"]["dnsName"], host);
    let roles: Vec<_> = network["securityGroups"].as_object().unwrap().keys().collect();
    assert_eq!(roles, ["apiserver-lb", "bastion", "controlplane", "lb", "node"]);
    assert_eq!(made["status"]["resources"]["vpc"]["managed"], true);
    // As the flag says, since the spec does not.
    assert_eq!(made["status"]["natGatewayMode"], "PerAZ");
    assert!(made["status"]["bastion"]["id"].as_str().unwrap().starts_with("i-"));
    assert_eq!(made["status"]["pendingCreates"], Value::Null, "all of them were answered");
    let parts = ["Vpc", "Subnets", "InternetGateway", "NatGateways", "RouteTables", "LoadBalancer"];
    for part in parts.into_iter().chain(["ClusterSecurityGroups", "BastionHost", ""]) {
        let kind = format!("{part}Ready");
        assert_eq!(condition(made, &kind)["status"], "True", "{kind}: {made:#}");
    }
    let cluster = stage
        .until(CLUSTERS, NAME, "is provisioned", |it| it["status"]["phase"] == "provisioned")
        .await;
    assert_eq!(cluster["status"]["apiEndpoints"], json!([endpoint]));
}

/// Takes a way out away, and waits until it is back.
pub(crate) async fn is_mended(stage: &Stage) {
    let upstream = stage.proxy.upstream();
    let described = [
        ("Action", "DescribeRouteTables"),
        ("Filter.1.Name", "tag:sigs.k8s.io/cluster-api-provider-aws/role"),
        ("Filter.1.Value.1", "common"),
    ];
    let routes = |answer: &str| answer.matches("<destinationCidrBlock>0.0.0.0/0").count();
    let before = upstream.ec2(REGION, &described).await;
    assert_eq!(routes(&before), 6);
    let table = before.split("<routeTableId>").nth(1).unwrap().split('<').next().unwrap();
    let delete =
        [("Action", "DeleteRoute"), ("RouteTableId", table), ("DestinationCidrBlock", "0.0.0.0/0")];
    upstream.ec2(REGION, &delete).await;
    assert_eq!(routes(&upstream.ec2(REGION, &described).await), 5);
    poll("the route is back", async || {
        (routes(&upstream.ec2(REGION, &described).await) == 6).then_some(())
    })
    .await;
}

/// A reconciliation may wait for NAT gateways for ten minutes, and acts on a pause meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_ends_a_pass_that_waits_for_aws() {
    let Some(stage) = Stage::set().await else { return };
    stage.proxy.nats_pending_until(Duration::from_secs(600));
    let manager = stage.start_with_aws("");
    stage.run("apply -f config/samples/cluster-api.yaml");
    let all_asked = || stage.writes().iter().filter(|it| *it == "CreateNatGateway").count() == 3;
    poll("all NAT gateways are asked for", async || all_asked().then_some(())).await;
    stage.run(&format!("annotate {AWS_CLUSTERS} {NAME} cluster.x-k8s.io/paused=yes"));
    paused_is(&stage, "True").await;
    stage.end(manager).await;
}
