//! The load balancer fields of an AWSCluster: `additionalListeners`, `ingressRules` and the secondary load balancer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::poll::poll;

use crate::aws_crashes::live_until;
use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

const NAME: &str = "balanced";
const SECOND: &str = "balanced-internal";

fn rule(description: &str, source: &str) -> Value {
    json!({"description": description, "protocol": "tcp", "fromPort": 6443, "toPort": 6443,
        "cidrBlocks": [source]})
}

/// A cluster with two network load balancers.
fn balanced() -> Value {
    let mut spec = spec("10.1.1.0/24");
    spec["bastion"] = json!({"enabled": false});
    spec["controlPlaneLoadBalancer"] = json!({"loadBalancerType": "nlb", "scheme": "internet-facing",
        "additionalListeners": [{"port": 8443, "healthCheck": {"protocol": "HTTPS", "path": "/healthz"}}],
        "ingressRules": [rule("office", "192.0.2.0/24")]});
    spec["secondaryControlPlaneLoadBalancer"] = json!({"name": SECOND, "scheme": "internal",
        "loadBalancerType": "nlb", "additionalListeners": [{"port": 9345}],
        "ingressRules": [rule("branch", "198.51.100.0/24")]});
    ours(NAME, &spec)
}

/// The texts of an element in an answer.
fn texts(answer: &str, element: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(answer).unwrap();
    let named = document.descendants().filter(|node| node.tag_name().name() == element);
    let mut texts: Vec<_> = named.filter_map(|node| node.text().map(str::to_owned)).collect();
    texts.sort();
    texts
}

/// The ports of the listeners of a load balancer.
async fn ports(stage: &Stage, name: &str) -> Vec<String> {
    let upstream = stage.proxy.upstream();
    let describe = [("Action", "DescribeLoadBalancers"), ("Names.member.1", name)];
    let found = upstream.elbv2(REGION, &describe).await;
    let arn = texts(&found, "LoadBalancerArn").remove(0);
    let describe = [("Action", "DescribeListeners"), ("LoadBalancerArn", &arn)];
    texts(&upstream.elbv2(REGION, &describe).await, "Port")
}

/// The CIDRs that may call the API server.
async fn sources(stage: &Stage) -> Vec<String> {
    let describe = [
        ("Action", "DescribeSecurityGroups"),
        ("Filter.1.Name", "group-name"),
        ("Filter.1.Value.1", "balanced-apiserver-lb"),
    ];
    let found = stage.proxy.upstream().ec2(REGION, &describe).await;
    let document = roxmltree::Document::parse(&found).unwrap();
    let mut rules = document.descendants().filter(|it| it.tag_name().name() == "ipPermissions");
    let cidrs = rules.next().unwrap().descendants().filter(|it| it.tag_name().name() == "cidrIp");
    let mut cidrs: Vec<_> = cidrs.filter_map(|it| it.text().map(str::to_owned)).collect();
    cidrs.sort();
    cidrs.dedup();
    cidrs
}

/// Gives a load balancer a listener of a user on port 10443. Returns the target group.
async fn users_listener(stage: &Stage, name: &str) -> String {
    let upstream = stage.proxy.upstream();
    let describe = [("Action", "DescribeLoadBalancers"), ("Names.member.1", name)];
    let found = upstream.elbv2(REGION, &describe).await;
    let (arn, vpc) = (texts(&found, "LoadBalancerArn").remove(0), texts(&found, "VpcId").remove(0));
    let group = [
        ("Action", "CreateTargetGroup"),
        ("Name", "of-a-user"),
        ("Protocol", "TCP"),
        ("Port", "10443"),
        ("VpcId", &*vpc),
    ];
    let group = texts(&upstream.elbv2(REGION, &group).await, "TargetGroupArn").remove(0);
    let listener = [
        ("Action", "CreateListener"),
        ("LoadBalancerArn", &*arn),
        ("Protocol", "TCP"),
        ("Port", "10443"),
        ("DefaultActions.member.1.Type", "forward"),
        ("DefaultActions.member.1.TargetGroupArn", &*group),
    ];
    upstream.elbv2(REGION, &listener).await;
    group
}

/// The paths of the health checks of all target groups.
async fn check_paths(stage: &Stage) -> Vec<String> {
    let describe = [("Action", "DescribeTargetGroups")];
    texts(&stage.proxy.upstream().elbv2(REGION, &describe).await, "HealthCheckPath")
}

