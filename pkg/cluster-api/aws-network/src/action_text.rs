//! The text of a write: AWS's name of the call, what the call is about, and what it changes.
//! Metrics, events, conditions and plans use it. Values of tags and client tokens are never shown.

use std::fmt;

use crate::action::{Action, ElbAction, ElbV2Action};
use crate::load_balancers::HealthCheck;
use crate::report::listed;
use crate::resources::Target;
use crate::rule::{Rule, Source};

impl Action {
    /// AWS's name of the call.
    pub fn operation(&self) -> &'static str {
        self.parts().0
    }

    /// The object of the call, by id, ARN or name; the first of several. Empty for a create in EC2.
    pub(crate) fn subject(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::CreateVpc { .. } => ("CreateVpc", ""),
            Self::EnableDnsSupport { vpc } | Self::EnableDnsHostnames { vpc } => {
                ("ModifyVpcAttribute", vpc)
            }
            Self::AssociateCidr { vpc, .. } => ("AssociateVpcCidrBlock", vpc),
            Self::DeleteVpc { vpc } => ("DeleteVpc", vpc),
            Self::CreateSubnet { .. } => ("CreateSubnet", ""),
            Self::SetMapPublicIp { subnet, .. } | Self::AssignIpv6 { subnet } => {
                ("ModifySubnetAttribute", subnet)
            }
            Self::DeleteSubnet { subnet } => ("DeleteSubnet", subnet),
            Self::CreateInternetGateway { .. } => ("CreateInternetGateway", ""),
            Self::AttachInternetGateway { gateway, .. } => ("AttachInternetGateway", gateway),
            Self::DetachInternetGateway { gateway, .. } => ("DetachInternetGateway", gateway),
            Self::DeleteInternetGateway { gateway } => ("DeleteInternetGateway", gateway),
            Self::CreateEgressOnlyGateway { .. } => ("CreateEgressOnlyInternetGateway", ""),
            Self::DeleteEgressOnlyGateway { gateway } => {
                ("DeleteEgressOnlyInternetGateway", gateway)
            }
            Self::CreateCarrierGateway { .. } => ("CreateCarrierGateway", ""),
            Self::DeleteCarrierGateway { gateway } => ("DeleteCarrierGateway", gateway),
            Self::AllocateAddress { .. } => ("AllocateAddress", ""),
            Self::ReleaseAddress { allocation } => ("ReleaseAddress", allocation),
            Self::CreateNatGateway { .. } | Self::CreateRegionalNatGateway { .. } => {
                ("CreateNatGateway", "")
            }
            Self::DeleteNatGateway { nat_gateway } => ("DeleteNatGateway", nat_gateway),
            Self::CreateRouteTable { .. } => ("CreateRouteTable", ""),
            Self::CreateRoute { table, .. } => ("CreateRoute", table),
            Self::ReplaceRoute { table, .. } => ("ReplaceRoute", table),
            Self::DeleteRoute { table, .. } => ("DeleteRoute", table),
            Self::AssociateRouteTable { table, .. } => ("AssociateRouteTable", table),
            Self::ReplaceAssociation { table, .. } => ("ReplaceRouteTableAssociation", table),
            Self::DisassociateRouteTable { association } => ("DisassociateRouteTable", association),
            Self::DeleteRouteTable { table } => ("DeleteRouteTable", table),
            Self::CreateSecurityGroup { .. } => ("CreateSecurityGroup", ""),
            Self::AuthorizeIngress { group, .. } => ("AuthorizeSecurityGroupIngress", group),
            Self::RevokeIngress { group, .. } => ("RevokeSecurityGroupIngress", group),
            Self::DescribeIngress { group, .. } => {
                ("UpdateSecurityGroupRuleDescriptionsIngress", group)
            }
            Self::DeleteSecurityGroup { group } => ("DeleteSecurityGroup", group),
            Self::RunBastion { .. } => ("RunInstances", ""),
            Self::TerminateInstances { instances } => ("TerminateInstances", first(instances)),
            Self::DeleteNetworkInterface { interface } => ("DeleteNetworkInterface", interface),
            Self::CreateTags { resources, .. } => ("CreateTags", first(resources)),
            Self::DeleteTags { resources, .. } => ("DeleteTags", first(resources)),
            Self::Elb(action) => action.parts(),
            Self::ElbV2(action) => action.parts(),
        }
    }
}

