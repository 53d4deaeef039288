//! What AWS refuses and moto does not: [`REFUSALS`], and what follows from a call that was carried out.

use parking_lot::Mutex;

use super::call::Call;
use super::elements::Element;
use super::states::States;
use super::upstream::Upstream;

mod predicates;
#[cfg(test)]
pub(super) mod tests;

use predicates as is;

/// An API. Those of load balancers share some names of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Ec2,
    Classic,
    ElbV2,
}

impl Api {
    pub(super) fn of(call: &Call) -> Self {
        match call.service.as_str() {
            "elasticloadbalancing" if call.is_classic() => Self::Classic,
            "elasticloadbalancing" => Self::ElbV2,
            _ => Self::Ec2,
        }
    }
}

/// A describe call of moto. A filter has the value of a parameter of the call that is judged.
struct Read(Api, &'static str, Option<(&'static str, &'static str)>);

/// A refusal: the calls, the code, the page of AWS's API reference that decides, what has to be read to know, and
/// whether the call is refused with what was read.
struct Refusal(
    Api,
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static [Read],
    fn(&Call, &[Element]) -> bool,
);

const fn all(action: &'static str) -> Read {
    Read(Api::Ec2, action, None)
}

const fn of(action: &'static str, filter: &'static str, parameter: &'static str) -> Read {
    Read(Api::Ec2, action, Some((filter, parameter)))
}

const CLASSIC: Read = Read(Api::Classic, "DescribeLoadBalancers", None);
const NETWORK: Read = Read(Api::ElbV2, "DescribeLoadBalancers", None);
const TARGET_GROUPS: Read = Read(Api::ElbV2, "DescribeTargetGroups", None);
const GATEWAYS: Read = all("DescribeInternetGateways");
const NATS: Read = all("DescribeNatGateways");

/// Calls of classic load balancers that name one.
const OF_CLASSIC: &[&str] = &[
    "AddTags",
    "ApplySecurityGroupsToLoadBalancer",
    "AttachLoadBalancerToSubnets",
    "ConfigureHealthCheck",
    "CreateLoadBalancerListeners",
    "DeleteLoadBalancerListeners",
    "DetachLoadBalancerFromSubnets",
    "ModifyLoadBalancerAttributes",
    "RemoveTags",
];
/// Calls that write tags of EC2.
const OF_TAGS: &[&str] = &[
    "AllocateAddress",
    "CreateInternetGateway",
    "CreateNatGateway",
    "CreateRouteTable",
    "CreateSecurityGroup",
    "CreateSubnet",
    "CreateTags",
    "CreateVpc",
    "RunInstances",
];

/// What moto carries out, or fails to carry out with an internal error, and AWS refuses.
#[rustfmt::skip]
static REFUSALS: &[Refusal] = &[
    Refusal(Api::Ec2, &["AttachInternetGateway"], "Resource.AlreadyAssociated",
        "EC2 API, AttachInternetGateway: one gateway for each VPC",
        &[of("DescribeInternetGateways", "attachment.vpc-id", "VpcId")], is::found),
    Refusal(Api::Ec2, &["AssociateRouteTable"], "Resource.AlreadyAssociated",
        "EC2 API, AssociateRouteTable: a subnet has one route table",
        &[of("DescribeRouteTables", "association.subnet-id", "SubnetId")], is::of_another_table),
    Refusal(Api::Ec2, &["AuthorizeSecurityGroupIngress"], "InvalidPermission.Duplicate",
        "EC2 API, AuthorizeSecurityGroupIngress: a description does not make another rule",
        &[of("DescribeSecurityGroups", "group-id", "GroupId")], is::a_known_rule),
    // No page names the code.
    Refusal(Api::Ec2, &["CreateEgressOnlyInternetGateway"], "Resource.AlreadyAssociated",
        "Amazon VPC quotas, Gateways: one egress-only internet gateway for each VPC",
        &[all("DescribeEgressOnlyInternetGateways")], is::found),
    // No page names the code.
    Refusal(Api::Ec2, &["CreateCarrierGateway"], "Resource.AlreadyAssociated",
        "Amazon VPC quotas, Gateways: one carrier gateway for each VPC",
        &[all("DescribeCarrierGateways")], is::found),
    Refusal(Api::Ec2, &["CreateNatGateway"], "Gateway.NotAttached",
        "EC2 API, CreateNatGateway: a public one needs an internet gateway",
        &[GATEWAYS, of("DescribeSubnets", "subnet-id", "SubnetId")], is::without_gateway),
    Refusal(Api::Ec2, &["CreateRoute", "ReplaceRoute"], "InvalidNatGatewayID.NotFound",
        "EC2 API, CreateRoute: the NAT gateway has to be there and to serve",
        &[NATS], is::to_unready_nat),
    Refusal(Api::Ec2, &["CreateRoute", "ReplaceRoute"], "InvalidParameterValue",
        "EC2 API, CreateRoute: the internet gateway has to be attached to the VPC of the table",
        &[of("DescribeInternetGateways", "internet-gateway-id", "GatewayId"),
          of("DescribeRouteTables", "route-table-id", "RouteTableId")], is::to_a_gateway_elsewhere),
    Refusal(Api::Ec2, OF_TAGS, "InvalidParameterValue",
        "EC2 API, CreateTags: a key has at most 128 characters and does not begin with aws:",
        &[], is::a_wrong_key),
    Refusal(Api::Ec2, &["ModifySubnetAttribute", "ModifyVpcAttribute"], "InvalidParameterCombination",
        "EC2 API, ModifyVpcAttribute: one attribute in each call",
        &[], is::of_two_attributes),
    Refusal(Api::Ec2, &["RunInstances"], "InvalidAMIID.NotFound", "EC2 API, RunInstances: ImageId",
        &[of("DescribeImages", "image-id", "ImageId")], is::of_no_image),
    Refusal(Api::Ec2, &["DeleteNatGateway"], "NatGatewayNotFound", "EC2 API, DeleteNatGateway",
        &[NATS], is::of_no_nat),
    Refusal(Api::Ec2, &["DeleteRouteTable"], "DependencyViolation",
        "EC2 API, DeleteRouteTable: disassociate all subnets first",
        &[of("DescribeRouteTables", "route-table-id", "RouteTableId")], is::with_subnets),
    Refusal(Api::Ec2, &["DeleteSecurityGroup"], "DependencyViolation",
        "EC2 API, DeleteSecurityGroup: in use, or the source of a rule of another group",
        &[of("DescribeInstances", "instance.group-id", "GroupId"), CLASSIC, NETWORK,
          all("DescribeSecurityGroups")], is::of_a_used_group),
    Refusal(Api::Ec2, &["DeleteSubnet"], "DependencyViolation",
        "EC2 API, DeleteSubnet: terminate what runs in it first",
        &[of("DescribeInstances", "subnet-id", "SubnetId"), NATS, CLASSIC, NETWORK],
        |call, found| is::named(call, "SubnetId", found)),
    Refusal(Api::Ec2, &["DeleteVpc"], "DependencyViolation",
        "EC2 API, DeleteVpc: detach or delete all gateways and resources first",
        &[GATEWAYS, all("DescribeEgressOnlyInternetGateways"), all("DescribeCarrierGateways"), NATS,
           of("DescribeSecurityGroups", "vpc-id", "VpcId")], is::of_a_used_vpc),
    Refusal(Api::Ec2, &["DetachInternetGateway"], "DependencyViolation",
        "EC2 API, DetachInternetGateway: the VPC must contain no public addresses",
        &[of("DescribeInstances", "vpc-id", "VpcId"), NATS, CLASSIC, NETWORK],
        |call, found| is::named(call, "VpcId", found)),
    Refusal(Api::Ec2, &["ReleaseAddress"], "InvalidIPAddress.InUse",
        "EC2 API, ReleaseAddress: disassociate it first",
        &[NATS, of("DescribeAddresses", "allocation-id", "AllocationId")], is::of_a_used_address),

    Refusal(Api::Classic, OF_CLASSIC, "LoadBalancerNotFound", "ELB API (2012-06-01), each action",
        &[CLASSIC], is::of_no_balancer),
    Refusal(Api::Classic, &["CreateLoadBalancer"], "ValidationError",
        "ELB API (2012-06-01), CreateLoadBalancer: LoadBalancerName", &[], is::of_a_wrong_name),
    Refusal(Api::Classic, &["CreateLoadBalancer"], "InvalidConfigurationRequest",
        "ELB API (2012-06-01), CreateLoadBalancer: a subnet or a zone", &[], is::without_subnet),
    Refusal(Api::Classic, &["CreateLoadBalancer"], "InvalidSubnet",
        "ELB API (2012-06-01), CreateLoadBalancer: the VPC has no internet gateway",
        &[GATEWAYS, of("DescribeSubnets", "subnet-id", "Subnets.member.1")], is::without_gateway),

    Refusal(Api::ElbV2, &["CreateLoadBalancer"], "DuplicateLoadBalancerName",
        "ELB API (2015-12-01), CreateLoadBalancer: a name is unique in its region",
        &[NETWORK], is::of_a_taken_name),
    Refusal(Api::ElbV2, &["CreateLoadBalancer"], "InvalidSubnet",
        "ELB API (2015-12-01), CreateLoadBalancer: the VPC has no internet gateway",
        &[GATEWAYS, of("DescribeSubnets", "subnet-id", "Subnets.member.1")], is::without_gateway),
    Refusal(Api::ElbV2, &["CreateListener"], "TargetGroupAssociationLimit",
        "ELB API (2015-12-01), CreateListener: a target group has one load balancer",
        &[TARGET_GROUPS], is::to_a_group_of_another),
    Refusal(Api::ElbV2, &["CreateListener"], "DuplicateListener",
        "ELB API (2015-12-01), CreateListener: a port has one listener",
        &[Read(Api::ElbV2, "DescribeListeners", Some(("LoadBalancerArn", "LoadBalancerArn")))],
        |call, found| found[0].texts("Port").any(|port| port == call.parameter("Port"))),
    Refusal(Api::ElbV2, &["SetSecurityGroups"], "InvalidConfigurationRequest",
        "ELB API (2015-12-01), SetSecurityGroups: not on one that was made without groups",
        &[NETWORK], is::of_one_without_groups),
];

/// The code that AWS would refuse a call with, and the page that says so.
pub(super) async fn refuses(
    upstream: &Upstream,
    states: &Mutex<States>,
    call: &Call,
) -> Option<(&'static str, &'static str)> {
    if states.lock().holds(call) {
        return Some((
            "DependencyViolation",
            "ELB: interfaces of a deleted load balancer go later",
        ));
    }
    for Refusal(_, _, code, page, reads, is_due) in refusals_of(call) {
        let mut found = Vec::new();
        for read in *reads {
            let answer = look(upstream, call, read).await;
            // A read of the proxy does not count among the answers for which a state lasts.
            found.push(Element::of(&states.lock().nats_as_shown(&answer)));
        }
        if is_due(call, &found) {
            return Some((code, page));
        }
    }
    None
}

fn refusals_of(call: &Call) -> impl Iterator<Item = &'static Refusal> {
    let (api, action) = (Api::of(call), call.action.clone());
    REFUSALS.iter().filter(move |it| it.0 == api && it.1.contains(&action.as_str()))
}

