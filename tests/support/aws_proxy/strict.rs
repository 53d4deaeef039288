//! What AWS refuses and moto does not: removing what is in use, and using what is taken. Also other
//! behaviour of AWS that moto lacks.

use roxmltree::{Document, Node};

use super::call::Call;
use super::upstream::Upstream;

/// The code that AWS would refuse a call with.
pub(super) async fn refuses(upstream: &Upstream, call: &Call) -> Option<&'static str> {
    let look = Look { upstream, region: &call.region };
    let parameter = |name| call.parameter(name);
    let (is_refused, code) = match call.action.as_str() {
        "DeleteSecurityGroup" => {
            (look.uses_group(parameter("GroupId")).await, "DependencyViolation")
        }
        "DeleteSubnet" => (look.uses_subnet(parameter("SubnetId")).await, "DependencyViolation"),
        "DetachInternetGateway" => {
            (look.maps_addresses(parameter("VpcId")).await, "DependencyViolation")
        }
        "DeleteVpc" => (look.is_inhabited(parameter("VpcId")).await, "DependencyViolation"),
        "DeleteRouteTable" => {
            (look.is_associated(parameter("RouteTableId")).await, "DependencyViolation")
        }
        "ReleaseAddress" => (look.uses_address(parameter("AllocationId")).await, "AuthFailure"),
        "AttachInternetGateway" => {
            (look.has_gateway(parameter("VpcId")).await, "Resource.AlreadyAssociated")
        }
        "AssociateRouteTable" => {
            let (subnet, table) = (parameter("SubnetId"), parameter("RouteTableId"));
            (look.has_another_table(subnet, table).await, "Resource.AlreadyAssociated")
        }
        "CreateLoadBalancer" if !call.is_classic() => {
            (look.has_network_balancer(parameter("Name")).await, "DuplicateLoadBalancerName")
        }
        _ => return None,
    };
    is_refused.then_some(code)
}

/// Does what follows from a call that was carried out: the addresses of a NAT gateway that is
/// deleted become free.
pub(super) async fn carry_on(upstream: &Upstream, call: &Call) {
    if call.action != "DeleteNatGateway" {
        return;
    }
    let look = Look { upstream, region: &call.region };
    let nat = ("nat-gateway-id", call.parameter("NatGatewayId"));
    let answer = look.describe("DescribeNatGateways", &[nat]).await;
    for allocation in texts(&answer, "allocationId") {
        let answer = look.describe("DescribeAddresses", &[("allocation-id", &allocation)]).await;
        for association in texts(&answer, "associationId") {
            let end = [("Action", "DisassociateAddress"), ("AssociationId", &association)];
            upstream.ec2(&call.region, &end).await;
        }
    }
}

struct Look<'a> {
    upstream: &'a Upstream,
    region: &'a str,
}

/// Whether an element is in an answer, with that text when one is given.
fn has(answer: &str, name: &str, text: Option<&str>) -> bool {
    let document = Document::parse(answer).expect("moto answers XML");
    let is_it = |node: Node<'_, '_>| {
        node.tag_name().name() == name && text.is_none_or(|text| node.text() == Some(text))
    };
    document.descendants().any(is_it)
}

/// The texts of all elements of a name.
fn texts(answer: &str, name: &str) -> Vec<String> {
    let document = Document::parse(answer).expect("moto answers XML");
    let named = document.descendants().filter(|node| node.tag_name().name() == name);
    named.filter_map(|node| node.text().map(str::to_owned)).collect()
}

fn child<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().find(|child| child.tag_name().name() == name)?.text()
}

