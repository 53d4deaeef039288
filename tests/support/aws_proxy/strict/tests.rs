use std::collections::BTreeSet;

use super::*;

/// Answers of moto, by API and call.
type Answers<'a> = &'a [(Api, &'a str, &'a str)];

/// A call with these parameters.
pub(in super::super) fn call(api: Api, action: &str, parameters: &[(&str, &str)]) -> Call {
    let (service, version) = match api {
        Api::Ec2 => ("ec2", "2016-11-15"),
        Api::Classic => ("elasticloadbalancing", "2012-06-01"),
        Api::ElbV2 => ("elasticloadbalancing", "2015-12-01"),
    };
    let named = [("Version", version), ("Action", action)];
    let parameters = named.iter().chain(parameters);
    Call {
        service: service.to_owned(),
        region: "us-east-2".to_owned(),
        action: action.to_owned(),
        key: "AKIATEST".to_owned(),
        parameters: parameters.map(|(name, it)| ((*name).to_owned(), (*it).to_owned())).collect(),
    }
}

/// The places in the table of what refuses a call with these answers. What is not given is empty.
fn refused(call: &Call, answers: Answers<'_>) -> Vec<(usize, &'static str)> {
    let answer = |Read(api, action, _): &Read| {
        let given = answers.iter().find(|it| (it.0, it.1) == (*api, *action));
        Element::of(&format!("<answer>{}</answer>", given.map_or("", |it| it.2)))
    };
    let is_due = |it: &&Refusal| (it.5)(call, &it.4.iter().map(answer).collect::<Vec<_>>());
    let place = |it: &Refusal| REFUSALS.iter().position(|other| std::ptr::eq(other, it)).unwrap();
    refusals_of(call).filter(is_due).map(|it| (place(it), it.2)).collect()
}

type Parameters = &'static [(&'static str, &'static str)];

/// A call that is refused with one of two answers and carried out with the other.
struct Case {
    api: Api,
    action: &'static str,
    parameters: Parameters,
    refused_with: Answers<'static>,
    done_with: Answers<'static>,
    code: &'static str,
}

use Api::{Classic, Ec2, ElbV2};

const NAT: &str = "<natGatewaySet><item><natGatewayId>nat-1</natGatewayId><state>pending</state>\
    <vpcId>vpc-1</vpcId><subnetId>subnet-1</subnetId><natGatewayAddressSet><item>\
    <allocationId>eipalloc-1</allocationId></item></natGatewayAddressSet></item></natGatewaySet>";
const NAT_THAT_SERVES: &str = "<natGatewaySet><item><natGatewayId>nat-1</natGatewayId>\
    <state>available</state></item></natGatewaySet>";
const NAT_THAT_IS_GONE: &str = "<natGatewaySet><item><natGatewayId>nat-1</natGatewayId>\
    <state>deleted</state><vpcId>vpc-1</vpcId><subnetId>subnet-1</subnetId><allocationId>eipalloc-1\
    </allocationId></item></natGatewaySet>";
const GATEWAY: &str = "<item><internetGatewayId>igw-1</internetGatewayId><attachmentSet><item>\
    <vpcId>vpc-1</vpcId></item></attachmentSet></item>";
const GATEWAY_ELSEWHERE: &str = "<item><internetGatewayId>igw-1</internetGatewayId></item>";
const CARRIER: &str = "<carrierGatewaySet><item><carrierGatewayId>cagw-1</carrierGatewayId>\
    <state>available</state><vpcId>vpc-1</vpcId></item></carrierGatewaySet>";
const TABLE: &str = "<routeTableSet><item><routeTableId>rtb-1</routeTableId><vpcId>vpc-1</vpcId>\
    <associationSet><item><subnetId>subnet-1</subnetId></item></associationSet></item></routeTableSet>";
const SUBNET: &str =
    "<subnetSet><item><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId></item></subnetSet>";
const INSTANCE: &str = "<reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>\
    <instanceState><name>shutting-down</name></instanceState><vpcId>vpc-1</vpcId>\
    <subnetId>subnet-1</subnetId><groupId>sg-1</groupId></item></instancesSet></item></reservationSet>";
const INSTANCE_THAT_IS_GONE: &str = "<reservationSet><item><instancesSet><item>\
    <instanceId>i-1</instanceId><instanceState><name>terminated</name></instanceState>\
    <vpcId>vpc-1</vpcId><subnetId>subnet-1</subnetId></item></instancesSet></item></reservationSet>";
const GROUP: &str = "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>one</groupName>\
    <ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>22</fromPort><toPort>22</toPort>\
    <groups><item><groupId>sg-1</groupId></item></groups><ipRanges><item><cidrIp>10.0.0.0/8</cidrIp>\
    <description>old</description></item></ipRanges></item></ipPermissions></item></securityGroupInfo>";