async fn look(upstream: &Upstream, call: &Call, Read(api, action, filter): &Read) -> String {
    let mut parameters = vec![("Action", *action)];
    if let Some((name, parameter)) = filter {
        let value = call.parameter(parameter);
        match api {
            Api::Ec2 => {
                parameters.extend([("Filter.1.Name", *name), ("Filter.1.Value.1", value)]);
            }
            // ELB has no filters.
            Api::Classic | Api::ElbV2 => parameters.push((*name, value)),
        }
    }
    ask(upstream, call, *api, &parameters).await
}

/// Asks for the account that a call belongs to.
async fn ask(upstream: &Upstream, call: &Call, api: Api, parameters: &[(&str, &str)]) -> String {
    let (upstream, region) = (upstream.with_key(&call.key), &call.region);
    match api {
        Api::Ec2 => upstream.ec2(region, parameters).await,
        Api::Classic => upstream.elb(region, parameters).await,
        Api::ElbV2 => upstream.elbv2(region, parameters).await,
    }
}

/// Whether what a create names is still there: a create of ELB with the same settings succeeds as the first did.
pub(super) async fn is_still_there(upstream: &Upstream, call: &Call) -> bool {
    let read = if call.action == "CreateTargetGroup" { TARGET_GROUPS } else { NETWORK };
    Element::of(&look(upstream, call, &read).await).names(call.parameter("Name"))
}

