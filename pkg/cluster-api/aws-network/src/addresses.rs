//! Elastic IPs of the NAT gateways. They cost money while nothing uses them, and others have them
//! in allow-lists.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::action::Action;
use crate::identity::{ROLE_TAG, Tags};
use crate::memory::{LATE, LogicalId, REGIONAL};
use crate::observed::Observed;
use crate::plan::{Part, Plan, RECHECK, Situation};
use crate::query::Query;
use crate::resources::{Address, NatGateway};
use crate::tags::{NAT_ZONE_TAG, without_name_and_role};

/// The elastic IPs of ours that are for NAT gateways.
pub(crate) fn ours<'a>(situation: &Situation<'a>) -> impl Iterator<Item = &'a Address> {
    let situation = *situation;
    let all = situation.observed.addresses.all().iter();
    all.filter(move |found| situation.owns(&found.tags, &found.id) && is_for_nat(found))
}

/// Whether an address is for a NAT gateway. Upstream gives some to Machines, with a role that names
/// the instance.
pub(crate) fn is_for_nat(address: &Address) -> bool {
    let role = address.tags.get(ROLE_TAG).map(String::as_str);
    zone_of(address).is_some() || matches!(role, None | Some("common" | "apiserver"))
}

/// The NAT gateway that has an address or gives it back only now. A pending one has it before AWS
/// associates it (cluster-api-provider-aws#1752).
pub(crate) fn holder<'a>(
    nat_gateways: &'a [NatGateway],
    address: &Address,
) -> Option<&'a NatGateway> {
    nat_gateways.iter().find(|nat| !nat.is_gone() && nat.allocations.contains(&address.id))
}

/// The public addresses of the traffic from private subnets: elastic IPs of ours, and those that AWS
/// has given our regional NAT gateways, which become more with their zones.
pub(crate) fn public_ips(
    observed: &Observed,
    owns: impl Fn(&Tags, &str) -> bool,
) -> BTreeSet<Ipv4Addr> {
    let ours = |it: &&Address| owns(&it.tags, &it.id) && is_for_nat(it);
    let elastic = observed.addresses.all().iter().filter(ours).map(|it| it.ip);
    let nats = observed.nat_gateways.all().iter();
    let regional = nats.filter(|it| it.is_regional && it.is_live() && owns(&it.tags, &it.id));
    elastic.chain(regional.flat_map(|it| it.public_ips.iter().copied())).collect()
}

/// The zone whose NAT gateway an address is for.
pub(crate) fn zone_of(address: &Address) -> Option<&str> {
    address.tags.get(NAT_ZONE_TAG).map(String::as_str)
}

/// The free address for the NAT gateway of a zone.
fn free<'a>(situation: &Situation<'a>, zone: &str) -> Option<&'a Address> {
    let nat_gateways = situation.observed.nat_gateways.all();
    ours(situation)
        .filter(|address| zone_of(address) == Some(zone) && address.association.is_none())
        .filter(|address| holder(nat_gateways, address).is_none())
        .min_by_key(|address| &address.id)
}

/// The free address of a zone. Allocates one when no address is free and none is about to become
/// free.
pub(crate) fn for_zone<'a>(
    situation: &Situation<'a>,
    zone: &str,
    is_clear: bool,
    plan: &mut Plan,
) -> Option<&'a Address> {
    let address = free(situation, zone);
    if address.is_none()
        && is_clear
        && !is_taken_unseen(situation, zone, plan)
        && !is_given_back(situation, zone, plan)
    {
        let tags = situation.desired.address_tags(zone);
        let create = Action::AllocateAddress { zone: zone.to_owned(), tags };
        situation.create(Part::NatGateways, create, &situation.observed.addresses, plan);
    }
    address
}

/// The address of the zone is in use, by a NAT gateway that was made a moment ago and is not
/// visible yet.
fn is_taken_unseen(situation: &Situation<'_>, zone: &str, plan: &mut Plan) -> bool {
    let mut taken = ours(situation).filter(|address| zone_of(address) == Some(zone));
    let taken = taken.find(|address| was_just_given(situation, zone, address));
    if let Some(address) = taken {
        let id = &address.id;
        let what = format!("{id} of {zone} is in use, but AWS does not show its NAT gateway yet");
        plan.wait_to_see(Part::NatGateways, what, RECHECK);
    }
    taken.is_some()
}

/// The address of the zone was in use by a NAT gateway that has ended since: it is read again.
/// Another one would change the address that others have in allow-lists.
fn is_given_back(situation: &Situation<'_>, zone: &str, plan: &mut Plan) -> bool {
    let observed = situation.observed;
    let is_old = observed.addresses.read_at() < observed.nat_gateways.read_at();
    let mut used = ours(situation).filter(|address| address.association.is_some());
    let used = used.find(|address| is_old && zone_of(address) == Some(zone));
    if let Some(address) = used {
        let what = format!("{} of {zone} becomes free", address.id);
        plan.read(Query::Addresses);
        plan.wait(Part::NatGateways, what, RECHECK, Query::Addresses);
    }
    used.is_some()
}

/// Keeps the tags of addresses in use, and releases those that no NAT gateway has or is going to
/// have. While a regional NAT gateway is awaited none is released: AWS may refuse it.
pub(crate) fn settle(situation: &Situation<'_>, lacks: &dyn Fn(&str) -> bool, plan: &mut Plan) {
    let nat_gateways = situation.observed.nat_gateways.all();
    for address in ours(situation) {
        let holder = holder(nat_gateways, address);
        let zone = zone_of(address);
        let is_next = zone.is_some_and(|zone| {
            lacks(zone) && free(situation, zone).is_none_or(|free| free.id == address.id)
        });
        if holder.is_some() || is_next || lacks(REGIONAL) {
            correct(situation, address, plan);
        } else if zone.is_some_and(|zone| was_just_given(situation, zone, address)) {
            let what =
                format!("{} is in use, but AWS does not show its NAT gateway yet", address.id);
            plan.wait_to_see(Part::NatGateways, what, RECHECK);
        } else {
            let allocation = address.id.clone();
            plan.act(Part::NatGateways, Action::ReleaseAddress { allocation });
        }
    }
}

/// An address that is in use, by something whose create is too recent to be seen for certain.
fn was_just_given(situation: &Situation<'_>, zone: &str, address: &Address) -> bool {
    let record = situation.memory.records.get(&LogicalId::NatGateway(zone.to_owned()));
    address.association.is_some()
        && record.is_some_and(|record| {
            record.since.plus(LATE) > situation.observed.nat_gateways.read_at()
        })
}

fn correct(situation: &Situation<'_>, address: &Address, plan: &mut Plan) {
    let desired = situation.desired;
    let Some(zone) = zone_of(address) else {
        // One that upstream made: the zone is known once it is free again.
        let wanted = without_name_and_role(desired.address_tags(""));
        let wanted = wanted.into_iter().filter(|(key, _)| key != NAT_ZONE_TAG).collect();
        plan.tags.compare(&address.id, &address.tags, &wanted, &desired.retired_tags);
        return;
    };
    let mut wanted = desired.address_tags(zone);
    if address.tags.get(ROLE_TAG).is_some_and(|role| role == "apiserver") {
        wanted = without_name_and_role(wanted);
    }
    plan.tags.compare(&address.id, &address.tags, &wanted, &desired.retired_tags);
}
