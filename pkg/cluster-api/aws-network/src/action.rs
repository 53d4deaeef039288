//! [`Action`]: one write, which is one call of AWS with all of its parameters.

use cidr::IpNet;

use crate::elb_action::ElbAction;
use crate::elbv2_action::ElbV2Action;
use crate::identity::Tags;
use crate::logical_id::LogicalId;
use crate::resources::Target;
use crate::rule::Rule;

/// What is started as a bastion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BastionLaunch {
    /// `ami-…`.
    pub image: String,
    /// Such as `t3.micro`.
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
    /// CreateVpc.
    CreateVpc { cidr: IpNet, tags: Tags },
    /// ModifyVpcAttribute: AWS resolves names in it.
    EnableDnsSupport { vpc: String },
    /// ModifyVpcAttribute: instances in it get names.
    EnableDnsHostnames { vpc: String },
    /// DeleteVpc.
    DeleteVpc { vpc: String },
    /// CreateSubnet.
    CreateSubnet { vpc: String, cidr: IpNet, zone: String, tags: Tags },
    /// ModifySubnetAttribute MapPublicIpOnLaunch.
    SetMapPublicIp { subnet: String, enabled: bool },
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
    /// DeleteNatGateway.
    DeleteNatGateway { nat_gateway: String },
    /// CreateRouteTable.
    CreateRouteTable { vpc: String, subnet_cidr: IpNet, attempt: u32, token: String, tags: Tags },
    /// CreateRoute to 0.0.0.0/0.
    CreateRoute { table: String, target: Target },
    /// ReplaceRoute to 0.0.0.0/0.
    ReplaceRoute { table: String, target: Target },
    /// DeleteRoute to 0.0.0.0/0.
    DeleteRoute { table: String },
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
    /// The place that a create fills, and the attempt in its client token.
    pub fn creates(&self) -> Option<(LogicalId, u32)> {
        let (logical, attempt) = match self {
            Self::CreateVpc { .. } => (LogicalId::Vpc, 0),
            Self::CreateInternetGateway { .. } => (LogicalId::InternetGateway, 0),
            Self::CreateSubnet { cidr, .. } => (LogicalId::Subnet(cidr.to_string()), 0),
            Self::AllocateAddress { zone, .. } => (LogicalId::Address(zone.clone()), 0),
            Self::CreateNatGateway { zone, attempt, .. } => {
                (LogicalId::NatGateway(zone.clone()), *attempt)
            }
            Self::CreateRouteTable { subnet_cidr, attempt, .. } => {
                (LogicalId::RouteTable(subnet_cidr.to_string()), *attempt)
            }
            Self::CreateSecurityGroup { role, .. } => (LogicalId::SecurityGroup(role.clone()), 0),
            Self::RunBastion { attempt, .. } => (LogicalId::Bastion, *attempt),
            Self::Elb(ElbAction::Create { .. }) | Self::ElbV2(ElbV2Action::Create { .. }) => {
                (LogicalId::LoadBalancer, 0)
            }
            Self::ElbV2(ElbV2Action::CreateTargetGroup { .. }) => (LogicalId::TargetGroup, 0),
            _ => return None,
        };
        Some((logical, attempt))
    }

    /// The client token of the call.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::CreateNatGateway { token, .. } | Self::CreateRouteTable { token, .. } => {
                Some(token)
            }
            Self::RunBastion { launch, .. } => Some(&launch.token),
            _ => None,
        }
    }

    /// Whether the SDK may send the call again when its outcome is unknown
    /// (`rule:no-blind-repeat-of-a-create`).
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

    /// It takes something away that a refusal tells us is gone already, or still in use.
    pub fn is_removal(&self) -> bool {
        match self {
            Self::DeleteVpc { .. }
            | Self::DeleteSubnet { .. }
            | Self::DetachInternetGateway { .. }
            | Self::DeleteInternetGateway { .. }
            | Self::ReleaseAddress { .. }
            | Self::DeleteNatGateway { .. }
            | Self::DeleteRoute { .. }
            | Self::DisassociateRouteTable { .. }
            | Self::DeleteRouteTable { .. }
            | Self::RevokeIngress { .. }
            | Self::DeleteSecurityGroup { .. }
            | Self::TerminateInstances { .. }
            | Self::DeleteNetworkInterface { .. }
            | Self::DeleteTags { .. } => true,
            Self::Elb(action) => action.is_removal(),
            Self::ElbV2(action) => action.is_removal(),
            _ => false,
        }
    }
}