impl ElbAction {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Create { name, .. } => ("CreateLoadBalancer", name),
            Self::ConfigureHealthCheck { name, .. } => ("ConfigureHealthCheck", name),
            Self::ModifyAttributes { name, .. } => ("ModifyLoadBalancerAttributes", name),
            Self::AttachSubnets { name, .. } => ("AttachLoadBalancerToSubnets", name),
            Self::DetachSubnets { name, .. } => ("DetachLoadBalancerFromSubnets", name),
            Self::ApplyGroups { name, .. } => ("ApplySecurityGroupsToLoadBalancer", name),
            Self::CreateListeners { name, .. } => ("CreateLoadBalancerListeners", name),
            Self::DeleteListeners { name, .. } => ("DeleteLoadBalancerListeners", name),
            Self::AddTags { name, .. } => ("AddTags", name),
            Self::RemoveTags { name, .. } => ("RemoveTags", name),
            Self::Delete { name } => ("DeleteLoadBalancer", name),
        }
    }

    /// The name of the load balancer that it is about.
    pub(crate) fn subject(&self) -> &str {
        self.parts().1
    }
}

impl ElbV2Action {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Create { name, .. } => ("CreateLoadBalancer", name),
            Self::SetCrossZone { load_balancer, .. } => {
                ("ModifyLoadBalancerAttributes", load_balancer)
            }
            Self::MakeDualstack { load_balancer } => ("SetIpAddressType", load_balancer),
            Self::SetSubnets { load_balancer, .. } => ("SetSubnets", load_balancer),
            Self::SetGroups { load_balancer, .. } => ("SetSecurityGroups", load_balancer),
            Self::CreateTargetGroup { name, .. } => ("CreateTargetGroup", name),
            Self::ConfigureHealthCheck { target_group, .. } => ("ModifyTargetGroup", target_group),
            Self::SetTargetAttributes { target_group, .. } => {
                ("ModifyTargetGroupAttributes", target_group)
            }
            Self::CreateListener { load_balancer, .. } => ("CreateListener", load_balancer),
            Self::DeleteListener { listener } => ("DeleteListener", listener),
            Self::AddTags { arns, .. } => ("AddTags", first(arns)),
            Self::RemoveTags { arns, .. } => ("RemoveTags", first(arns)),
            Self::Delete { load_balancer } => ("DeleteLoadBalancer", load_balancer),
            Self::DeleteTargetGroup { target_group } => ("DeleteTargetGroup", target_group),
        }
    }
}

fn first(ids: &[String]) -> &str {
    ids.first().map_or("", String::as_str)
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operation())?;
        if let Some((logical, _)) = self.creates() {
            return match logical.name() {
                "" => Ok(()),
                name => write!(formatter, " for {name}"),
            };
        }
        match self.subject() {
            "" => Ok(()),
            subject => write!(formatter, " of {subject}"),
        }
    }
}

impl Action {
    /// The write as a plan shows it: what it is about, and what is different after it.
    pub fn in_full(&self) -> String {
        let difference = self.difference();
        if self.creates().is_some() || difference.is_empty() {
            return self.to_string();
        }
        format!("{self}: {difference}")
    }

