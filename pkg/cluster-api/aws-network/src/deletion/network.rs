//! The deletion of load balancers, security groups and the network, each once nothing of ours uses
//! it.

use super::ending::Ending;
use crate::action::{Action, ElbAction, ElbV2Action};
use crate::addresses::holder;
use crate::observed::Observed;
use crate::plan::{Part, Plan, RECHECK, Reason};
use crate::query::{Query, Scope};
use crate::resources::{NatState, SecurityGroup};
use crate::rule::{Rule, Source};
use crate::{ClassicLoadBalancer, NetworkLoadBalancer, TargetGroup};

pub(super) fn plan_nat_gateways(ending: &Ending<'_>, plan: &mut Plan) {
    let all = ending.observed.nat_gateways.all().iter();
    for found in all.filter(|found| ending.is_ours(&found.tags, &found.id)) {
        match found.state {
            NatState::Pending | NatState::Available | NatState::Failed => {
                let delete = Action::DeleteNatGateway { nat_gateway: found.id.clone() };
                plan.act(Part::Deletion, delete);
            }
            NatState::Deleting => {
                let what = format!("{} is being deleted", found.id);
                plan.wait(Part::Deletion, what, RECHECK, Query::NatGateways(Scope::Tagged));
            }
            NatState::Deleted => {}
        }
    }
}

/// Addresses are released once no NAT gateway has them. AWS refuses to release one that anything
/// else uses.
pub(super) fn plan_addresses(ending: &Ending<'_>, plan: &mut Plan) {
    let observed = ending.observed;
    let ours =
        observed.addresses.all().iter().filter(|found| ending.is_ours(&found.tags, &found.id));
    for address in ours.filter(|address| holder(observed.nat_gateways.all(), address).is_none()) {
        plan.act(Part::Deletion, Action::ReleaseAddress { allocation: address.id.clone() });
    }
}

pub(super) fn plan_route_tables(ending: &Ending<'_>, plan: &mut Plan) {
    let all = ending.observed.route_tables.all().iter();
    let ours = all.filter(|found| ending.is_ours(&found.tags, &found.id) && !found.is_main());
    for table in ours {
        for association in &table.associations {
            let association = association.id.clone();
            plan.act(Part::Deletion, Action::DisassociateRouteTable { association });
        }
        if table.associations.is_empty() {
            plan.act(Part::Deletion, Action::DeleteRouteTable { table: table.id.clone() });
        }
    }
}

/// A gateway is detached when no address of ours is mapped through it any more.
pub(super) fn plan_gateways(ending: &Ending<'_>, plan: &mut Plan) {
    let observed = ending.observed;
    let is_mapped =
        observed.addresses.all().iter().any(|found| ending.is_ours(&found.tags, &found.id));
    let all = observed.internet_gateways.all().iter();
    for gateway in all.filter(|found| ending.is_ours(&found.tags, &found.id)) {
        let id = gateway.id.clone();
        match &gateway.attached_to {
            None => plan.act(Part::Deletion, Action::DeleteInternetGateway { gateway: id }),
            Some(_) if is_mapped => {}
            Some(vpc) => {
                let detach = Action::DetachInternetGateway { gateway: id, vpc: vpc.clone() };
                plan.act(Part::Deletion, detach);
            }
        }
    }
}

pub(super) fn plan_subnets(ending: &Ending<'_>, plan: &mut Plan) {
    let all = ending.observed.subnets.all().iter();
    for subnet in all.filter(|found| ending.is_ours(&found.tags, &found.id)) {
        plan.act(Part::Deletion, Action::DeleteSubnet { subnet: subnet.id.clone() });
    }
}

/// A VPC goes when nothing of ours is in it. AWS refuses while anything else is.
pub(super) fn plan_vpcs(ending: &Ending<'_>, plan: &mut Plan) {
    let observed = ending.observed;
    let is_occupied = |vpc: &str| {
        let gateways = &observed.internet_gateways;
        observed
            .subnets
            .all()
            .iter()
            .any(|found| found.vpc == vpc && ending.is_ours(&found.tags, &found.id))
            || observed.nat_gateways.all().iter().any(|found| {
                found.vpc == vpc && !found.is_gone() && ending.is_ours(&found.tags, &found.id)
            })
            || observed.route_tables.all().iter().any(|found| {
                found.vpc == vpc && !found.is_main() && ending.is_ours(&found.tags, &found.id)
            })
            || observed
                .security_groups
                .all()
                .iter()
                .any(|found| found.vpc == vpc && ending.is_ours(&found.tags, &found.id))
            // AWS would let it go, but by it the target groups of load balancers are found.
            || observed
                .target_groups
                .all()
                .iter()
                .any(|found| found.vpc == vpc && is_to_go(ending, found))
            || gateways.all().iter().any(|found| {
                found.attached_to.as_deref() == Some(vpc) && ending.is_ours(&found.tags, &found.id)
            })
    };
    for vpc in observed.vpcs.all().iter().filter(|found| ending.is_ours(&found.tags, &found.id)) {
        if !is_occupied(&vpc.id) {
            plan.act(Part::Deletion, Action::DeleteVpc { vpc: vpc.id.clone() });
        }
    }
}

