//! Events about writes to AWS, with upstream's reasons where it has one. Pure.

use std::fmt::Write as _;

use aws_network::{Action, ElbAction, ElbV2Action, Outcome};
use events::EventType;
use objects::Object;

use crate::api::aws_cluster::AwsCluster;

/// Severity, reason and message of an event about a write.
pub(super) type EventText = (EventType, &'static str, String);

/// The reasons of a write that succeeds and of one that fails.
macro_rules! reasons {
    ($word:literal) => {
        [concat!("Successful", $word), concat!("Failed", $word)]
    };
}

/// Whether writes for an AWSCluster repair drift: it was ready and its spec has not changed since.
pub(super) fn is_repaired(object: &Object<AwsCluster>) -> bool {
    let (metadata, status) = (&object.metadata, &object.status);
    let is_unchanged = status.observed_generation == Some(metadata.generation);
    // A plan that was not carried out is no drift.
    status.was_ready() && is_unchanged && status.plan.is_none() && !metadata.deleting()
}

/// The event about a write, with the difference if it is a repair. `None` for a write that was not
/// sent, because it is planned again.
pub(super) fn event_text(action: &Action, outcome: &Outcome, is_repair: bool) -> Option<EventText> {
    let [done, failed] = reasons_of(action);
    Some(match outcome {
        Outcome::Done(answer) => {
            let mut message = action.to_string();
            if action.creates().is_some() && !answer.id.is_empty() {
                let _infallible = write!(message, ": {}", answer.id);
            }
            if is_repair {
                message.push_str("; repairs drift");
                let difference = action.difference();
                let colon = if difference.is_empty() { "" } else { ": " };
                let _infallible = write!(message, "{colon}{difference}");
            }
            (EventType::Normal, done, message)
        }
        Outcome::Refused(refused) => {
            let message = format!("AWS refuses {action}: {refused}");
            (EventType::Warning, failed, message)
        }
        Outcome::Unknown => {
            let message = format!(
                "the answer to {action} is lost; the controller reads the resource before it \
                 continues"
            );
            (EventType::Warning, failed, message)
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
        Action::AssociateCidr { .. } => reasons!("AssociateVPCCIDRBlock"),
        Action::DeleteVpc { .. } => reasons!("DeleteVPC"),
        Action::CreateSubnet { .. } => reasons!("CreateSubnet"),
        Action::SetMapPublicIp { .. } | Action::AssignIpv6 { .. } => {
            reasons!("ModifySubnetAttributes")
        }
        Action::DeleteSubnet { .. } => reasons!("DeleteSubnet"),
        Action::CreateInternetGateway { .. } => reasons!("CreateInternetGateway"),
        Action::AttachInternetGateway { .. } => reasons!("AttachInternetGateway"),
        Action::DetachInternetGateway { .. } => reasons!("DetachInternetGateway"),
        Action::DeleteInternetGateway { .. } => reasons!("DeleteInternetGateway"),
        Action::CreateEgressOnlyGateway { .. } => reasons!("CreateEgressOnlyInternetGateway"),
        Action::DeleteEgressOnlyGateway { .. } => reasons!("DeleteEgressOnlyInternetGateway"),
        Action::CreateCarrierGateway { .. } => reasons!("CreateCarrierGateway"),
        Action::DeleteCarrierGateway { .. } => reasons!("DeleteCarrierGateway"),
        Action::AllocateAddress { .. } => reasons!("AllocateAddress"),
        Action::ReleaseAddress { .. } => reasons!("ReleaseEIP"),
        Action::CreateNatGateway { .. } | Action::CreateRegionalNatGateway { .. } => {
            reasons!("CreateNATGateway")
        }
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
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_writes_for_what_was_ready_and_is_wanted_as_before_are_repairs() {
        let is_repaired = |ready: bool, observed: i64, plan: Value, deleted: Value| {
            let object = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u",
                "resourceVersion": "1", "generation": 2, "deletionTimestamp": deleted},
                "spec": {"region": "r"},
                "status": {"ready": ready, "observedGeneration": observed, "plan": plan}});
            is_repaired(&Object::read(object).unwrap())
        };
        assert!(is_repaired(true, 2, Value::Null, Value::Null));
        assert!(!is_repaired(false, 2, Value::Null, Value::Null));
        assert!(!is_repaired(true, 1, Value::Null, Value::Null));
        assert!(!is_repaired(true, 2, json!({"writes": ["CreateVpc"]}), Value::Null));
        assert!(!is_repaired(true, 2, Value::Null, json!("2026-01-01T00:00:00Z")));
    }

    #[test]
    fn the_event_of_a_write_has_upstreams_reason_and_names_the_resource() {
        let event = |action: &Action, outcome| event_text(action, &outcome, false).unwrap();
        let cidr = "10.0.0.0/16".parse().unwrap();
        let create = Action::CreateVpc { cidr, ipv6: false, tags: aws_network::Tags::new() };
        let made = Outcome::Done(Answer { id: "vpc-1".to_owned(), ..Answer::default() });
        assert_eq!(
            event(&create, made),
            (EventType::Normal, "SuccessfulCreateVPC", "CreateVpc: vpc-1".to_owned())
        );
        let release = Action::ReleaseAddress { allocation: "eipalloc-1".to_owned() };
        let refused = Outcome::Refused(aws_network::Refused::with_code("AuthFailure"));
        let message = "AWS refuses ReleaseAddress of eipalloc-1: AuthFailure".to_owned();
        assert_eq!(event(&release, refused), (EventType::Warning, "FailedReleaseEIP", message));
        let done = Outcome::Done(Answer::default());
        let message = "ReleaseAddress of eipalloc-1".to_owned();
        assert_eq!(event(&release, done), (EventType::Normal, "SuccessfulReleaseEIP", message));
        assert_eq!(super::event_text(&release, &Outcome::NotSent, true), None);
    }

    #[test]
    fn the_event_of_a_repair_names_the_change() {
        let target = aws_network::Target::NatGateway("nat-1".to_owned());
        let (table, destination) = ("rtb-1".to_owned(), aws_network::DEFAULT_ROUTE);
        let route = Action::CreateRoute { table, destination, target };
        let done = Outcome::Done(Answer::default());
        let (_, _, message) = event_text(&route, &done, true).unwrap();
        assert_eq!(message, "CreateRoute of rtb-1; repairs drift: + 0.0.0.0/0 to nat-1");
    }
}