    /// The change that the write makes, such as `+ tcp 6443 from 10.0.0.0/16`; empty where its
    /// [`Display`](fmt::Display) says already.
    pub fn difference(&self) -> String {
        match self {
            Self::EnableDnsSupport { .. } => "+ DNS support".to_owned(),
            Self::EnableDnsHostnames { .. } => "+ DNS host names".to_owned(),
            Self::SetMapPublicIp { enabled, .. } => {
                format!("{} public addresses at launch", sign(*enabled))
            }
            Self::AssociateCidr { cidr, .. } => format!("+ {cidr}"),
            Self::AssignIpv6 { .. } => "+ IPv6 addresses at launch".to_owned(),
            Self::ElbV2(ElbV2Action::MakeDualstack { .. }) => "now dualstack".to_owned(),
            Self::AttachInternetGateway { vpc, .. } => format!("+ attached to {vpc}"),
            Self::CreateRoute { destination, target, .. } => format!("+ {destination} to {target}"),
            Self::ReplaceRoute { destination, target, .. } => {
                format!("{destination} now to {target}")
            }
            Self::DeleteRoute { destination, .. } => format!("- {destination}"),
            Self::AssociateRouteTable { subnet, .. } => format!("+ used by {subnet}"),
            Self::AuthorizeIngress { rules, .. } => all("+ ", rules),
            Self::RevokeIngress { rules, .. } => all("- ", rules),
            Self::DescribeIngress { rules, .. } => all("new description: ", rules),
            Self::CreateTags { tags, .. }
            | Self::Elb(ElbAction::AddTags { tags, .. })
            | Self::ElbV2(ElbV2Action::AddTags { tags, .. }) => all("+ tag ", tags.keys()),
            Self::DeleteTags { keys, .. }
            | Self::Elb(ElbAction::RemoveTags { keys, .. })
            | Self::ElbV2(ElbV2Action::RemoveTags { keys, .. }) => all("- tag ", keys),
            Self::Elb(ElbAction::ConfigureHealthCheck { check, .. })
            | Self::ElbV2(ElbV2Action::ConfigureHealthCheck { check, .. }) => {
                format!("health check now {check}")
            }
            Self::Elb(ElbAction::ModifyAttributes { attributes, .. }) => format!(
                "idle timeout now {} s, {} cross zone",
                attributes.idle_timeout,
                sign(attributes.cross_zone)
            ),
            Self::Elb(ElbAction::AttachSubnets { subnets, .. }) => all("+ ", subnets),
            Self::Elb(ElbAction::DetachSubnets { subnets, .. }) => all("- ", subnets),
            Self::ElbV2(ElbV2Action::SetSubnets { subnets, .. }) => all("subnets now ", subnets),
            Self::Elb(ElbAction::ApplyGroups { groups, .. })
            | Self::ElbV2(ElbV2Action::SetGroups { groups, .. }) => all("groups now ", groups),
            Self::Elb(ElbAction::CreateListeners { listeners, .. }) => {
                all("+ port ", listeners.iter().map(|listener| listener.port))
            }
            Self::Elb(ElbAction::DeleteListeners { ports, .. }) => all("- port ", ports),
            Self::ElbV2(ElbV2Action::SetCrossZone { enabled, .. }) => {
                format!("{} cross zone", sign(*enabled))
            }
            Self::ElbV2(ElbV2Action::SetTargetAttributes { attributes, .. }) => format!(
                "{} addresses of clients, {} s until connections to unhealthy targets end",
                sign(attributes.preserve_client_ip),
                attributes.draining_interval
            ),
            Self::ElbV2(ElbV2Action::CreateListener { port, .. }) => format!("+ port {port}"),
            create if create.creates().is_some() => "the old resource was missing".to_owned(),
            _ => String::new(),
        }
    }
}

fn sign(is_added: bool) -> char {
    if is_added { '+' } else { '-' }
}

fn all(word: &str, things: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let texts: Vec<_> = things.into_iter().map(|thing| format!("{word}{thing}")).collect();
    listed(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &*key.protocol {
            "-1" => formatter.write_str("everything")?,
            protocol => formatter.write_str(protocol)?,
        }
        match (key.from_port, key.to_port) {
            (-1, _) => {}
            (from, to) if from == to => write!(formatter, " {from}")?,
            (from, to) => write!(formatter, " {from}-{to}")?,
        }
        match &key.source {
            Source::Cidr(cidr) => write!(formatter, " from {cidr}"),
            Source::Group(id) | Source::PrefixList(id) => write!(formatter, " from {id}"),
        }
    }
}

