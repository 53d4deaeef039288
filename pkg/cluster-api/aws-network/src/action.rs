//! [`Action`]: one write, which is one call of AWS with all of its parameters. [`ElbAction`] and
//! [`ElbV2Action`] are those of the APIs of classic and of network load balancers.

use cidr::IpNet;

use crate::identity::Tags;
use crate::load_balancers::{
    ClassicAttributes, ClassicListener, HealthCheck, Scheme, TargetAttributes,
};
use crate::memory::{LogicalId, REGIONAL};
use crate::resources::Target;
use crate::rule::Rule;

/// Parameters of the launch of a bastion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BastionLaunch {
    /// `ami-…`.
    pub image: String,
    /// Instance type, such as `t3.micro`.
    pub instance_type: String,
    /// The name of a key pair.
    pub key: Option<String>,
    /// Id of its subnet.
    pub subnet: String,
    /// Id of its security group.
    pub group: String,
    /// The client token.
    pub token: String,
    /// The tags of the instance and of its volume.
    pub tags: Tags,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the fields are the parameters of the call, ids throughout")]
pub enum Action {
    /// CreateVpc, with an IPv6 CIDR of Amazon if asked for.
    CreateVpc { cidr: IpNet, ipv6: bool, tags: Tags },
    /// ModifyVpcAttribute: AWS resolves names in it.
    EnableDnsSupport { vpc: String },
    /// ModifyVpcAttribute: instances in it get names.
    EnableDnsHostnames { vpc: String },
    /// AssociateVpcCidrBlock, of IPv4.
    AssociateCidr { vpc: String, cidr: IpNet },
    /// DeleteVpc.
    DeleteVpc { vpc: String },
    /// CreateSubnet.
    CreateSubnet { vpc: String, cidr: IpNet, ipv6: Option<IpNet>, zone: String, tags: Tags },
    /// ModifySubnetAttribute MapPublicIpOnLaunch.
    SetMapPublicIp { subnet: String, enabled: bool },
    /// ModifySubnetAttribute AssignIpv6AddressOnCreation.
    AssignIpv6 { subnet: String },
    /// DeleteSubnet.
    DeleteSubnet { subnet: String },
    /// CreateInternetGateway.
    CreateInternetGateway { tags: Tags },
    /// AttachInternetGateway.
    AttachInternetGateway { gateway: String, vpc: String },
    /// DetachInternetGateway.
    DetachInternetGateway { gateway: String, vpc: String },
    /// DeleteInternetGateway.
    DeleteInternetGateway { gateway: String },
    /// CreateEgressOnlyInternetGateway.
    CreateEgressOnlyGateway { vpc: String, attempt: u32, token: String, tags: Tags },
    /// DeleteEgressOnlyInternetGateway.
    DeleteEgressOnlyGateway { gateway: String },
    /// CreateCarrierGateway.
    CreateCarrierGateway { vpc: String, attempt: u32, token: String, tags: Tags },
    /// DeleteCarrierGateway.
    DeleteCarrierGateway { gateway: String },
    /// AllocateAddress, in the domain `vpc`.
    AllocateAddress { zone: String, tags: Tags },
    /// ReleaseAddress.
    ReleaseAddress { allocation: String },
    /// CreateNatGateway.
    CreateNatGateway {
        vpc: String,
        zone: String,
        subnet: String,
        allocation: String,
        attempt: u32,
        token: String,
        tags: Tags,
    },
    /// CreateNatGateway with AvailabilityMode `regional`.
    CreateRegionalNatGateway { vpc: String, attempt: u32, token: String, tags: Tags },
    /// DeleteNatGateway.
    DeleteNatGateway { nat_gateway: String },
    /// CreateRouteTable.
    CreateRouteTable { vpc: String, subnet_cidr: IpNet, attempt: u32, token: String, tags: Tags },
    /// CreateRoute.
    CreateRoute { table: String, destination: &'static str, target: Target },
    /// ReplaceRoute.
    ReplaceRoute { table: String, destination: &'static str, target: Target },
    /// DeleteRoute.
    DeleteRoute { table: String, destination: &'static str },
    /// AssociateRouteTable.
    AssociateRouteTable { table: String, subnet: String },
    /// ReplaceRouteTableAssociation.
    ReplaceAssociation { association: String, table: String },
    /// DisassociateRouteTable.
    DisassociateRouteTable { association: String },
    /// DeleteRouteTable.
    DeleteRouteTable { table: String },
    /// CreateSecurityGroup.
    CreateSecurityGroup { vpc: String, role: String, name: String, description: String, tags: Tags },
    /// AuthorizeSecurityGroupIngress, all rules at once.
    AuthorizeIngress { group: String, rules: Vec<Rule> },
    /// RevokeSecurityGroupIngress, all rules at once.
    RevokeIngress { group: String, rules: Vec<Rule> },
    /// UpdateSecurityGroupRuleDescriptionsIngress.
    DescribeIngress { group: String, rules: Vec<Rule> },
    /// DeleteSecurityGroup.
    DeleteSecurityGroup { group: String },
    /// RunInstances, one, which answers session tokens only (IMDSv2).
    RunBastion { vpc: String, attempt: u32, launch: BastionLaunch },
    /// TerminateInstances.
    TerminateInstances { instances: Vec<String> },
    /// DeleteNetworkInterface.
    DeleteNetworkInterface { interface: String },
    /// CreateTags, on resources of any kind of EC2.
    CreateTags { resources: Vec<String>, tags: Tags },
    /// DeleteTags, on resources of any kind of EC2.
    DeleteTags { resources: Vec<String>, keys: Vec<String> },
    /// A call of the classic load balancers.
    Elb(ElbAction),
    /// A call of the second generation of load balancers.
    ElbV2(ElbV2Action),
}

impl Action {
    /// The logical id of a create, and the attempt in its client token.
    pub fn creates(&self) -> Option<(LogicalId, u32)> {
        let (logical, attempt) = match self {
            Self::CreateVpc { .. } => (LogicalId::Vpc, 0),
            Self::CreateInternetGateway { .. } => (LogicalId::InternetGateway, 0),
            Self::CreateEgressOnlyGateway { attempt, .. } => {
                (LogicalId::EgressOnlyGateway, *attempt)
            }
            Self::CreateCarrierGateway { attempt, .. } => (LogicalId::CarrierGateway, *attempt),
            Self::CreateSubnet { cidr, .. } => (LogicalId::Subnet(cidr.to_string()), 0),
            Self::AllocateAddress { zone, .. } => (LogicalId::Address(zone.clone()), 0),
            Self::CreateNatGateway { zone, attempt, .. } => {
                (LogicalId::NatGateway(zone.clone()), *attempt)
            }
            Self::CreateRegionalNatGateway { attempt, .. } => {
                (LogicalId::NatGateway(REGIONAL.to_owned()), *attempt)
            }
            Self::CreateRouteTable { subnet_cidr, attempt, .. } => {
                (LogicalId::RouteTable(subnet_cidr.to_string()), *attempt)
            }
            Self::CreateSecurityGroup { role, .. } => (LogicalId::SecurityGroup(role.clone()), 0),
            Self::RunBastion { attempt, .. } => (LogicalId::Bastion, *attempt),
            Self::Elb(ElbAction::Create { .. }) => (LogicalId::LoadBalancer, 0),
            Self::ElbV2(
                ElbV2Action::Create { logical, .. }
                | ElbV2Action::CreateTargetGroup { logical, .. },
            ) => (logical.clone(), 0),
            _ => return None,
        };
        Some((logical, attempt))
    }

    /// The client token of the call.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::CreateNatGateway { token, .. }
            | Self::CreateRegionalNatGateway { token, .. }
            | Self::CreateEgressOnlyGateway { token, .. }
            | Self::CreateCarrierGateway { token, .. }
            | Self::CreateRouteTable { token, .. } => Some(token),
            Self::RunBastion { launch, .. } => Some(&launch.token),
            _ => None,
        }
    }

    /// Whether the SDK may send the call again when its outcome is unknown
    /// (`rule:a-call-is-not-doubled`).
    pub fn is_repeatable(&self) -> bool {
        self.creates().is_none() || self.token().is_some()
    }

    /// Whether it sets a tag with this key on something that exists.
    pub(crate) fn sets_tag(&self, key: &str) -> bool {
        match self {
            Self::CreateTags { tags, .. }
            | Self::Elb(ElbAction::AddTags { tags, .. })
            | Self::ElbV2(ElbV2Action::AddTags { tags, .. }) => tags.contains_key(key),
            _ => false,
        }
    }

    /// Whether the call removes something that AWS may refuse as gone already, or as still in use.
    pub fn is_removal(&self) -> bool {
        REMOVALS.iter().any(|verb| self.operation().starts_with(verb))
    }
}

/// How the names of calls begin that remove something.
const REMOVALS: [&str; 7] =
    ["Delete", "Detach", "Disassociate", "Release", "Remove", "Revoke", "Terminate"];

/// One write of the API of classic load balancers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the fields are the parameters of the call")]
pub enum ElbAction {
    /// CreateLoadBalancer; the scheme is sent when it is internal only.
    Create {
        vpc: String,
        name: String,
        scheme: Scheme,
        listeners: Vec<ClassicListener>,
        subnets: Vec<String>,
        groups: Vec<String>,
        tags: Tags,
    },
    /// ConfigureHealthCheck.
    ConfigureHealthCheck { name: String, check: HealthCheck },
    /// ModifyLoadBalancerAttributes.
    ModifyAttributes { name: String, attributes: ClassicAttributes },
    /// AttachLoadBalancerToSubnets.
    AttachSubnets { name: String, subnets: Vec<String> },
    /// DetachLoadBalancerFromSubnets.
    DetachSubnets { name: String, subnets: Vec<String> },
    /// ApplySecurityGroupsToLoadBalancer, the whole list.
    ApplyGroups { name: String, groups: Vec<String> },
    /// CreateLoadBalancerListeners.
    CreateListeners { name: String, listeners: Vec<ClassicListener> },
    /// DeleteLoadBalancerListeners.
    DeleteListeners { name: String, ports: Vec<u16> },
    /// AddTags.
    AddTags { name: String, tags: Tags },
    /// RemoveTags.
    RemoveTags { name: String, keys: Vec<String> },
    /// DeleteLoadBalancer.
    Delete { name: String },
}

/// One write of the API of the second generation of load balancers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the fields are the parameters of the call, ARNs throughout")]
pub enum ElbV2Action {
    /// CreateLoadBalancer of the type `network`.
    Create {
        logical: LogicalId,
        vpc: String,
        name: String,
        scheme: Scheme,
        dualstack: bool,
        subnets: Vec<String>,
        groups: Vec<String>,
        tags: Tags,
    },
    /// ModifyLoadBalancerAttributes `load_balancing.cross_zone.enabled`.
    SetCrossZone { load_balancer: String, enabled: bool },
    /// SetIpAddressType `dualstack`.
    MakeDualstack { load_balancer: String },
    /// SetSubnets, the whole list.
    SetSubnets { load_balancer: String, subnets: Vec<String> },
    /// SetSecurityGroups, the whole list.
    SetGroups { load_balancer: String, groups: Vec<String> },
    /// CreateTargetGroup for instances, TCP.
    CreateTargetGroup {
        logical: LogicalId,
        vpc: String,
        name: String,
        port: u16,
        ipv6: bool,
        check: HealthCheck,
        tags: Tags,
    },
    /// ModifyTargetGroup.
    ConfigureHealthCheck { target_group: String, check: HealthCheck },
    /// ModifyTargetGroupAttributes.
    SetTargetAttributes { target_group: String, attributes: TargetAttributes },
    /// CreateListener, TCP.
    CreateListener { load_balancer: String, port: u16, target_group: String, tags: Tags },
    /// DeleteListener.
    DeleteListener { listener: String },
    /// AddTags.
    AddTags { arns: Vec<String>, tags: Tags },
    /// RemoveTags.
    RemoveTags { arns: Vec<String>, keys: Vec<String> },
    /// DeleteLoadBalancer.
    Delete { load_balancer: String },
    /// DeleteTargetGroup.
    DeleteTargetGroup { target_group: String },
}
