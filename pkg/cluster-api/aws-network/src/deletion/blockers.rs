//! What keeps a VPC from being deleted, named. It is for people: nothing waits for it to go.

use crate::action::Action;
use crate::part::{Part, Reason};
use crate::plan::Plan;
use crate::query::{Query, Scope};
use crate::resources::NetworkInterface;

use super::ending::Ending;

/// After so many seconds of refusals it is no longer what AWS takes to let go of interfaces.
const PATIENCE: u64 = 300;

pub(super) fn plan(ending: &Ending<'_>, plan: &mut Plan) {
    let since = ending.memory.blocked_since;
    let Some(vpc) =
        ending.vpc().filter(|_| since.is_some_and(|since| since.age(ending.now) >= PATIENCE))
    else {
        return;
    };
    let is_ours = ending
        .observed
        .vpcs
        .all()
        .iter()
        .any(|found| found.id == vpc && ending.is_ours(&found.tags, &found.id));
    if is_ours {
        name_strangers(ending, &vpc, plan);
    }
    let Some(interfaces) = ending.observed.interfaces.get() else {
        plan.read(Query::NetworkInterfaces(vpc));
        return;
    };
    let is_our_group = |id: &String| {
        let mut groups = ending.observed.security_groups.all().iter();
        groups.any(|group| group.id == *id && ending.is_ours(&group.tags, &group.id))
    };
    // In a VPC of others only what holds our groups concerns us.
    let concerns_us = |found: &&NetworkInterface| is_ours || found.groups.iter().any(is_our_group);
    for interface in interfaces.iter().filter(concerns_us) {
        if interface.available && is_ours && ending.removal.deletes_free_interfaces {
            let interface = interface.id.clone();
            plan.act(Part::Deletion, Action::DeleteNetworkInterface { interface });
        } else {
            plan.problem(Part::Deletion, Reason::InUse, describe(&vpc, interface));
        }
    }
}

/// What others have put into a VPC of ours holds it as well.
fn name_strangers(ending: &Ending<'_>, vpc: &str, plan: &mut Plan) {
    let observed = ending.observed;
    let (Some(gateways), Some(residents)) =
        (observed.attached_gateways.get(), observed.residents.get())
    else {
        let here = || Scope::Vpc(vpc.to_owned());
        plan.read(Query::Residents(vpc.to_owned()));
        plan.read(Query::Subnets(here()));
        plan.read(Query::RouteTables(here()));
        plan.read(Query::InternetGateways(here()));
        return;
    };
    let subnets = observed.subnets.all().iter().filter(|found| found.vpc == vpc);
    let tables =
        observed.route_tables.all().iter().filter(|found| found.vpc == vpc && !found.is_main());
    let all = subnets
        .map(|found| (&found.tags, &found.id))
        .chain(tables.map(|found| (&found.tags, &found.id)))
        .chain(gateways.iter().map(|found| (&found.tags, &found.id)));
    let strangers = all.filter(|(tags, id)| !ending.is_ours(tags, id)).map(|(_, id)| id);
    for id in strangers.chain(residents) {
        plan.problem(
            Part::Deletion,
            Reason::InUse,
            format!("{id} in {vpc} is not ours: who made it has to remove it"),
        );
    }
}

fn describe(vpc: &str, interface: &NetworkInterface) -> String {
    let NetworkInterface { id, description, requester, groups, .. } = interface;
    let state = if interface.available { "free" } else { "in use" };
    let groups = groups.join(", ");
    format!("{id} in {vpc} is {state}: {description:?}, made by {requester:?}, groups {groups}")
}
