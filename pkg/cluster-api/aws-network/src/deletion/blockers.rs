//! Resources that are not ours: those that keep the VPC from being deleted, and those that carry
//! the tag of the cluster. They are named for people, and marked as ours first when they are
//! adopted.

use super::ending::Ending;
use crate::action::Action;
use crate::identity::Tags;
use crate::plan::{Other, Part, Plan, Reason};
use crate::query::{Query, Scope};
use crate::resources::{AwsResource, InstanceState, NetworkInterface};
use crate::route_tables::is_of_nat_gateway;
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
    let is_ours = ending.owns_vpc(&vpc);
    if is_ours {
        name_strangers(ending, &vpc, plan);
    }
    let Some(interfaces) = ending.observed.interfaces.get() else {
        plan.read(Query::NetworkInterfaces(vpc));
        return;
    };
    let is_our_group = |id: &String| {
        ending.observed.security_groups.of_id(id).is_some_and(|group| ending.has(group))
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
    // Without a record and a subnet in a wavelength zone it was not looked for; ours is deleted then.
    if observed.carrier_gateways.get().is_none()
        && residents.iter().any(|id| id.starts_with("cagw-"))
    {
        plan.read(Query::CarrierGateways(Scope::Tagged));
        return;
    }
    let tables = observed.route_tables.all().iter();
    let tables = tables.filter(|it| !it.is_main() && !is_of_nat_gateway(observed, it));
    let is_ours = |id: &&str| {
        let gateway = observed.egress_only_gateways.of_id(id);
        let gateway = gateway.or_else(|| observed.carrier_gateways.of_id(id));
        gateway.is_some_and(|gateway| ending.has(gateway))
    };
    let all = [
        strangers(ending, observed.subnets.all().iter(), vpc),
        strangers(ending, tables, vpc),
        strangers(ending, gateways.iter(), vpc),
        residents.iter().map(String::as_str).filter(|id| !is_ours(id)).collect(),
    ];
    for id in all.concat() {
        plan.problem(
            Part::Deletion,
            Reason::InUse,
            format!("{id} in {vpc} does not belong to this cluster: its owner has to delete it"),
        );
    }
}

fn strangers<'a>(
    ending: &Ending<'_>,
    all: impl Iterator<Item = &'a (impl AwsResource + 'a)>,
    vpc: &str,
) -> Vec<&'a str> {
    let here = all.filter(|found| found.vpc() == Some(vpc) && !ending.has(*found));
    here.map(AwsResource::id).collect()
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
    let mut take = |found: &dyn AwsResource| {
        let Some(tags) = found.known_tags().filter(|tags| identity.is_of_cluster(tags)) else {
            return;
        };
        if !ending.is_ours(tags, found.id()) {
            let owner_id = tags.get(&identity.owner_tag).cloned();
            others.push(Other { id: found.id().to_owned(), owner_id });
        }
    };
    each_of_ec2(ending, &mut take);
    seen.classic.all().iter().for_each(|found| take(found));
    seen.network.all().iter().for_each(|found| take(found));
    seen.target_groups.all().iter().for_each(|found| take(found));
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
    each_of_ec2(ending, &mut |found| {
        if let Some(tags) = found.known_tags().filter(|tags| ending.is_ours(tags, found.id())) {
            missing.compare(found.id(), tags, &wanted, &std::collections::BTreeSet::new());
        }
    });
    for action in missing.actions() {
        plan.act(Part::Deletion, action);
    }
}

/// Each resource of EC2 that exists, the user's groups excepted.
fn each_of_ec2(ending: &Ending<'_>, take: &mut dyn FnMut(&dyn AwsResource)) {
    let seen = ending.observed;
    seen.vpcs.all().iter().for_each(|found| take(found));
    seen.subnets.all().iter().for_each(|found| take(found));
    seen.internet_gateways.all().iter().for_each(|found| take(found));
    seen.egress_only_gateways.all().iter().for_each(|found| take(found));
    seen.carrier_gateways.all().iter().for_each(|found| take(found));
    seen.addresses.all().iter().for_each(|found| take(found));
    let nats = seen.nat_gateways.all().iter().filter(|found| !found.is_gone());
    nats.for_each(|found| take(found));
    let tables = seen.route_tables.all().iter().filter(|it| !is_of_nat_gateway(seen, it));
    tables.for_each(|found| take(found));
    let named = &ending.removal.named_groups;
    let groups = seen.security_groups.all().iter().filter(|found| !named.contains(&found.id));
    groups.for_each(|found| take(found));
    let instances = seen.bastions.all().iter();
    let live = instances.filter(|found| found.state != InstanceState::Terminated);
    live.for_each(|found| take(found));
}