const GROUP_WITH_SOURCE: &str = "<securityGroupInfo><item><groupId>sg-2</groupId><ipPermissions><item>\
    <groups><item><groupId>sg-1</groupId></item></groups></item></ipPermissions></item></securityGroupInfo>";
const DEFAULT_GROUP: &str = "<securityGroupInfo><item><groupId>sg-0</groupId>\
    <groupName>default</groupName></item></securityGroupInfo>";
const BALANCER: &str = "<member><LoadBalancerName>one</LoadBalancerName><LoadBalancerArn>arn:1</LoadBalancerArn>\
    <SecurityGroups/></member>";
const BALANCER_WITH_GROUPS: &str = "<member><LoadBalancerArn>arn:1</LoadBalancerArn><SecurityGroups>\
    <member>sg-1</member></SecurityGroups></member>";
const TARGETS: &str = "<member><TargetGroupArn>arn:tg</TargetGroupArn><LoadBalancerArns><member>arn:1</member>\
    </LoadBalancerArns></member>";
const RULE: &[(&str, &str)] = &[
    ("GroupId", "sg-1"),
    ("IpPermissions.1.IpProtocol", "tcp"),
    ("IpPermissions.1.FromPort", "22"),
    ("IpPermissions.1.ToPort", "22"),
    ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/8"),
    ("IpPermissions.1.IpRanges.1.Description", "new"),
];
const NO_GROUP: Answers<'static> = &[(Ec2, "DescribeSecurityGroups", DEFAULT_GROUP)];

