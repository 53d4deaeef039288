//! Networks as upstream's AWS provider makes them, and resources of others, made on AWS without the
//! product; and the judge of its writes.

use std::collections::BTreeSet;

use tests::aws_proxy::{Call, Upstream};

use crate::aws_stage::REGION;

const PROVIDER: &str = "sigs.k8s.io/cluster-api-provider-aws/";
const OWNER: &str = "aws.cluster.x-k8s.io/owner-id";

/// The kind of load balancer that upstream's provider creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balancer {
    Classic,
    /// A network load balancer with the listener of the API server and an additional one.
    Network,
}

/// Resources that upstream's provider has created for a cluster.
pub(crate) struct Foreign<'a> {
    upstream: &'a Upstream,
    cluster: String,
    /// Ids, ARNs, names of classic load balancers.
    pub(crate) ids: BTreeSet<String>,
    pub(crate) vpc: String,
    /// The public one, and the private one.
    pub(crate) subnets: [String; 2],
}

/// The texts of all elements of a name.
pub(crate) fn texts(answer: &str, element: &str) -> Vec<String> {
    let start = format!("<{element}>");
    let pieces = answer.split(&*start).skip(1);
    pieces.map(|piece| piece.split('<').next().unwrap().to_owned()).collect()
}

type Parameters<'a> = &'a [(&'a str, &'a str)];

impl<'a> Foreign<'a> {
    pub(crate) fn of(upstream: &'a Upstream, cluster: &str) -> Self {
        let (ids, vpc, subnets) = (BTreeSet::new(), String::new(), Default::default());
        Self { upstream, cluster: cluster.to_owned(), ids, vpc, subnets }
    }

    /// The tags of upstream's provider.
    fn tags(&self, role: &str, name: &str) -> Vec<(String, String)> {
        vec![
            (format!("{PROVIDER}cluster/{}", self.cluster), "owned".to_owned()),
            (format!("{PROVIDER}role"), role.to_owned()),
            ("Name".to_owned(), format!("{}-{name}", self.cluster)),
        ]
    }

    /// A call of EC2 that makes one resource.
    async fn make(&mut self, parameters: Parameters<'_>, element: &str) -> String {
        let id = texts(&self.upstream.ec2(REGION, parameters).await, element).remove(0);
        self.ids.insert(id.clone());
        id
    }

    /// Sets tags on a resource of EC2.
    pub(crate) async fn tag(&self, id: &str, tags: &[(String, String)]) {
        let mut parameters = vec![
            ("Action".to_owned(), "CreateTags".to_owned()),
            ("ResourceId.1".to_owned(), id.to_owned()),
        ];
        for (place, (key, value)) in (1..).zip(tags) {
            parameters.push((format!("Tag.{place}.Key"), key.clone()));
            parameters.push((format!("Tag.{place}.Value"), value.clone()));
        }
        self.upstream.ec2(REGION, &borrowed(&parameters)).await;
    }

    /// Sets the owner id, as an adoption does first.
    pub(crate) async fn mark(&self, id: &str, owner: &str) {
        self.tag(id, &[(OWNER.to_owned(), owner.to_owned())]).await;
    }

    async fn made(
        &mut self,
        parameters: Parameters<'_>,
        element: &str,
        role: &str,
        name: &str,
    ) -> String {
        let id = self.make(parameters, element).await;
        self.tag(&id, &self.tags(role, name)).await;
        id
    }

    /// A VPC of a user with two subnets and an internet gateway, and no tags. Returns the gateway.
    pub(crate) async fn users_vpc(&mut self) -> String {
        let vpc = [("Action", "CreateVpc"), ("CidrBlock", "10.1.0.0/16")];
        self.vpc = self.make(&vpc, "vpcId").await;
        for (place, cidr) in ["10.1.0.0/24", "10.1.1.0/24"].into_iter().enumerate() {
            let vpc = self.vpc.clone();
            let zone = format!("{REGION}a");
            let subnet = [
                ("Action", "CreateSubnet"),
                ("VpcId", &vpc),
                ("CidrBlock", cidr),
                ("AvailabilityZone", &zone),
            ];
            self.subnets[place] = self.make(&subnet, "subnetId").await;
        }
        let gateway = [("Action", "CreateInternetGateway")];
        let gateway = self.make(&gateway, "internetGatewayId").await;
        let attach = [
            ("Action", "AttachInternetGateway"),
            ("InternetGatewayId", &*gateway),
            ("VpcId", &*self.vpc),
        ];
        self.upstream.ec2(REGION, &attach).await;
        gateway
    }