/// Waits until the load balancers have listeners on these ports.
async fn until_ports(stage: &Stage, first: &[&str], second: &[&str]) {
    let name = first_name();
    poll(&format!("listeners {first:?} and {second:?}"), async || {
        let found = (ports(stage, &name).await, ports(stage, SECOND).await);
        (found.0 == first && found.1 == second).then_some(())
    })
    .await;
}

/// Waits until the API server may be called from one CIDR, and not from another.
async fn until_sources(stage: &Stage, present: &[&str], absent: &str) {
    poll(&format!("rules for {present:?}"), async || {
        let found = sources(stage).await;
        let has = |source: &str| found.iter().any(|it| it == source);
        (present.iter().all(|it| has(it)) && !has(absent)).then_some(())
    })
    .await;
}

fn first_name() -> String {
    format!("default-{NAME}-apiserver")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_load_balancers_with_listeners_and_rules_are_made_through_crashes_changed_and_deleted()
{
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let began = Instant::now();
    stage.proxy.shows_late(Duration::from_secs(5), move || began.elapsed());
    stage.create(&balanced());
    stage.create(&cluster(NAME));
    // What a dead process has made is not shown to the next one for five seconds. Target groups are made before load
    // balancers, and those before listeners: each process still has its call to make.
    for (action, number) in
        [("CreateTargetGroup", 1), ("CreateLoadBalancer", 0), ("CreateListener", 1)]
    {
        live_until(&stage, action, number).await;
    }
    let manager = stage.start_with_aws("");
    let made = stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;
    let second = stage
        .until(AWS_CLUSTERS, NAME, "shows the second", |it| {
            it["status"]["networkStatus"]["secondaryAPIServerELB"]["name"] == SECOND
        })
        .await;
    let host = made["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap();
    assert!(host.starts_with(&first_name()), "{host}: the second is never the endpoint");
    assert_eq!(condition(&second, "LoadBalancerReady")["status"], "True");
    until_ports(&stage, &["6443", "8443"], &["6443", "9345"]).await;
    until_sources(&stage, &["192.0.2.0/24", "198.51.100.0/24"], "0.0.0.0/0").await;
    let added = stage.added(&before).await;
    assert_eq!((added["NetworkLoadBalancers"], added["TargetGroups"]), (2, 4), "{added:?}");
    assert_eq!((added["Vpcs"], added["Subnets"]), (1, 2), "{added:?}");

    let users = users_listener(&stage, &first_name()).await;
    change_and_remove(&stage).await;
    poll("target groups without a listener go", async || {
        (stage.added(&before).await["TargetGroups"] == 3 + 1).then_some(())
    })
    .await;

    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    let delete = [("Action", "DeleteTargetGroup"), ("TargetGroupArn", &*users)];
    stage.proxy.upstream().elbv2(REGION, &delete).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}

/// Adds, changes and removes listeners and rules of a cluster that is ready.
async fn change_and_remove(stage: &Stage) {
    let of = format!("{AWS_CLUSTERS} {NAME}");
    let changed = json!({"port": 8443, "healthCheck": {"protocol": "HTTPS", "path": "/livez"}});
    let added = json!([changed, {"port": 9443}]);
    let change = json!({"spec": {"controlPlaneLoadBalancer": {"additionalListeners": added}}});
    stage.patch(&of, "merge", &change);
    until_ports(stage, &["10443", "6443", "8443", "9443"], &["6443", "9345"]).await;
    poll("the changed health check", async || {
        let found = check_paths(stage).await;
        let has = |path: &str| found.iter().any(|it| it == path);
        (has("/livez") && !has("/healthz")).then_some(())
    })
    .await;

    let rules = [rule("home", "203.0.113.0/24")];
    let change = json!({"spec": {
        "controlPlaneLoadBalancer": {"additionalListeners": [{"port": 9443}], "ingressRules": rules},
        "secondaryControlPlaneLoadBalancer": {"additionalListeners": []}}});
    stage.patch(&of, "merge", &change);
    until_ports(stage, &["10443", "6443", "9443"], &["6443"]).await;
    until_sources(stage, &["203.0.113.0/24", "198.51.100.0/24"], "192.0.2.0/24").await;
}