impl Look<'_> {
    async fn describe(&self, action: &str, filters: &[(&str, &str)]) -> String {
        let mut parameters = vec![("Action".to_owned(), action.to_owned())];
        for (number, (name, value)) in filters.iter().enumerate() {
            let number = number + 1;
            parameters.push((format!("Filter.{number}.Name"), (*name).to_owned()));
            for (place, value) in value.split(',').enumerate() {
                parameters.push((format!("Filter.{number}.Value.{}", place + 1), value.to_owned()));
            }
        }
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.upstream.ec2(self.region, &parameters).await
    }

    async fn has_instances(&self, filter: &str, value: &str) -> bool {
        let live = ("instance-state-name", "pending,running,stopping,stopped,shutting-down");
        let answer = self.describe("DescribeInstances", &[(filter, value), live]).await;
        has(&answer, "instanceId", None)
    }

    async fn has_nats(&self, filter: &str, value: &str) -> bool {
        let live = ("state", "pending,available,failed,deleting");
        let answer = self.describe("DescribeNatGateways", &[(filter, value), live]).await;
        has(&answer, "natGatewayId", None)
    }

    /// Load balancers of both generations.
    async fn balancers(&self) -> [String; 2] {
        let describe = [("Action", "DescribeLoadBalancers")];
        [
            self.upstream.elb(self.region, &describe).await,
            self.upstream.elbv2(self.region, &describe).await,
        ]
    }

    async fn balancers_have(&self, element: &str, text: &str) -> bool {
        self.balancers().await.iter().any(|answer| has(answer, element, Some(text)))
    }

    async fn uses_group(&self, group: &str) -> bool {
        let groups = self.describe("DescribeSecurityGroups", &[]).await;
        let document = Document::parse(&groups).expect("moto answers XML");
        let names_it = document.descendants().any(|node| {
            let is_source = node.tag_name().name() == "groupId"
                && node.text() == Some(group)
                && node.ancestors().any(|outer| outer.tag_name().name() == "groups");
            // A rule of the group itself goes with it.
            let owner = node.ancestors().filter_map(|outer| child(outer, "groupId")).last();
            is_source && owner != Some(group)
        });
        names_it
            || self.has_instances("instance.group-id", group).await
            || self.balancers_have("member", group).await
    }

    async fn uses_subnet(&self, subnet: &str) -> bool {
        self.has_instances("subnet-id", subnet).await
            || self.has_nats("subnet-id", subnet).await
            || self.balancers_have("member", subnet).await
            || self.balancers_have("SubnetId", subnet).await
    }

    async fn maps_addresses(&self, vpc: &str) -> bool {
        self.has_instances("vpc-id", vpc).await
            || self.has_nats("vpc-id", vpc).await
            || self.balancers_have("VPCId", vpc).await
            || self.balancers_have("VpcId", vpc).await
    }

    async fn has_gateway(&self, vpc: &str) -> bool {
        let filter = [("attachment.vpc-id", vpc)];
        has(&self.describe("DescribeInternetGateways", &filter).await, "internetGatewayId", None)
    }

    async fn is_inhabited(&self, vpc: &str) -> bool {
        let groups = self.describe("DescribeSecurityGroups", &[("vpc-id", vpc)]).await;
        let document = Document::parse(&groups).expect("moto answers XML");
        let mut names = document.descendants().filter(|node| node.tag_name().name() == "groupName");
        let egress_only = self.describe("DescribeEgressOnlyInternetGateways", &[]).await;
        names.any(|name| name.text() != Some("default"))
            || self.has_gateway(vpc).await
            || has(&egress_only, "vpcId", Some(vpc))
    }

    async fn is_associated(&self, table: &str) -> bool {
        let answer = self.describe("DescribeRouteTables", &[("route-table-id", table)]).await;
        has(&answer, "subnetId", None)
    }

    async fn has_another_table(&self, subnet: &str, table: &str) -> bool {
        let answer =
            self.describe("DescribeRouteTables", &[("association.subnet-id", subnet)]).await;
        has(&answer, "routeTableId", None) && !has(&answer, "routeTableId", Some(table))
    }

    async fn uses_address(&self, allocation: &str) -> bool {
        let live = ("state", "pending,available,failed,deleting");
        let answer = self.describe("DescribeNatGateways", &[live]).await;
        has(&answer, "allocationId", Some(allocation))
    }

    async fn has_network_balancer(&self, name: &str) -> bool {
        let [_, answer] = self.balancers().await;
        has(&answer, "LoadBalancerName", Some(name))
    }
}
