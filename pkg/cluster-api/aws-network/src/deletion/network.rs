//! Gateways, addresses, tables, subnets and the VPC at the end of a cluster.

use crate::action::Action;
use crate::addresses::holder;
use crate::part::Part;
use crate::plan::{Plan, RECHECK};
use crate::query::{Query, Scope};
use crate::resources::NatState;

use super::ending::Ending;
use super::load_balancers;

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
                .any(|found| found.vpc == vpc && load_balancers::is_to_go(ending, found))
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
