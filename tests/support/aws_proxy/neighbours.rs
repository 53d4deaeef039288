//! Resources of others in the VPC of a cluster, in shapes that moto cannot make: they are added to
//! the answers of describe calls, and no other call knows them.

use super::call::Call;
use super::upstream::Upstream;

/// Part of the id of each.
const NEIGHBOUR: &str = "neighbour";

/// What is added to which answer, and before what. `VPC` stands for the VPC.
const SHOWN: [(&str, &str, &str); 8] = [
    (
        "DescribeVpcs",
        "</cidrBlockAssociationSet>",
        "<item><associationId>vpc-cidr-assoc-neighbour</associationId><cidrBlock>100.64.0.0/16</cidrBlock>\
         <cidrBlockState><state>new</state></cidrBlockState></item>",
    ),
    (
        "DescribeSubnets",
        "</subnetSet>",
        "<item><subnetId>subnet-neighbour</subnetId><vpcId>VPC</vpcId><ipv6Native>true</ipv6Native>\
         <availabilityZone>us-east-2a</availabilityZone><state>available</state>\
         <ipv6CidrBlockAssociationSet><item><ipv6CidrBlock>2600:db8::/64</ipv6CidrBlock></item>\
         </ipv6CidrBlockAssociationSet></item>\
         <item><subnetId>subnet-neighbour2</subnetId><vpcId>VPC</vpcId></item>",
    ),
    (
        "DescribeNatGateways",
        "</natGatewaySet>",
        "<item><natGatewayId>nat-neighbour</natGatewayId><vpcId>VPC</vpcId><state>moving</state>\
         <availabilityMode>regional</availabilityMode></item>\
         <item><natGatewayId>nat-neighbour2</natGatewayId><vpcId>VPC</vpcId><state>available</state>\
         <subnetId>subnet-neighbour2</subnetId><connectivityType>private</connectivityType></item>",
    ),
    (
        "DescribeAddresses",
        "</addressesSet>",
        "<item><publicIp>52.1.2.3</publicIp><domain>standard</domain></item>",
    ),
    (
        "DescribeSecurityGroups",
        "</securityGroupInfo>",
        "<item><groupId>sg-neighbour</groupId><vpcId>VPC</vpcId><groupName>n</groupName>\
         <ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>1</fromPort><toPort>1</toPort>\
         <groups><item><userId>999999999999</userId><groupName>of a peer</groupName></item></groups>\
         <prefixListIds><item><prefixListId>pl-1</prefixListId></item></prefixListIds></item>\
         <item><ipProtocol>new</ipProtocol></item></ipPermissions></item>",
    ),
    (
        "DescribeRouteTables",
        "</routeTableSet>",
        "<item><routeTableId>rtb-neighbour</routeTableId><vpcId>VPC</vpcId><routeSet>\
         <item><destinationIpv6CidrBlock>::/0</destinationIpv6CidrBlock>\
         <carrierGatewayId>cagw-1</carrierGatewayId><state>new</state></item><item/></routeSet>\
         <associationSet><item><routeTableAssociationId>rtbassoc-neighbour</routeTableAssociationId>\
         <gatewayId>igw-1</gatewayId></item></associationSet></item>",
    ),
    (
        "DescribeTargetGroups",
        "</TargetGroups>",
        "<member><TargetGroupArn>arn:neighbour:lambda</TargetGroupArn>\
         <TargetGroupName>functions</TargetGroupName><TargetType>lambda</TargetType></member>\
         <member><TargetGroupArn>arn:neighbour:ip</TargetGroupArn><TargetGroupName>pods</TargetGroupName>\
         <TargetType>ip</TargetType><VpcId>VPC</VpcId><Protocol>UDP</Protocol><Port>53</Port></member>\
         <member><TargetGroupArn>arn:neighbour:alb</TargetGroupArn><TargetGroupName>web</TargetGroupName>\
         <TargetType>alb</TargetType><VpcId>VPC</VpcId><Protocol>TCP</Protocol><Port>80</Port></member>\
         <member><TargetGroupArn>arn:neighbour:geneve</TargetGroupArn>\
         <TargetGroupName>inspection</TargetGroupName><TargetType>new</TargetType>\
         <VpcId>VPC</VpcId><Protocol>GENEVE</Protocol><Port>6081</Port></member>",
    ),
    (
        "DescribeLoadBalancers",
        "</LoadBalancers>",
        "<member><LoadBalancerArn>arn:neighbour:gwlb</LoadBalancerArn>\
         <LoadBalancerName>inspection</LoadBalancerName><Type>gateway</Type><VpcId>VPC</VpcId>\
         <State><Code>failed</Code></State></member>\
         <member><LoadBalancerArn>arn:neighbour:alb</LoadBalancerArn><LoadBalancerName>web</LoadBalancerName>\
         <Type>application</Type><VpcId>VPC</VpcId><State><Code>active_impaired</Code></State></member>",
    ),
];