    /// A security group without tags.
    pub(crate) async fn group(&mut self, name: &str) -> String {
        let vpc = self.vpc.clone();
        let group = [
            ("Action", "CreateSecurityGroup"),
            ("GroupName", name),
            ("GroupDescription", "of others"),
            ("VpcId", &vpc),
        ];
        self.make(&group, "groupId").await
    }

    /// A group of upstream's provider.
    pub(crate) async fn group_of_role(&mut self, role: &str) -> String {
        let id = self.group(&format!("{}-{role}", self.cluster)).await;
        self.tag(&id, &self.tags(role, role)).await;
        id
    }

    /// A whole network as upstream's provider makes it.
    pub(crate) async fn network(&mut self, balancer: Balancer) {
        let gateway = self.users_vpc().await;
        self.tag(&gateway, &self.tags("common", "igw")).await;
        self.tag(&self.vpc, &self.tags("common", "vpc")).await;
        for (place, role) in ["public", "private"].into_iter().enumerate() {
            let mut tags = self.tags(role, &format!("subnet-{role}-{REGION}a"));
            tags.push((format!("kubernetes.io/cluster/{}", self.cluster), "shared".to_owned()));
            self.tag(&self.subnets[place], &tags).await;
        }
        self.ways_out(gateway).await;
        let mut groups = Vec::new();
        for role in ["bastion", "controlplane", "apiserver-lb", "node", "lb"] {
            groups.push(self.group_of_role(role).await);
        }
        match balancer {
            Balancer::Classic => self.classic_balancer(&groups[2]).await,
            Balancer::Network => self.network_balancer(&groups[2]).await,
        }
    }

    async fn ways_out(&mut self, gateway: String) {
        let (vpc, [public, private]) = (self.vpc.clone(), self.subnets.clone());
        let address = [("Action", "AllocateAddress"), ("Domain", "vpc")];
        let address = self.made(&address, "allocationId", "apiserver", "eip-apiserver").await;
        let nat =
            [("Action", "CreateNatGateway"), ("SubnetId", &*public), ("AllocationId", &*address)];
        let nat = self.made(&nat, "natGatewayId", "common", "nat").await;
        let exits =
            [(public, "public", "GatewayId", gateway), (private, "private", "NatGatewayId", nat)];
        for (subnet, role, way, through) in exits {
            let table = [("Action", "CreateRouteTable"), ("VpcId", &*vpc)];
            let name = format!("rt-{role}-{REGION}a");
            let table = self.made(&table, "routeTableId", "common", &name).await;
            let route = [
                ("Action", "CreateRoute"),
                ("RouteTableId", &*table),
                ("DestinationCidrBlock", "0.0.0.0/0"),
                (way, &*through),
            ];
            self.upstream.ec2(REGION, &route).await;
            let associate = [
                ("Action", "AssociateRouteTable"),
                ("RouteTableId", &*table),
                ("SubnetId", &*subnet),
            ];
            let used = self.upstream.ec2(REGION, &associate).await;
            self.ids.extend(texts(&used, "associationId"));
        }
    }

    async fn classic_balancer(&mut self, group: &str) {
        let name = format!("{}-apiserver", self.cluster);
        let mut parameters = owned(&[
            ("Action", "CreateLoadBalancer"),
            ("LoadBalancerName", &name),
            ("Listeners.member.1.Protocol", "TCP"),
            ("Listeners.member.1.LoadBalancerPort", "6443"),
            ("Listeners.member.1.InstanceProtocol", "TCP"),
            ("Listeners.member.1.InstancePort", "6443"),
            ("Subnets.member.1", &self.subnets[0]),
            ("SecurityGroups.member.1", group),
        ]);
        parameters.extend(self.balancer_tags(&name));
        self.upstream.elb(REGION, &borrowed(&parameters)).await;
        self.ids.insert(name);
    }