/// One case, in the order of its fields.
const fn case(
    api: Api,
    action: &'static str,
    parameters: Parameters,
    refused_with: Answers<'static>,
    done_with: Answers<'static>,
    code: &'static str,
) -> Case {
    Case { api, action, parameters, refused_with, done_with, code }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case(Ec2, "AttachInternetGateway", &[("VpcId", "vpc-1")],
        &[(Ec2, "DescribeInternetGateways", GATEWAY)], &[], "Resource.AlreadyAssociated"),
    case(Ec2, "AssociateRouteTable", &[("RouteTableId", "rtb-2")],
        &[(Ec2, "DescribeRouteTables", TABLE)], &[], "Resource.AlreadyAssociated"),
    case(Ec2, "AssociateRouteTable", &[("RouteTableId", "rtb-2")],
        &[(Ec2, "DescribeRouteTables", TABLE)],
        &[(Ec2, "DescribeRouteTables", "<routeTableSet><item><routeTableId>rtb-2</routeTableId></item></routeTableSet>")],
        "Resource.AlreadyAssociated"),
    case(Ec2, "AuthorizeSecurityGroupIngress", RULE,
        &[(Ec2, "DescribeSecurityGroups", GROUP)], NO_GROUP, "InvalidPermission.Duplicate"),
    case(Ec2, "CreateEgressOnlyInternetGateway", &[("VpcId", "vpc-1")],
        &[(Ec2, "DescribeEgressOnlyInternetGateways", GATEWAY)],
        &[(Ec2, "DescribeEgressOnlyInternetGateways", GATEWAY_ELSEWHERE)], "Resource.AlreadyAssociated"),
    case(Ec2, "CreateCarrierGateway", &[("VpcId", "vpc-1")],
        &[(Ec2, "DescribeCarrierGateways", CARRIER)], &[], "Resource.AlreadyAssociated"),
    case(Ec2, "CreateNatGateway", &[("SubnetId", "subnet-1")], &[(Ec2, "DescribeSubnets", SUBNET)],
        &[(Ec2, "DescribeSubnets", SUBNET), (Ec2, "DescribeInternetGateways", GATEWAY)], "Gateway.NotAttached"),
    case(Ec2, "CreateRoute", &[("NatGatewayId", "nat-1")], &[(Ec2, "DescribeNatGateways", NAT)],
        &[(Ec2, "DescribeNatGateways", NAT_THAT_SERVES)], "InvalidNatGatewayID.NotFound"),
    case(Ec2, "ReplaceRoute", &[("NatGatewayId", "nat-1")], &[],
        &[(Ec2, "DescribeNatGateways", NAT_THAT_SERVES)], "InvalidNatGatewayID.NotFound"),
    case(Ec2, "CreateRoute", &[("GatewayId", "igw-1"), ("RouteTableId", "rtb-1")],
        &[(Ec2, "DescribeInternetGateways", GATEWAY_ELSEWHERE), (Ec2, "DescribeRouteTables", TABLE)],
        &[(Ec2, "DescribeInternetGateways", GATEWAY), (Ec2, "DescribeRouteTables", TABLE)], "InvalidParameterValue"),
    case(Ec2, "RunInstances", &[("ImageId", "ami-1")], &[],
        &[(Ec2, "DescribeImages", "<imageId>ami-1</imageId>")], "InvalidAMIID.NotFound"),
    case(Ec2, "DeleteNatGateway", &[("NatGatewayId", "nat-1")], &[(Ec2, "DescribeNatGateways", NAT_THAT_IS_GONE)],
        &[(Ec2, "DescribeNatGateways", NAT)], "NatGatewayNotFound"),
    case(Ec2, "DeleteRouteTable", &[("RouteTableId", "rtb-1")],
        &[(Ec2, "DescribeRouteTables", TABLE)], &[], "DependencyViolation"),
    case(Ec2, "DeleteSecurityGroup", &[("GroupId", "sg-1")], &[(Ec2, "DescribeSecurityGroups", GROUP_WITH_SOURCE)],
        &[(Ec2, "DescribeSecurityGroups", GROUP)], "DependencyViolation"),
    case(Ec2, "DeleteSecurityGroup", &[("GroupId", "sg-1")], &[(Ec2, "DescribeInstances", INSTANCE)],
        &[(Ec2, "DescribeInstances", INSTANCE_THAT_IS_GONE)], "DependencyViolation"),
    case(Ec2, "DeleteSecurityGroup", &[("GroupId", "sg-1")],
        &[(ElbV2, "DescribeLoadBalancers", BALANCER_WITH_GROUPS)],
        &[(ElbV2, "DescribeLoadBalancers", BALANCER)], "DependencyViolation"),
    case(Ec2, "DeleteSubnet", &[("SubnetId", "subnet-1")], &[(Ec2, "DescribeNatGateways", NAT)],
        &[(Ec2, "DescribeNatGateways", NAT_THAT_IS_GONE), (Ec2, "DescribeInstances", INSTANCE_THAT_IS_GONE)],
        "DependencyViolation"),
    case(Ec2, "DeleteSubnet", &[("SubnetId", "subnet-1")], &[(Ec2, "DescribeInstances", INSTANCE)], &[],
        "DependencyViolation"),
    case(Ec2, "DeleteSubnet", &[("SubnetId", "subnet-1")],
        &[(Classic, "DescribeLoadBalancers", "<Subnets><member>subnet-1</member></Subnets>")], &[],
        "DependencyViolation"),
    case(Ec2, "DeleteVpc", &[("VpcId", "vpc-1")], &[(Ec2, "DescribeSecurityGroups", GROUP)], NO_GROUP,
        "DependencyViolation"),
    case(Ec2, "DeleteVpc", &[("VpcId", "vpc-1")], &[(Ec2, "DescribeInternetGateways", GATEWAY)],
        &[(Ec2, "DescribeInternetGateways", GATEWAY_ELSEWHERE)], "DependencyViolation"),
    case(Ec2, "DeleteVpc", &[("VpcId", "vpc-1")], &[(Ec2, "DescribeCarrierGateways", CARRIER)], &[],
        "DependencyViolation"),
    case(Ec2, "DetachInternetGateway", &[("VpcId", "vpc-1")], &[(Ec2, "DescribeNatGateways", NAT)],
        &[(Ec2, "DescribeNatGateways", NAT_THAT_IS_GONE)], "DependencyViolation"),
    case(Ec2, "DetachInternetGateway", &[("VpcId", "vpc-1")],
        &[(Classic, "DescribeLoadBalancers", "<member><VPCId>vpc-1</VPCId></member>")], &[], "DependencyViolation"),
    case(Ec2, "ReleaseAddress", &[("AllocationId", "eipalloc-1")], &[(Ec2, "DescribeNatGateways", NAT)],
        &[(Ec2, "DescribeNatGateways", NAT_THAT_IS_GONE)], "InvalidIPAddress.InUse"),
    case(Ec2, "ReleaseAddress", &[("AllocationId", "eipalloc-1")],
        &[(Ec2, "DescribeAddresses", "<associationId>eipassoc-1</associationId>")],
        &[(Ec2, "DescribeAddresses", "<associationId/>")], "InvalidIPAddress.InUse"),
    case(Classic, "ConfigureHealthCheck", &[("LoadBalancerName", "one")], &[],
        &[(Classic, "DescribeLoadBalancers", BALANCER)], "LoadBalancerNotFound"),
    case(Classic, "AddTags", &[("LoadBalancerNames.member.1", "one")], &[],
        &[(Classic, "DescribeLoadBalancers", BALANCER)], "LoadBalancerNotFound"),
    case(Classic, "CreateLoadBalancer", &[("LoadBalancerName", "one"), ("Subnets.member.1", "subnet-1")],
        &[(Ec2, "DescribeSubnets", SUBNET)],
        &[(Ec2, "DescribeSubnets", SUBNET), (Ec2, "DescribeInternetGateways", GATEWAY)], "InvalidSubnet"),
    case(ElbV2, "CreateLoadBalancer", &[("Name", "two"), ("Subnets.member.1", "subnet-1")],
        &[(Ec2, "DescribeSubnets", SUBNET)],
        &[(Ec2, "DescribeSubnets", SUBNET), (Ec2, "DescribeInternetGateways", GATEWAY)], "InvalidSubnet"),
    case(ElbV2, "CreateLoadBalancer", &[("Name", "one"), ("Scheme", "internal")],
        &[(ElbV2, "DescribeLoadBalancers", BALANCER)], &[], "DuplicateLoadBalancerName"),
    case(ElbV2, "CreateListener", &[("LoadBalancerArn", "arn:2"), ("DefaultActions.member.1.TargetGroupArn", "arn:tg")],
        &[(ElbV2, "DescribeTargetGroups", TARGETS)], &[], "TargetGroupAssociationLimit"),
    case(ElbV2, "CreateListener", &[("LoadBalancerArn", "arn:1"), ("Port", "6443")],
        &[(ElbV2, "DescribeListeners", "<member><Port>6443</Port></member>")],
        &[(ElbV2, "DescribeListeners", "<member><Port>80</Port></member>")], "DuplicateListener"),
    case(ElbV2, "SetSecurityGroups", &[("LoadBalancerArn", "arn:1")],
        &[(ElbV2, "DescribeLoadBalancers", BALANCER)],
        &[(ElbV2, "DescribeLoadBalancers", BALANCER_WITH_GROUPS)], "InvalidConfigurationRequest"),
];

