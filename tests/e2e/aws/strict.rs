//! The proxy refuses on a real cluster what AWS refuses, and moto does not.

use aws_fixtures::{load_balancer, present, with_nats};
use aws_network::{LoadBalancerKind, NatMode, Rest, Spec};
use tests::aws_proxy::Pace;

use crate::complaints::text;
use crate::world::{REGION, World};

const EC2: (&str, &str) = ("ec2", "2016-11-15");
const CLASSIC: (&str, &str) = ("elasticloadbalancing", "2012-06-01");
const ELB_V2: (&str, &str) = ("elasticloadbalancing", "2015-12-01");

type Parameters<'a> = &'a [(&'a str, &'a str)];

/// A call of another client through the proxy.
async fn call(world: &World, api: (&str, &str), parameters: Parameters<'_>) -> (bool, String) {
    let (status, text) = world.proxy.itself().try_ask(api.0, api.1, REGION, parameters).await;
    (status.is_success(), text)
}

async fn is_refused(world: &World, api: (&str, &str), parameters: Parameters<'_>, code: &str) {
    let (is_done, answer) = call(world, api, parameters).await;
    assert!(!is_done, "{parameters:?} is carried out: {answer}");
    assert_eq!(text(&answer, "Code"), code, "{parameters:?}: {answer}");
}

async fn done(world: &World, api: (&str, &str), parameters: Parameters<'_>) -> String {
    let (is_done, answer) = call(world, api, parameters).await;
    assert!(is_done, "{parameters:?} is refused: {answer}");
    answer
}

/// The first id of what a describe call shows with this filter.
async fn id(world: &World, action: &str, filter: (&str, &str), element: &str) -> String {
    let named = [("Action", action), ("Filter.1.Name", filter.0), ("Filter.1.Value.1", filter.1)];
    text(&world.proxy.upstream().ec2(REGION, &named).await, element)
}