/// Names of classic load balancers whose tags were not read: whose they are is not known.
pub(super) fn without_tags(observed: &Observed) -> Vec<String> {
    let all = observed.classic.all().iter();
    all.filter(|found| found.tags.is_none()).map(|found| found.name.clone()).collect()
}

fn classic<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a ClassicLoadBalancer> {
    let ending = *ending;
    ending.observed.classic.all().iter().filter(move |found| {
        found.tags.as_ref().is_some_and(|tags| {
            ending.is_ours(tags, &found.name) || ending.is_of_service(tags, &found.vpc)
        })
    })
}

fn network<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a NetworkLoadBalancer> {
    let ending = *ending;
    ending.observed.network.all().iter().filter(move |found| {
        ending.is_ours(&found.tags, &found.arn) || ending.is_of_service(&found.tags, &found.vpc)
    })
}

fn target_groups<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a TargetGroup> {
    let ending = *ending;
    ending.observed.target_groups.all().iter().filter(move |found| is_to_go(&ending, found))
}

/// Whether a target group goes with the cluster.
pub(super) fn is_to_go(ending: &Ending<'_>, group: &TargetGroup) -> bool {
    ending.is_ours(&group.tags, &group.arn) || ending.is_of_service(&group.tags, &group.vpc)
}

/// Whether the load balancers are gone, which use subnets, groups and addresses.
pub(super) fn load_balancers_are_gone(ending: &Ending<'_>) -> bool {
    classic(ending).next().is_none() && network(ending).next().is_none()
}

pub(super) fn plan_load_balancers(ending: &Ending<'_>, plan: &mut Plan) {
    for found in classic(ending) {
        let delete = ElbAction::Delete { name: found.name.clone() };
        plan.act(Part::Deletion, Action::Elb(delete));
    }
    for found in network(ending) {
        let delete = ElbV2Action::Delete { load_balancer: found.arn.clone() };
        plan.act(Part::Deletion, Action::ElbV2(delete));
    }
    let is_used = |group: &TargetGroup| {
        let mut listeners = ending.observed.network.all().iter().flat_map(|found| &found.listeners);
        listeners.any(|listener| listener.target_group == group.arn)
    };
    // Its listeners go with a load balancer, and with them what holds a target group.
    for group in target_groups(ending).filter(|group| !is_used(group)) {
        let delete = ElbV2Action::DeleteTargetGroup { target_group: group.arn.clone() };
        plan.act(Part::Deletion, Action::ElbV2(delete));
    }
}

fn ours<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a SecurityGroup> {
    let ending = *ending;
    ending.observed.security_groups.all().iter().filter(move |found| is_ours(&ending, found))
}

fn is_ours(ending: &Ending<'_>, group: &SecurityGroup) -> bool {
    let removal = ending.removal;
    let is_of_service = || {
        ending.collects_in(&group.vpc)
            && removal.identity.is_service_group(&group.tags, &group.name)
    };
    // The default group of a VPC goes with it, whatever its tags.
    group.name != "default"
        && !removal.named_groups.contains(&group.id)
        && (ending.is_ours(&group.tags, &group.id) || is_of_service())
}

pub(super) fn plan_groups(ending: &Ending<'_>, plan: &mut Plan) {
    let are_free = load_balancers_are_gone(ending) && ending.bastions_are_gone();
    for group in ours(ending) {
        let naming = named_by(ending, group);
        if are_free && naming.is_none() {
            let group = group.id.clone();
            plan.act(Part::Deletion, Action::DeleteSecurityGroup { group });
            continue;
        }
        let rules: Vec<Rule> = rules_naming_others(group).cloned().collect();
        if !rules.is_empty() {
            plan.act(Part::Deletion, Action::RevokeIngress { group: group.id.clone(), rules });
        }
        if let Some(other) = naming.filter(|other| !is_ours(ending, other)) {
            let message = format!(
                "{} is the source of a rule of {}, which does not belong to this cluster",
                group.id, other.id
            );
            plan.problem(Part::Deletion, Reason::InUse, message);
        }
    }
}

/// The rules of a group that keep another one from being deleted.
fn rules_naming_others(group: &SecurityGroup) -> impl Iterator<Item = &Rule> {
    group.rules.iter().filter(|rule| match &rule.key.source {
        Source::Group(id) => *id != group.id,
        Source::Cidr(_) | Source::PrefixList(_) => false,
    })
}

fn named_by<'a>(ending: &Ending<'a>, group: &SecurityGroup) -> Option<&'a SecurityGroup> {
    let source = Source::Group(group.id.clone());
    let mut others =
        ending.observed.security_groups.all().iter().filter(|other| other.id != group.id);
    others.find(|other| other.rules.iter().any(|rule| rule.key.source == source))
}