impl fmt::Display for HealthCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, port, path, interval, timeout, healthy, unhealthy } = self;
        let path = path.as_deref().unwrap_or_default();
        write!(
            formatter,
            "{protocol}:{port}{path} every {interval} s, timeout {timeout} s, healthy threshold \
             {healthy}, unhealthy threshold {unhealthy}"
        )
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InternetGateway(id)
            | Self::NatGateway(id)
            | Self::EgressOnlyGateway(id)
            | Self::CarrierGateway(id)
            | Self::Other(id) => formatter.write_str(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_ROUTE, ElbAction, IPV6_ROUTE, Tags};

    #[test]
    fn a_write_is_shown_as_its_operation_and_its_object_only() {
        let tags = Tags::from([("secret-project".to_owned(), "x".to_owned())]);
        let cidr = "10.0.0.0/16".parse().unwrap();
        let text = |action: Action| action.to_string();
        assert_eq!(text(Action::CreateVpc { cidr, ipv6: true, tags: tags.clone() }), "CreateVpc");
        let zone = "us-east-2a".to_owned();
        let allocate = Action::AllocateAddress { zone, tags: tags.clone() };
        assert_eq!(text(allocate), "AllocateAddress for us-east-2a");
        let resources = vec!["vpc-1".to_owned(), "subnet-1".to_owned()];
        assert_eq!(
            text(Action::CreateTags { resources, tags: tags.clone() }),
            "CreateTags of vpc-1"
        );
        let add = ElbAction::AddTags { name: "c-apiserver".to_owned(), tags };
        assert_eq!(text(Action::Elb(add)), "AddTags of c-apiserver");
        let release = Action::ReleaseAddress { allocation: "eipalloc-1".to_owned() };
        assert_eq!(text(release), "ReleaseAddress of eipalloc-1");
    }

    fn rule(protocol: &str, ports: (i32, i32), source: Source) -> Rule {
        Rule::new(protocol, ports, source, "for people")
    }

    #[test]
    fn a_repair_says_what_it_has_changed() {
        let group = || "sg-1".to_owned();
        let anywhere = || Source::Cidr("0.0.0.0/0".parse().unwrap());
        let rules = vec![
            rule("tcp", (6443, 6443), anywhere()),
            rule("tcp", (30000, 32767), anywhere()),
            rule("-1", (0, 0), Source::Group("sg-2".to_owned())),
        ];
        let all =
            "+ tcp 6443 from 0.0.0.0/0; + tcp 30000-32767 from 0.0.0.0/0; + everything from sg-2";
        let authorize = Action::AuthorizeIngress { group: group(), rules: rules.clone() };
        assert_eq!(authorize.difference(), all);
        let revoke = Action::RevokeIngress { group: group(), rules: rules[..1].to_vec() };
        assert_eq!(revoke.difference(), "- tcp 6443 from 0.0.0.0/0");
        let target = Target::NatGateway("nat-1".to_owned());
        let (table, destination) = ("rtb-1".to_owned(), IPV6_ROUTE);
        let route = Action::ReplaceRoute { table, destination, target };
        assert_eq!(route.difference(), "::/0 now to nat-1");
        let map = Action::SetMapPublicIp { subnet: "subnet-1".to_owned(), enabled: false };
        assert_eq!(map.difference(), "- public addresses at launch");
        let create = Action::CreateInternetGateway { tags: Tags::new() };
        assert_eq!(create.difference(), "the old resource was missing");
        let release = Action::ReleaseAddress { allocation: "eipalloc-1".to_owned() };
        assert_eq!(release.difference(), "", "its name says it");
        let check = HealthCheck {
            protocol: "HTTPS".to_owned(),
            port: 6443,
            path: Some("/readyz".to_owned()),
            interval: 10,
            timeout: 5,
            healthy: 2,
            unhealthy: 6,
        };
        let name = "c-apiserver".to_owned();
        let configure = Action::Elb(ElbAction::ConfigureHealthCheck { name, check });
        let all = "health check now HTTPS:6443/readyz every 10 s, timeout 5 s, healthy threshold 2, unhealthy threshold 6";
        assert_eq!(configure.difference(), all);
    }

    #[test]
    fn a_plan_shows_the_change_of_a_write_and_only_the_object_of_a_create() {
        let target = Target::InternetGateway("internet-gateway".to_owned());
        let (table, destination) = ("route-table/10.0.0.0/24".to_owned(), DEFAULT_ROUTE);
        let route = Action::CreateRoute { table, destination, target };
        let all = "CreateRoute of route-table/10.0.0.0/24: + 0.0.0.0/0 to internet-gateway";
        assert_eq!(route.in_full(), all);
        let allocate = Action::AllocateAddress { zone: "us-east-2a".to_owned(), tags: Tags::new() };
        assert_eq!(allocate.in_full(), "AllocateAddress for us-east-2a");
        let delete = Action::DeleteVpc { vpc: "vpc-1".to_owned() };
        assert_eq!(delete.in_full(), "DeleteVpc of vpc-1");
    }

    #[test]
    fn values_of_tags_are_never_shown() {
        let tags = Tags::from([("team".to_owned(), "planted-value".to_owned())]);
        let create = Action::CreateTags { resources: vec!["vpc-1".to_owned()], tags: tags.clone() };
        assert_eq!(create.difference(), "+ tag team");
        let name = "c-apiserver".to_owned();
        assert_eq!(Action::Elb(ElbAction::AddTags { name, tags }).difference(), "+ tag team");
    }
}
