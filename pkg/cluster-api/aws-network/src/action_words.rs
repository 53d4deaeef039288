//! The words for a write: AWS's name of the call, and what it is about. Metrics, events and
//! conditions use them; parameters, such as tags and tokens, are shown to nobody.

use std::fmt;

use crate::action::Action;

impl Action {
    /// AWS's name of the call.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::CreateVpc { .. } => "CreateVpc",
            Self::EnableDnsSupport { .. } | Self::EnableDnsHostnames { .. } => "ModifyVpcAttribute",
            Self::DeleteVpc { .. } => "DeleteVpc",
            Self::CreateSubnet { .. } => "CreateSubnet",
            Self::SetMapPublicIp { .. } => "ModifySubnetAttribute",
            Self::DeleteSubnet { .. } => "DeleteSubnet",
            Self::CreateInternetGateway { .. } => "CreateInternetGateway",
            Self::AttachInternetGateway { .. } => "AttachInternetGateway",
            Self::DetachInternetGateway { .. } => "DetachInternetGateway",
            Self::DeleteInternetGateway { .. } => "DeleteInternetGateway",
            Self::AllocateAddress { .. } => "AllocateAddress",
            Self::ReleaseAddress { .. } => "ReleaseAddress",
            Self::CreateNatGateway { .. } => "CreateNatGateway",
            Self::DeleteNatGateway { .. } => "DeleteNatGateway",
            Self::CreateRouteTable { .. } => "CreateRouteTable",
            Self::CreateRoute { .. } => "CreateRoute",
            Self::ReplaceRoute { .. } => "ReplaceRoute",
            Self::DeleteRoute { .. } => "DeleteRoute",
            Self::AssociateRouteTable { .. } => "AssociateRouteTable",
            Self::ReplaceAssociation { .. } => "ReplaceRouteTableAssociation",
            Self::DisassociateRouteTable { .. } => "DisassociateRouteTable",
            Self::DeleteRouteTable { .. } => "DeleteRouteTable",
            Self::CreateSecurityGroup { .. } => "CreateSecurityGroup",
            Self::AuthorizeIngress { .. } => "AuthorizeSecurityGroupIngress",
            Self::RevokeIngress { .. } => "RevokeSecurityGroupIngress",
            Self::DescribeIngress { .. } => "UpdateSecurityGroupRuleDescriptionsIngress",
            Self::DeleteSecurityGroup { .. } => "DeleteSecurityGroup",
            Self::RunBastion { .. } => "RunInstances",
            Self::TerminateInstances { .. } => "TerminateInstances",
            Self::DeleteNetworkInterface { .. } => "DeleteNetworkInterface",
            Self::CreateTags { .. } => "CreateTags",
            Self::DeleteTags { .. } => "DeleteTags",
            Self::Elb(action) => action.operation(),
            Self::ElbV2(action) => action.operation(),
        }
    }

    /// What a write that makes nothing is about, by id or name; the first of several.
    fn subject(&self) -> &str {
        match self {
            Self::EnableDnsSupport { vpc }
            | Self::EnableDnsHostnames { vpc }
            | Self::DeleteVpc { vpc } => vpc,
            Self::SetMapPublicIp { subnet, .. } | Self::DeleteSubnet { subnet } => subnet,
            Self::AttachInternetGateway { gateway, .. }
            | Self::DetachInternetGateway { gateway, .. }
            | Self::DeleteInternetGateway { gateway } => gateway,
            Self::ReleaseAddress { allocation } => allocation,
            Self::DeleteNatGateway { nat_gateway } => nat_gateway,
            Self::CreateRoute { table, .. }
            | Self::ReplaceRoute { table, .. }
            | Self::DeleteRoute { table }
            | Self::AssociateRouteTable { table, .. }
            | Self::ReplaceAssociation { table, .. }
            | Self::DeleteRouteTable { table } => table,
            Self::DisassociateRouteTable { association } => association,
            Self::AuthorizeIngress { group, .. }
            | Self::RevokeIngress { group, .. }
            | Self::DescribeIngress { group, .. }
            | Self::DeleteSecurityGroup { group } => group,
            Self::DeleteNetworkInterface { interface } => interface,
            Self::TerminateInstances { instances: all }
            | Self::CreateTags { resources: all, .. }
            | Self::DeleteTags { resources: all, .. } => all.first().map_or("", String::as_str),
            Self::Elb(action) => action.subject(),
            Self::ElbV2(action) => action.subject(),
            Self::CreateVpc { .. }
            | Self::CreateSubnet { .. }
            | Self::CreateInternetGateway { .. }
            | Self::AllocateAddress { .. }
            | Self::CreateNatGateway { .. }
            | Self::CreateRouteTable { .. }
            | Self::CreateSecurityGroup { .. }
            | Self::RunBastion { .. } => "",
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElbAction, Tags};

    #[test]
    fn a_write_is_told_by_its_operation_and_what_it_is_about_and_by_nothing_else() {
        let tags = Tags::from([("secret-project".to_owned(), "x".to_owned())]);
        let cidr = "10.0.0.0/16".parse().unwrap();
        let told = |action: Action| action.to_string();
        assert_eq!(told(Action::CreateVpc { cidr, tags: tags.clone() }), "CreateVpc");
        let zone = "us-east-2a".to_owned();
        let allocate = Action::AllocateAddress { zone, tags: tags.clone() };
        assert_eq!(told(allocate), "AllocateAddress for us-east-2a");
        let resources = vec!["vpc-1".to_owned(), "subnet-1".to_owned()];
        assert_eq!(
            told(Action::CreateTags { resources, tags: tags.clone() }),
            "CreateTags of vpc-1"
        );
        let add = ElbAction::AddTags { name: "c-apiserver".to_owned(), tags };
        assert_eq!(told(Action::Elb(add)), "AddTags of c-apiserver");
        let release = Action::ReleaseAddress { allocation: "eipalloc-1".to_owned() };
        assert_eq!(told(release), "ReleaseAddress of eipalloc-1");
    }
}