    async fn network_balancer(&mut self, group: &str) {
        let name = format!("default-{}-apiserver", self.cluster);
        let mut parameters = owned(&[
            ("Action", "CreateLoadBalancer"),
            ("Name", &name),
            ("Type", "network"),
            ("Subnets.member.1", &self.subnets[0]),
            ("SecurityGroups.member.1", group),
        ]);
        parameters.extend(self.balancer_tags(&name));
        let made = self.upstream.elbv2(REGION, &borrowed(&parameters)).await;
        let balancer = texts(&made, "LoadBalancerArn").remove(0);
        self.ids.insert(balancer.clone());
        self.listener(&balancer, "apiserver-target-", "6443", true).await;
        self.listener(&balancer, "additional-listener-", "9345", true).await;
    }

    /// A target group, and a listener of a network load balancer that leads to it. Upstream's
    /// provider tags its own.
    pub(crate) async fn listener(&mut self, balancer: &str, group: &str, port: &str, tagged: bool) {
        let vpc = self.vpc.clone();
        let group = format!("{group}{}", &vpc[vpc.len() - 10..]);
        let mut parameters = owned(&[
            ("Action", "CreateTargetGroup"),
            ("Name", &group),
            ("Protocol", "TCP"),
            ("Port", port),
            ("VpcId", &vpc),
            ("HealthCheckProtocol", "TCP"),
        ]);
        if tagged {
            parameters.extend(self.balancer_tags(&group));
        }
        let made = self.upstream.elbv2(REGION, &borrowed(&parameters)).await;
        let group = texts(&made, "TargetGroupArn").remove(0);
        let listener = [
            ("Action", "CreateListener"),
            ("LoadBalancerArn", balancer),
            ("Protocol", "TCP"),
            ("Port", port),
            ("DefaultActions.member.1.Type", "forward"),
            ("DefaultActions.member.1.TargetGroupArn", &group),
        ];
        let made = self.upstream.elbv2(REGION, &listener).await;
        self.ids.extend(texts(&made, "ListenerArn"));
        self.ids.insert(group);
    }

    fn balancer_tags(&self, name: &str) -> Vec<(String, String)> {
        let mut tags = self.tags("apiserver", "");
        name.clone_into(&mut tags[2].1);
        let pair = |(place, (key, value)): (usize, (String, String))| {
            let start = format!("Tags.member.{place}");
            [(format!("{start}.Key"), key), (format!("{start}.Value"), value)]
        };
        (1..).zip(tags).flat_map(pair).collect()
    }
}

fn owned(parameters: Parameters<'_>) -> Vec<(String, String)> {
    parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn borrowed(parameters: &[(String, String)]) -> Vec<(&str, &str)> {
    parameters.iter().map(|(key, value)| (&**key, &**value)).collect()
}

/// Writes that change or delete one of these resources. What is made in a VPC of a user or in its
/// subnets, and rules about the traffic of a group, name them and change nothing of them.
pub(crate) fn writes_about(calls: &[Call], ids: &BTreeSet<String>) -> Vec<String> {
    let only_names = |call: &Call, parameter: &str| match &*call.action {
        "CreateSecurityGroup" | "CreateTargetGroup" => parameter == "VpcId",
        "CreateLoadBalancer" => !parameter.contains("Name"),
        "AuthorizeSecurityGroupIngress" | "RevokeSecurityGroupIngress" => {
            parameter.starts_with("IpPermissions.")
        }
        _ => false,
    };
    let writes = calls.iter().filter(|call| call.is_write());
    let named = writes.flat_map(|call| {
        let of_others = call.parameters.iter().filter(|(parameter, value)| {
            let is_theirs = ids.contains(*value) || value.contains("neighbour");
            is_theirs && !only_names(call, parameter)
        });
        of_others.map(|(parameter, value)| format!("{} {parameter} {value}", call.action))
    });
    named.collect()
}