/// What a load balancer that is about to be deleted holds for a while: its groups, its subnets and its VPC.
pub(super) async fn holds_later(upstream: &Upstream, call: &Call) -> Vec<String> {
    if call.action != "DeleteLoadBalancer" {
        return Vec::new();
    }
    let (read, key) = match Api::of(call) {
        Api::Classic => (CLASSIC, "LoadBalancerName"),
        _ => (NETWORK, "LoadBalancerArn"),
    };
    let found = Element::of(&look(upstream, call, &read).await);
    let Some(found) = found.whose(key, call.parameter(key)) else { return Vec::new() };
    let ids = found.all().map(Element::text);
    let ids = ids.filter(|id| ["subnet-", "sg-", "vpc-"].iter().any(|it| id.starts_with(it)));
    owned(ids)
}

/// Does what follows from the end of a NAT gateway: its addresses become free.
pub(super) async fn free_addresses(upstream: &Upstream, call: &Call, nat: &str) {
    let ec2 = async |parameters: &[(&str, &str)]| ask(upstream, call, Api::Ec2, parameters).await;
    let describe = |action, filter, id| {
        [("Action", action), ("Filter.1.Name", filter), ("Filter.1.Value.1", id)]
    };
    let nats = ec2(&describe("DescribeNatGateways", "nat-gateway-id", nat)).await;
    // It has ended, and so are its addresses for `Element`.
    let parts = nats.split("<allocationId>").skip(1);
    let ids: Vec<_> = parts.filter_map(|part| part.split('<').next()).collect();
    for id in ids {
        let found = ec2(&describe("DescribeAddresses", "allocation-id", id)).await;
        for association in owned(Element::of(&found).texts("associationId")) {
            ec2(&[("Action", "DisassociateAddress"), ("AssociationId", &association)]).await;
        }
    }
}

/// Does what follows from the end of a subnet: its association with a route table ends.
pub(super) async fn end_associations(upstream: &Upstream, call: &Call) {
    let ec2 = async |parameters: &[(&str, &str)]| ask(upstream, call, Api::Ec2, parameters).await;
    let tables = Element::of(&ec2(&[("Action", "DescribeRouteTables")]).await);
    let subnet = call.parameter("SubnetId");
    let of_subnet = tables.with("subnetId").filter(|it| it.text_of("subnetId") == subnet);
    for id in owned(of_subnet.map(|it| it.text_of("routeTableAssociationId"))) {
        ec2(&[("Action", "DisassociateRouteTable"), ("AssociationId", &id)]).await;
    }
}

fn owned<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    texts.map(str::to_owned).collect()
}
