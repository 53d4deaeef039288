//! Resources that are not ours: those that keep the VPC from being deleted, and those that carry
//! the tag of the cluster. They are named for people, and marked as ours first when they are
//! adopted.

use super::ending::Ending;
use crate::action::Action;
use crate::identity::Tags;
use crate::plan::{Other, Part, Plan, Reason};
use crate::query::{Query, Scope};
use crate::resources::{InstanceState, NetworkInterface};
use crate::tags::TagDrift;

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

/// Names the resources of others in a VPC of ours, which keep it from being deleted.
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
            format!("{id} in {vpc} does not belong to this cluster: its owner has to delete it"),
        );
    }
}

fn describe(vpc: &str, interface: &NetworkInterface) -> String {
    let NetworkInterface { id, description, requester, groups, .. } = interface;
    let state = if interface.available { "free" } else { "in use" };
    let groups = groups.join(", ");
    format!("{id} in {vpc} is {state}: {description:?}, made by {requester:?}, groups {groups}")
}

/// Resources with the tag of the cluster that are not ours.
pub(super) fn seen(ending: &Ending<'_>) -> Vec<Other> {
    let (seen, identity) = (ending.observed, &ending.removal.identity);
    let mut others = Vec::new();
    let mut take = |id: &str, tags: &Tags| {
        if identity.is_of_cluster(tags) && !ending.is_ours(tags, id) {
            let owner_id = tags.get(&identity.owner_tag).cloned();
            others.push(Other { id: id.to_owned(), owner_id });
        }
    };
    each_of_ec2(ending, &mut take);
    for found in seen.classic.all() {
        found.tags.iter().for_each(|tags| take(&found.name, tags));
    }
    seen.network.all().iter().for_each(|found| take(&found.arn, &found.tags));
    seen.target_groups.all().iter().for_each(|found| take(&found.arn, &found.tags));
    others
}

/// Sets the owner id on what is adopted to be deleted (`rule:adoption-begins-with-the-owner-id`):
/// the policy that we ship allows to delete nothing without it.
pub(super) fn mark(ending: &Ending<'_>, plan: &mut Plan) {
    let identity = &ending.removal.identity;
    if !identity.adopt {
        return;
    }
    let wanted = Tags::from([(identity.owner_tag.clone(), identity.owner_id.clone())]);
    let mut missing = TagDrift::default();
    each_of_ec2(ending, &mut |id, tags| {
        if ending.is_ours(tags, id) {
            missing.compare(id, tags, &wanted, &std::collections::BTreeSet::new());
        }
    });
    for action in missing.actions() {
        plan.act(Part::Deletion, action);
    }
}

fn each_of_ec2(ending: &Ending<'_>, take: &mut dyn FnMut(&str, &Tags)) {
    let seen = ending.observed;
    seen.vpcs.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.subnets.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.internet_gateways.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.addresses.all().iter().for_each(|found| take(&found.id, &found.tags));
    let nats = seen.nat_gateways.all().iter().filter(|found| !found.is_gone());
    nats.for_each(|found| take(&found.id, &found.tags));
    seen.route_tables.all().iter().for_each(|found| take(&found.id, &found.tags));
    let named = &ending.removal.named_groups;
    let groups = seen.security_groups.all().iter().filter(|found| !named.contains(&found.id));
    groups.for_each(|found| take(&found.id, &found.tags));
    let instances = seen.bastions.all().iter();
    let live = instances.filter(|found| found.state != InstanceState::Terminated);
    live.for_each(|found| take(&found.id, &found.tags));
}