const LISTENERS: &str = "<DescribeListenersResponse><DescribeListenersResult><Listeners>\
    <member><ListenerArn>arn:neighbour:listener</ListenerArn></member>\
    <member><ListenerArn>arn:neighbour:weighted</ListenerArn><Port>80</Port><Protocol>NEW</Protocol>\
    <DefaultActions><member><Type>forward</Type><ForwardConfig><TargetGroups><member>\
    <TargetGroupArn>arn:neighbour:geneve</TargetGroupArn><Weight>1</Weight></member></TargetGroups>\
    </ForwardConfig></member><member><Type>redirect</Type></member></DefaultActions></member>\
    </Listeners></DescribeListenersResult></DescribeListenersResponse>";

const NO_TAGS: &str = "<DescribeTagsResponse><DescribeTagsResult><TagDescriptions></TagDescriptions>\
    </DescribeTagsResult></DescribeTagsResponse>";

/// The resources of others.
#[derive(Default)]
pub(super) struct Neighbours {
    are_there: bool,
    /// The VPC that was asked about last.
    vpc: String,
}

impl Neighbours {
    pub(super) fn move_in(&mut self) {
        self.are_there = true;
    }

    /// An answer with the neighbours in it.
    pub(super) fn shown_in(&mut self, call: &Call, answer: String) -> String {
        if !self.are_there {
            return answer;
        }
        let is_vpc = |value: &&String| value.starts_with("vpc-") && **value != "vpc-id";
        let vpc = call.parameters.values().find(is_vpc);
        self.vpc = vpc.cloned().unwrap_or_else(|| self.vpc.clone());
        // What is asked for by its tags or its name is not of others.
        let is_of_vpc = vpc.is_some() || (call.service != "ec2" && !self.vpc.is_empty());
        let names_one = call.parameters.keys().any(|name| name.starts_with("Names."));
        let added = SHOWN.iter().find(|(action, ..)| *action == call.action);
        let by_any_filter = call.action == "DescribeAddresses";
        match added.filter(|_| (is_of_vpc || by_any_filter) && !names_one) {
            Some((_, before, item)) => {
                let set = before.trim_matches(['<', '/', '>']);
                let answer = answer.replacen(&format!("<{set}/>"), &format!("<{set}>{before}"), 1);
                answer.replacen(before, &format!("{}{before}", item.replace("VPC", &self.vpc)), 1)
            }
            None => answer,
        }
    }

    pub(super) fn are_there(&self) -> bool {
        self.are_there
    }
}

/// What is answered to a call that names a neighbour, which moto does not know.
pub(super) async fn answer(upstream: &Upstream, call: &Call) -> Option<String> {
    let is_neighbour = |value: &String| value.contains(NEIGHBOUR);
    if !call.parameters.values().any(is_neighbour) {
        return None;
    }
    match call.action.as_str() {
        "DescribeListeners" => Some(LISTENERS.to_owned()),
        "DescribeTags" => {
            let known = call.parameters.values().filter(|value| value.starts_with("arn:aws"));
            let known: Vec<_> = known.collect();
            if known.is_empty() {
                return Some(NO_TAGS.to_owned());
            }
            let names = (1..=known.len()).map(|place| format!("ResourceArns.member.{place}"));
            let names: Vec<_> = names.collect();
            let mut parameters = vec![("Action", "DescribeTags")];
            parameters
                .extend(names.iter().map(String::as_str).zip(known.into_iter().map(|it| &**it)));
            Some(upstream.elbv2(&call.region, &parameters).await)
        }
        _ => None,
    }
}