/// Calls that are refused whatever there is, and one that differs and is carried out.
#[rustfmt::skip]
const BY_THEMSELVES: &[(Api, &str, Parameters, Parameters, &str)] = &[
    (Ec2, "CreateTags", &[("Tag.1.Key", "aws:name")], &[("Tag.1.Key", "name")], "InvalidParameterValue"),
    (Ec2, "ModifyVpcAttribute", &[("EnableDnsSupport.Value", "true"), ("EnableDnsHostnames.Value", "true")],
        &[("EnableDnsSupport.Value", "true")], "InvalidParameterCombination"),
    (Classic, "CreateLoadBalancer", &[("LoadBalancerName", "a-name-of-more-than-32-characters"), ("Subnets.member.1", "s")],
        &[("LoadBalancerName", "one"), ("Subnets.member.1", "s")], "ValidationError"),
    (Classic, "CreateLoadBalancer", &[("LoadBalancerName", "one")],
        &[("LoadBalancerName", "one"), ("Subnets.member.1", "s")], "InvalidConfigurationRequest"),
];

#[test]
fn each_refusal_is_due_with_what_aws_names_and_not_without() {
    let mut used = BTreeSet::new();
    for Case { api, action, parameters, refused_with, done_with, code } in CASES {
        let call = call(*api, action, parameters);
        let found = refused(&call, refused_with);
        assert_eq!(
            found.iter().map(|it| it.1).collect::<Vec<_>>(),
            [*code],
            "{action} {parameters:?}"
        );
        assert!(refused(&call, done_with).is_empty(), "{action} {parameters:?}");
        used.extend(found.iter().map(|it| it.0));
    }
    for (api, action, wrong, right, code) in BY_THEMSELVES {
        let found = refused(&call(*api, action, wrong), &[]);
        assert_eq!(found.iter().map(|it| it.1).collect::<Vec<_>>(), [*code], "{action} {wrong:?}");
        assert!(refused(&call(*api, action, right), &[]).is_empty(), "{action} {right:?}");
        used.extend(found.iter().map(|it| it.0));
    }
    let unused = (0..REFUSALS.len()).filter(|place| !used.contains(place));
    let unused: Vec<_> = unused.map(|place| REFUSALS[place].3).collect();
    assert_eq!(unused, [""; 0], "no case for these");
}

#[test]
fn rules_differ_by_ports_and_source() {
    for (name, other) in
        [("IpPermissions.1.ToPort", "23"), ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/9")]
    {
        let mut call = call(Ec2, "AuthorizeSecurityGroupIngress", RULE);
        call.parameters.insert(name.to_owned(), other.to_owned());
        assert!(refused(&call, &[(Ec2, "DescribeSecurityGroups", GROUP)]).is_empty(), "{name}");
    }
}