const ROLE: &str = "tag:sigs.k8s.io/cluster-api-provider-aws/role";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_use_is_not_removed() {
    let Some(world) = World::new().await else { return };
    world.proxy.set_pace(Pace::PROMPT);
    assert_eq!(world.run(&present(&with_nats(NatMode::PerZone))).await.1, Rest::Reached);
    let vpc = id(&world, "DescribeVpcs", ("cidr", "10.66.0.0/24"), "vpcId").await;
    let of_vpc = ("vpc-id", &*vpc);
    let subnet = id(&world, "DescribeSubnets", (ROLE, "public"), "subnetId").await;
    let table = ("association.subnet-id", &*subnet);
    let table = id(&world, "DescribeRouteTables", table, "routeTableId").await;
    let gateway = ("attachment.vpc-id", &*vpc);
    let gateway = id(&world, "DescribeInternetGateways", gateway, "internetGatewayId").await;
    let nat = id(&world, "DescribeNatGateways", of_vpc, "natGatewayId").await;
    let address = id(&world, "DescribeNatGateways", of_vpc, "allocationId").await;
    let group = id(&world, "DescribeSecurityGroups", (ROLE, "apiserver-lb"), "groupId").await;
    let (used, taken) = ("DependencyViolation", "Resource.AlreadyAssociated");
    let refused: [(Parameters<'_>, &str); 9] = [
        (&[("Action", "DeleteSubnet"), ("SubnetId", &subnet)], used),
        (&[("Action", "DeleteSecurityGroup"), ("GroupId", &group)], used),
        (&[("Action", "DeleteRouteTable"), ("RouteTableId", &table)], used),
        (&[("Action", "DeleteVpc"), ("VpcId", &vpc)], used),
        (
            &[
                ("Action", "DetachInternetGateway"),
                ("InternetGatewayId", &gateway),
                ("VpcId", &vpc),
            ],
            used,
        ),
        (
            &[
                ("Action", "AttachInternetGateway"),
                ("InternetGatewayId", &gateway),
                ("VpcId", &vpc),
            ],
            taken,
        ),
        (&[("Action", "ReleaseAddress"), ("AllocationId", &address)], "InvalidIPAddress.InUse"),
        (
            &[
                ("Action", "AuthorizeSecurityGroupIngress"),
                ("GroupId", &group),
                ("IpPermissions.1.IpProtocol", "tcp"),
                ("IpPermissions.1.FromPort", "6443"),
                ("IpPermissions.1.ToPort", "6443"),
                ("IpPermissions.1.IpRanges.1.CidrIp", "0.0.0.0/0"),
                ("IpPermissions.1.IpRanges.1.Description", "another"),
            ],
            "InvalidPermission.Duplicate",
        ),
        (
            &[("Action", "AssociateRouteTable"), ("SubnetId", &subnet), ("RouteTableId", "rtb-1")],
            taken,
        ),
    ];
    for (parameters, code) in refused {
        is_refused(&world, EC2, parameters, code).await;
    }

    let delete = [("Action", "DeleteNatGateway"), ("NatGatewayId", &*nat)];
    done(&world, EC2, &delete).await;
    is_refused(&world, EC2, &delete, "NatGatewayNotFound").await;
    done(&world, EC2, &[("Action", "ReleaseAddress"), ("AllocationId", &address)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_not_used() {
    let Some(world) = World::new().await else { return };
    let upstream = world.proxy.upstream();
    let make = async |parameters: Parameters<'_>, element: &str| {
        text(&upstream.ec2(REGION, parameters).await, element)
    };
    let vpc = make(&[("Action", "CreateVpc"), ("CidrBlock", "10.9.0.0/16")], "vpcId").await;
    let subnet = [("Action", "CreateSubnet"), ("VpcId", &*vpc), ("CidrBlock", "10.9.0.0/24")];
    let subnet = make(&subnet, "subnetId").await;
    let table = make(&[("Action", "CreateRouteTable"), ("VpcId", &vpc)], "routeTableId").await;
    let gateway = make(&[("Action", "CreateInternetGateway")], "internetGatewayId").await;
    let address = make(&[("Action", "AllocateAddress"), ("Domain", "vpc")], "allocationId").await;
    let route = ("DestinationCidrBlock", "0.0.0.0/0");
    let listener = [
        ("Listeners.member.1.Protocol", "TCP"),
        ("Listeners.member.1.LoadBalancerPort", "6443"),
        ("Listeners.member.1.InstancePort", "6443"),
    ];
    let classic = |name, subnet| {
        let named = [("Action", "CreateLoadBalancer"), ("LoadBalancerName", name)];
        [&named, &listener[..], &[("Subnets.member.1", subnet)]].concat()
    };
    let refused: [((&str, &str), Parameters<'_>, &str); 12] = [
        (
            EC2,
            &[("Action", "CreateRoute"), ("RouteTableId", &table), route, ("GatewayId", &gateway)],
            "InvalidParameterValue",
        ),
        (
            EC2,
            &[
                ("Action", "CreateRoute"),
                ("RouteTableId", &table),
                route,
                ("NatGatewayId", "nat-1"),
            ],
            "InvalidNatGatewayID.NotFound",
        ),
        (
            EC2,
            &[("Action", "CreateNatGateway"), ("SubnetId", &subnet), ("AllocationId", &address)],
            "Gateway.NotAttached",
        ),
        (EC2, &[("Action", "RunInstances"), ("ImageId", "ami-1")], "InvalidAMIID.NotFound"),
        (
            EC2,
            &[("Action", "CreateTags"), ("ResourceId.1", &vpc), ("Tag.1.Key", "aws:x")],
            "InvalidParameterValue",
        ),
        (
            EC2,
            &[
                ("Action", "ModifyVpcAttribute"),
                ("VpcId", &vpc),
                ("EnableDnsSupport.Value", "true"),
                ("EnableDnsHostnames.Value", "true"),
            ],
            "InvalidParameterCombination",
        ),
        (CLASSIC, &classic("one", &subnet), "InvalidSubnet"),
        (CLASSIC, &classic("one", ""), "InvalidConfigurationRequest"),
        (CLASSIC, &classic("-one", &subnet), "ValidationError"),
        (
            CLASSIC,
            &[("Action", "ConfigureHealthCheck"), ("LoadBalancerName", "two")],
            "LoadBalancerNotFound",
        ),
        (
            ELB_V2,
            &[("Action", "CreateLoadBalancer"), ("Name", "one"), ("Subnets.member.1", &subnet)],
            "InvalidSubnet",
        ),
        (EC2, &[("Action", "DeleteNatGateway"), ("NatGatewayId", "nat-1")], "NatGatewayNotFound"),
    ];
    for (api, parameters, code) in refused {
        is_refused(&world, api, parameters, code).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_create_is_answered_as_the_first_and_another_one_is_refused() {
    let Some(world) = World::new().await else { return };
    let balancer = Some(load_balancer(LoadBalancerKind::Network));
    let spec = Spec { load_balancer: balancer, ..with_nats(NatMode::None) };
    assert_eq!(world.run(&present(&spec)).await.1, Rest::Reached);
    let creates = ["CreateLoadBalancer", "CreateTargetGroup", "CreateRouteTable"];
    let calls = world.proxy.calls().into_iter();
    let calls: Vec<_> = calls.filter(|call| creates.contains(&&*call.action)).collect();
    assert!(calls.len() >= creates.len(), "{calls:#?}");
    let before = crate::totals::totals(&world).await;
    for made in calls {
        let (api, another, code) = match made.action.as_str() {
            "CreateLoadBalancer" => {
                (ELB_V2, ("IpAddressType", "dualstack"), "DuplicateLoadBalancerName")
            }
            "CreateTargetGroup" => (ELB_V2, ("Port", "1"), "DuplicateTargetGroupName"),
            _ => (EC2, ("VpcId", "vpc-1"), "IdempotentParameterMismatch"),
        };
        let same: Vec<_> = made.parameters.iter().filter(|(name, _)| *name != "Version").collect();
        let same: Vec<_> = same.into_iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut other: Vec<_> =
            same.iter().copied().filter(|(name, _)| *name != another.0).collect();
        other.push(another);
        done(&world, api, &same).await;
        is_refused(&world, api, &other, code).await;
    }
    assert_eq!(crate::totals::totals(&world).await, before, "nothing was made twice");

    let groups = world.proxy.upstream().elbv2(REGION, &[("Action", "DescribeTargetGroups")]).await;
    let group = text(&groups, "TargetGroupArn");
    is_refused(
        &world,
        ELB_V2,
        &[("Action", "DeleteTargetGroup"), ("TargetGroupArn", &group)],
        "ResourceInUse",
    )
    .await;
    let listener = [
        ("Action", "CreateListener"),
        ("LoadBalancerArn", "arn:another"),
        ("DefaultActions.member.1.Type", "forward"),
        ("DefaultActions.member.1.TargetGroupArn", &*group),
    ];
    is_refused(&world, ELB_V2, &listener, "TargetGroupAssociationLimit").await;
}
