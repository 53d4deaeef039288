//! The deletion of load balancers, security groups and the network, each once nothing of ours uses
//! it.

use super::ending::{Ending, is_in_wavelength_zone};
use crate::action::{Action, ElbAction, ElbV2Action};
use crate::addresses::holder;
use crate::observed::Observed;
use crate::plan::{Part, Plan, RECHECK, Reason};
use crate::query::{Query, Scope};
use crate::resources::{AwsResource, NatState, RouteTable, SecurityGroup, Subnet};
use crate::route_tables::is_of_nat_gateway;
use crate::rule::{Rule, Source};

pub(super) fn plan_nat_gateways(ending: &Ending<'_>, plan: &mut Plan) {
    for found in ending.ours(&ending.observed.nat_gateways) {
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
    let nat_gateways = ending.observed.nat_gateways.all();
    let ours = ending.ours(&ending.observed.addresses);
    for address in ours.filter(|address| holder(nat_gateways, address).is_none()) {
        plan.act(Part::Deletion, Action::ReleaseAddress { allocation: address.id.clone() });
    }
}

/// The tables of ours that can be deleted.
fn route_tables<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a RouteTable> {
    let observed = ending.observed;
    let ours = ending.ours(&observed.route_tables);
    ours.filter(|found| !found.is_main() && !is_of_nat_gateway(observed, found))
}

pub(super) fn plan_route_tables(ending: &Ending<'_>, plan: &mut Plan) {
    for table in route_tables(ending) {
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
    let is_mapped = ending.ours(&ending.observed.addresses).next().is_some();
    for gateway in ending.ours(&ending.observed.internet_gateways) {
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

pub(super) fn plan_attached_gateways(ending: &Ending<'_>, plan: &mut Plan) {
    for gateway in ending.ours(&ending.observed.egress_only_gateways) {
        let gateway = gateway.id.clone();
        plan.act(Part::Deletion, Action::DeleteEgressOnlyGateway { gateway });
    }
    for gateway in ending.ours(&ending.observed.carrier_gateways) {
        let gateway = gateway.id.clone();
        plan.act(Part::Deletion, Action::DeleteCarrierGateway { gateway });
    }
}

/// Subnets in wavelength zones stay until the carrier gateway is gone: by them it is looked for.
pub(super) fn plan_subnets(ending: &Ending<'_>, plan: &mut Plan) {
    let has_carrier = ending.ours(&ending.observed.carrier_gateways).next().is_some();
    let goes = |subnet: &&Subnet| !has_carrier || !is_in_wavelength_zone(subnet);
    for subnet in ending.ours(&ending.observed.subnets).filter(goes) {
        plan.act(Part::Deletion, Action::DeleteSubnet { subnet: subnet.id.clone() });
    }
}

/// A VPC goes when nothing of ours is in it. AWS refuses while anything else is.
pub(super) fn plan_vpcs(ending: &Ending<'_>, plan: &mut Plan) {
    fn has<'a>(mut all: impl Iterator<Item = &'a (impl AwsResource + 'a)>, vpc: &str) -> bool {
        all.any(|found| found.vpc() == Some(vpc))
    }
    let observed = ending.observed;
    let is_occupied = |vpc: &str| {
        has(ending.ours(&observed.subnets), vpc)
            || has(ending.ours(&observed.nat_gateways).filter(|found| !found.is_gone()), vpc)
            || has(route_tables(ending), vpc)
            || has(ending.ours(&observed.security_groups), vpc)
            // AWS would let it go, but by it the target groups of load balancers are found.
            || has(ending.balancers(&observed.target_groups), vpc)
            || has(ending.ours(&observed.internet_gateways), vpc)
            || has(ending.ours(&observed.egress_only_gateways), vpc)
            || has(ending.ours(&observed.carrier_gateways), vpc)
    };
    for vpc in ending.ours(&observed.vpcs).filter(|vpc| !is_occupied(&vpc.id)) {
        plan.act(Part::Deletion, Action::DeleteVpc { vpc: vpc.id.clone() });
    }
}

/// Names of classic load balancers whose tags were not read: whose they are is not known.
pub(super) fn without_tags(observed: &Observed) -> Vec<String> {
    let all = observed.classic.all().iter();
    all.filter(|found| found.tags.is_none()).map(|found| found.name.clone()).collect()
}

pub(super) fn plan_load_balancers(ending: &Ending<'_>, plan: &mut Plan) {
    for found in ending.balancers(&ending.observed.classic) {
        let delete = ElbAction::Delete { name: found.name.clone() };
        plan.act(Part::Deletion, Action::Elb(delete));
    }
    for found in ending.balancers(&ending.observed.network) {
        let delete = ElbV2Action::Delete { load_balancer: found.arn.clone() };
        plan.act(Part::Deletion, Action::ElbV2(delete));
    }
    // Its listeners go with a load balancer, and with them what holds a target group.
    for group in ending.balancers(&ending.observed.target_groups) {
        let mut listeners = ending.observed.network.all().iter().flat_map(|found| &found.listeners);
        if listeners.all(|listener| listener.target_group != group.arn) {
            let delete = ElbV2Action::DeleteTargetGroup { target_group: group.arn.clone() };
            plan.act(Part::Deletion, Action::ElbV2(delete));
        }
    }
}

/// Whether a security group goes with the cluster.
fn goes(ending: &Ending<'_>, group: &SecurityGroup) -> bool {
    let removal = ending.removal;
    let is_of_service = || {
        ending.collects_in(&group.vpc)
            && removal.identity.is_service_group(&group.tags, &group.name)
    };
    // The default group of a VPC goes with it, whatever its tags.
    group.name != "default"
        && !removal.named_groups.contains(&group.id)
        && (ending.has(group) || is_of_service())
}

pub(super) fn plan_groups(ending: &Ending<'_>, plan: &mut Plan) {
    let are_free = ending.load_balancers_are_gone() && ending.bastions_are_gone();
    let all = ending.observed.security_groups.all().iter();
    for group in all.filter(|group| goes(ending, group)) {
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
        if let Some(other) = naming.filter(|other| !goes(ending, other)) {
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
