//! The product reports resources that have outlived their AWSCluster.

use tests::aws_proxy::Fate;

use crate::aws_account_steps::Keys;
use crate::aws_stage::{NAME, REGION, Stage, is_ready};
use crate::scene::{AWS_CLUSTERS, CLUSTERS};

const LEAKED: &str = "awscluster_leaked_resources";

/// Makes something with the mark of an AWSCluster that is gone. AWS's answer.
pub(crate) async fn leak(stage: &Stage, action: &str, kind: &str) -> String {
    leak_in(stage, "", action, kind).await
}

async fn leak_in(stage: &Stage, vpc: &str, action: &str, kind: &str) -> String {
    let mut parameters = vec![
        ("Action", action),
        ("TagSpecification.1.ResourceType", kind),
        ("TagSpecification.1.Tag.1.Key", "aws.cluster.x-k8s.io/owner-id"),
        ("TagSpecification.1.Tag.1.Value", "long-gone"),
    ];
    if !vpc.is_empty() {
        parameters.push(("VpcId", vpc));
    }
    stage.proxy.upstream().ec2(REGION, &parameters).await
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_deleted_owners_are_counted_and_listed_but_not_deleted() {
    let Some(stage) = Stage::set().await else { return };
    let vpc = [("Action", "CreateVpc"), ("CidrBlock", "10.99.0.0/16")];
    let made = stage.proxy.upstream().ec2(REGION, &vpc).await;
    let vpc = made.split("<vpcId>").nth(1).unwrap().split('<').next().unwrap();
    let egress_only = "egress-only-internet-gateway";
    leak_in(&stage, vpc, "CreateEgressOnlyInternetGateway", egress_only).await;
    leak_in(&stage, vpc, "CreateCarrierGateway", "carrier-gateway").await;
    let before = stage.totals().await;
    leak(&stage, "AllocateAddress", "elastic-ip").await;
    let made = leak(&stage, "CreateInternetGateway", "internet-gateway").await;
    let gateway = made.split("<internetGatewayId>").nth(1).unwrap().split('<').next().unwrap();
    let manager =
        stage.start_with_aws(&format!("--leak-scan-period=10s --leak-scan-regions={REGION}"));
    let kinds = ["elastic_ip", "internet_gateway", "egress_only_gateway", "carrier_gateway"];
    for kind in kinds {
        manager.until_metric(LEAKED, &[("kind", kind)], |count| count >= 1.0).await;
    }
    let reported = manager.line("Found resources on AWS without an AWSCluster").await;
    assert!(reported.contains("long-gone") && reported.contains(gateway), "{reported}");
    stage.run("apply -f config/samples/cluster-api.yaml");
    stage.until(AWS_CLUSTERS, NAME, "is ready", is_ready).await;

    // Seen by a scan of later.
    let delete = [("Action", "DeleteInternetGateway"), ("InternetGatewayId", gateway)];
    stage.proxy.upstream().ec2(REGION, &delete).await;
    manager.until_metric(LEAKED, &[("kind", "internet_gateway")], |count| count == 0.0).await;
    for (kind, count) in
        [("vpc", 0.0), ("nat_gateway", 0.0), ("instance", 0.0), ("elastic_ip", 1.0)]
    {
        assert_eq!(manager.metric(LEAKED, &[("kind", kind)]).await, Some(count), "{kind}");
    }

    stage.run(&format!("delete {CLUSTERS} {NAME} --wait=false"));
    stage.until_gone(AWS_CLUSTERS, NAME).await;
    let left = [("Addresses".to_owned(), 1)];
    assert_eq!(stage.added(&before).await, left.into(), "the leak is reported and not removed");
    stage.end(manager).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_without_carrier_gateways_shows_what_else_leaked() {
    let Some(stage) = Stage::set().await else { return };
    leak(&stage, "AllocateAddress", "elastic-ip").await;
    stage.proxy.decide(|_, call| match &*call.action {
        "DescribeCarrierGateways" => Fate::Refuse("UnsupportedOperation"),
        _ => Fate::Pass,
    });
    let manager =
        stage.start_with_aws(&format!("--leak-scan-period=10s --leak-scan-regions={REGION}"));
    manager.until_metric(LEAKED, &[("kind", "elastic_ip")], |count| count >= 1.0).await;
    stage.end(manager).await;
}

/// rule:a-request-reaches-one-account
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_during_which_the_credentials_change_sees_one_account() {
    let Some(stage) = Stage::set().await else { return };
    let keys = Keys::new(&stage).await;
    keys.change_at(&stage, "DescribeVpcs");
    let args = format!("--leak-scan-period=10s --leak-scan-regions={REGION}");
    let manager = keys.start(&stage, &args);
    let reported = manager.line("Cannot look for leaked resources").await;
    assert!(reported.contains("credentials belong to account 111111111111"), "{reported}");
    assert_eq!(keys.strayed(&stage), []);
    stage.end(manager).await;
}
