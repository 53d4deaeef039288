//! AWS's names of the writes, for metrics and permissions.

use aws_network::{Action, ElbAction, ElbV2Action};

/// The name of the call that an action is.
pub fn operation(action: &Action) -> &'static str {
    match action {
        Action::CreateVpc { .. } => "CreateVpc",
        Action::EnableDnsSupport { .. } | Action::EnableDnsHostnames { .. } => "ModifyVpcAttribute",
        Action::DeleteVpc { .. } => "DeleteVpc",
        Action::CreateSubnet { .. } => "CreateSubnet",
        Action::SetMapPublicIp { .. } => "ModifySubnetAttribute",
        Action::DeleteSubnet { .. } => "DeleteSubnet",
        Action::CreateInternetGateway { .. } => "CreateInternetGateway",
        Action::AttachInternetGateway { .. } => "AttachInternetGateway",
        Action::DetachInternetGateway { .. } => "DetachInternetGateway",
        Action::DeleteInternetGateway { .. } => "DeleteInternetGateway",
        Action::AllocateAddress { .. } => "AllocateAddress",
        Action::ReleaseAddress { .. } => "ReleaseAddress",
        Action::CreateNatGateway { .. } => "CreateNatGateway",
        Action::DeleteNatGateway { .. } => "DeleteNatGateway",
        Action::CreateRouteTable { .. } => "CreateRouteTable",
        Action::CreateRoute { .. } => "CreateRoute",
        Action::ReplaceRoute { .. } => "ReplaceRoute",
        Action::DeleteRoute { .. } => "DeleteRoute",
        Action::AssociateRouteTable { .. } => "AssociateRouteTable",
        Action::ReplaceAssociation { .. } => "ReplaceRouteTableAssociation",
        Action::DisassociateRouteTable { .. } => "DisassociateRouteTable",
        Action::DeleteRouteTable { .. } => "DeleteRouteTable",
        Action::CreateSecurityGroup { .. } => "CreateSecurityGroup",
        Action::AuthorizeIngress { .. } => "AuthorizeSecurityGroupIngress",
        Action::RevokeIngress { .. } => "RevokeSecurityGroupIngress",
        Action::DescribeIngress { .. } => "UpdateSecurityGroupRuleDescriptionsIngress",
        Action::DeleteSecurityGroup { .. } => "DeleteSecurityGroup",
        Action::RunBastion { .. } => "RunInstances",
        Action::TerminateInstances { .. } => "TerminateInstances",
        Action::DeleteNetworkInterface { .. } => "DeleteNetworkInterface",
        Action::CreateTags { .. } => "CreateTags",
        Action::DeleteTags { .. } => "DeleteTags",
        Action::Elb(action) => elb(action),
        Action::ElbV2(action) => elbv2(action),
    }
}

fn elb(action: &ElbAction) -> &'static str {
    match action {
        ElbAction::Create { .. } => "CreateLoadBalancer",
        ElbAction::ConfigureHealthCheck { .. } => "ConfigureHealthCheck",
        ElbAction::ModifyAttributes { .. } => "ModifyLoadBalancerAttributes",
        ElbAction::AttachSubnets { .. } => "AttachLoadBalancerToSubnets",
        ElbAction::DetachSubnets { .. } => "DetachLoadBalancerFromSubnets",
        ElbAction::ApplyGroups { .. } => "ApplySecurityGroupsToLoadBalancer",
        ElbAction::CreateListeners { .. } => "CreateLoadBalancerListeners",
        ElbAction::DeleteListeners { .. } => "DeleteLoadBalancerListeners",
        ElbAction::AddTags { .. } => "AddTags",
        ElbAction::RemoveTags { .. } => "RemoveTags",
        ElbAction::Delete { .. } => "DeleteLoadBalancer",
    }
}

fn elbv2(action: &ElbV2Action) -> &'static str {
    match action {
        ElbV2Action::Create { .. } => "CreateLoadBalancer",
        ElbV2Action::SetCrossZone { .. } => "ModifyLoadBalancerAttributes",
        ElbV2Action::SetSubnets { .. } => "SetSubnets",
        ElbV2Action::SetGroups { .. } => "SetSecurityGroups",
        ElbV2Action::CreateTargetGroup { .. } => "CreateTargetGroup",
        ElbV2Action::ConfigureHealthCheck { .. } => "ModifyTargetGroup",
        ElbV2Action::SetPreserveClientIp { .. } => "ModifyTargetGroupAttributes",
        ElbV2Action::CreateListener { .. } => "CreateListener",
        ElbV2Action::SetTargetGroup { .. } => "ModifyListener",
        ElbV2Action::DeleteListener { .. } => "DeleteListener",
        ElbV2Action::AddTags { .. } => "AddTags",
        ElbV2Action::RemoveTags { .. } => "RemoveTags",
        ElbV2Action::Delete { .. } => "DeleteLoadBalancer",
        ElbV2Action::DeleteTargetGroup { .. } => "DeleteTargetGroup",
    }
}
