//! What became of a write, as events tell it: in upstream's words where it has one. Pure.

use aws_network::{Action, ElbAction, ElbV2Action, Outcome};

/// An event about a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) is_done: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Both reasons of a write.
macro_rules! reasons {
    ($word:literal) => {
        [concat!("Successful", $word), concat!("Failed", $word)]
    };
}

/// What is told of a write. Nothing of one that was not sent, for it is planned anew.
pub(super) fn told(action: &Action, outcome: &Outcome) -> Option<Told> {
    let [done, failed] = reasons_of(action);
    Some(match outcome {
        Outcome::Done(answer) if answer.id.is_empty() || action.creates().is_none() => {
            Told { is_done: true, reason: done, message: action.to_string() }
        }
        Outcome::Done(answer) => {
            Told { is_done: true, reason: done, message: format!("{action}: {}", answer.id) }
        }
        Outcome::Refused(code) => {
            let message = format!("AWS refuses {action}: {code}");
            Told { is_done: false, reason: failed, message }
        }
        Outcome::Unknown => {
            let message =
                format!("the answer to {action} is lost; it is looked for before anything else");
            Told { is_done: false, reason: failed, message }
        }
        Outcome::NotSent => return None,
    })
}

fn reasons_of(action: &Action) -> [&'static str; 2] {
    match action {
        Action::CreateVpc { .. } => reasons!("CreateVPC"),
        Action::EnableDnsSupport { .. } | Action::EnableDnsHostnames { .. } => {
            reasons!("SetVPCAttributes")
        }
        Action::DeleteVpc { .. } => reasons!("DeleteVPC"),
        Action::CreateSubnet { .. } => reasons!("CreateSubnet"),
        Action::SetMapPublicIp { .. } => reasons!("ModifySubnetAttributes"),
        Action::DeleteSubnet { .. } => reasons!("DeleteSubnet"),
        Action::CreateInternetGateway { .. } => reasons!("CreateInternetGateway"),
        Action::AttachInternetGateway { .. } => reasons!("AttachInternetGateway"),
        Action::DetachInternetGateway { .. } => reasons!("DetachInternetGateway"),
        Action::DeleteInternetGateway { .. } => reasons!("DeleteInternetGateway"),
        Action::AllocateAddress { .. } => reasons!("AllocateAddress"),
        Action::ReleaseAddress { .. } => reasons!("ReleaseEIP"),
        Action::CreateNatGateway { .. } => reasons!("CreateNATGateway"),
        Action::DeleteNatGateway { .. } => reasons!("DeleteNATGateway"),
        Action::CreateRouteTable { .. } => reasons!("CreateRouteTable"),
        Action::CreateRoute { .. } => reasons!("CreateRoute"),
        Action::ReplaceRoute { .. } => reasons!("ReplaceRoute"),
        Action::DeleteRoute { .. } => reasons!("DeleteRoute"),
        Action::AssociateRouteTable { .. } | Action::ReplaceAssociation { .. } => {
            reasons!("AssociateRouteTable")
        }
        Action::DisassociateRouteTable { .. } => reasons!("DisassociateRouteTable"),
        Action::DeleteRouteTable { .. } => reasons!("DeleteRouteTable"),
        Action::CreateSecurityGroup { .. } => reasons!("CreateSecurityGroup"),
        Action::AuthorizeIngress { .. } => reasons!("AuthorizeSecurityGroupIngressRules"),
        Action::RevokeIngress { .. } => reasons!("RevokeSecurityGroupIngressRules"),
        Action::DescribeIngress { .. } => reasons!("DescribeSecurityGroupIngressRules"),
        Action::DeleteSecurityGroup { .. } => reasons!("DeleteSecurityGroup"),
        Action::RunBastion { .. } => reasons!("CreateBastion"),
        Action::TerminateInstances { .. } => reasons!("TerminateBastion"),
        Action::DeleteNetworkInterface { .. } => reasons!("DeleteNetworkInterface"),
        Action::CreateTags { .. } => reasons!("CreateTags"),
        Action::DeleteTags { .. } => reasons!("DeleteTags"),
        Action::Elb(ElbAction::Create { .. }) | Action::ElbV2(ElbV2Action::Create { .. }) => {
            reasons!("CreateLoadBalancer")
        }
        Action::Elb(ElbAction::Delete { .. }) | Action::ElbV2(ElbV2Action::Delete { .. }) => {
            reasons!("DeleteLoadBalancer")
        }
        Action::ElbV2(ElbV2Action::CreateTargetGroup { .. }) => reasons!("CreateTargetGroup"),
        Action::ElbV2(ElbV2Action::DeleteTargetGroup { .. }) => reasons!("DeleteTargetGroup"),
        Action::Elb(_) | Action::ElbV2(_) => reasons!("ModifyLoadBalancer"),
    }
}

#[cfg(test)]
mod tests {
    use aws_network::Answer;

    use super::*;

    #[test]
    fn a_write_is_told_in_upstreams_words_with_what_it_is_about() {
        let told = |action: &Action, outcome| {
            let Told { is_done, reason, message } = told(action, &outcome).unwrap();
            (is_done, reason, message)
        };
        let cidr = "10.0.0.0/16".parse().unwrap();
        let create = Action::CreateVpc { cidr, tags: aws_network::Tags::new() };
        let made = Outcome::Done(Answer { id: "vpc-1".to_owned(), ..Answer::default() });
        assert_eq!(
            told(&create, made),
            (true, "SuccessfulCreateVPC", "CreateVpc: vpc-1".to_owned())
        );
        let release = Action::ReleaseAddress { allocation: "eipalloc-1".to_owned() };
        let refused = Outcome::Refused("AuthFailure".to_owned());
        let message = "AWS refuses ReleaseAddress of eipalloc-1: AuthFailure".to_owned();
        assert_eq!(told(&release, refused), (false, "FailedReleaseEIP", message));
        let done = Outcome::Done(Answer::default());
        let message = "ReleaseAddress of eipalloc-1".to_owned();
        assert_eq!(told(&release, done), (true, "SuccessfulReleaseEIP", message));
        assert_eq!(super::told(&release, &Outcome::NotSent), None);
    }
}
