//! NAT gateways: as many as the policy says, each in a zone, kept while routes lead to them.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::Action;
use crate::addresses;
use crate::desired::{Desired, NatPolicy};
use crate::identity::Ownership;
use crate::memory::{LogicalId, REGIONAL, client_token};
use crate::outcome::is_quota;
use crate::plan::{FOR_ANOTHER, Part, Plan, RECHECK, Reason, Situation};
use crate::query::Query;
use crate::resources::{NatGateway, NatState};
use crate::spec::Zone;
use crate::subnets::{Placed, Subnets};
use crate::tags::{NAT_ZONE_TAG, attempt_of};
use crate::vpc::Home;

/// The first wait after a NAT gateway has failed, in seconds; each failure doubles it.
const FIRST_RETRY: u64 = 30;

/// The longest wait, in seconds.
const LAST_RETRY: u64 = 600;

/// How a refusal of a regional NAT gateway is forgotten.
const AGAIN: &str = "; to try Regional again, set natGateways.mode to PerAZ, wait until the annotation \
                     aws.cluster.x-k8s.io/regional-nat-refused is gone, and set Regional";

/// Where a private subnet's traffic goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit<'a> {
    /// Through this NAT gateway, which is available.
    Through(&'a str),
    /// Where it goes now; there is nothing better yet.
    Unchanged,
    /// Nowhere.
    None,
}

/// The NAT gateways, as routes need them.
#[derive(Clone, Debug)]
pub(crate) struct Nats<'a> {
    policy: &'a NatPolicy,
    /// The NAT gateway in use of each wanted zone, available or pending.
    chosen: BTreeMap<String, &'a NatGateway>,
    wanted: BTreeSet<String>,
    /// The zone that serves edge zones whose parent zone has none.
    first: Option<String>,
}

impl<'a> Nats<'a> {
    /// Where traffic of a private subnet goes. From an edge zone without a NAT gateway that is the one of
    /// the parent zone, or the first where that has none.
    pub(crate) fn exit(&self, subnet: &Placed<'_>) -> Exit<'a> {
        let serves = |zone: &&String| self.wanted.contains(*zone);
        let other = |edge: &'_ Zone| {
            edge.parent.clone().filter(|it| serves(&it)).or_else(|| self.first.clone())
        };
        let own = self.wanted.get(subnet.zone).cloned();
        let zone = own.or_else(|| subnet.edge.as_ref().and_then(other));
        let gateway = match self.policy {
            NatPolicy::None => return Exit::None,
            NatPolicy::PerZone => zone.and_then(|zone| self.chosen.get(&zone)),
            NatPolicy::Single(_) | NatPolicy::Regional { .. } => self.chosen.values().next(),
        };
        match gateway.filter(|gateway| gateway.state == NatState::Available) {
            Some(gateway) => Exit::Through(&gateway.id),
            None => Exit::Unchanged,
        }
    }

    /// Whether a gateway is one that counts.
    pub(crate) fn keeps(&self, id: &str) -> bool {
        self.chosen.values().any(|gateway| gateway.id == id)
    }

    /// Whether a zone shall have a gateway and has none.
    pub(crate) fn lacks(&self, zone: &str) -> bool {
        self.wanted.contains(zone) && !self.chosen.contains_key(zone)
    }
}

/// Plans NAT gateways and their elastic IPs. None as long as they were not read, and where the
/// policy cannot be followed: routes and NAT gateways stay as they are.
pub(crate) fn plan<'a>(
    situation: &Situation<'a>,
    home: &Home<'a>,
    subnets: &Subnets<'a>,
    gateway: Option<&str>,
    plan: &mut Plan,
) -> Option<Nats<'a>> {
    let observed = situation.observed;
    let look = Query::NatGateways(home.scope());
    if observed.nat_gateways.get().is_none() {
        plan.read(look.clone());
    }
    if observed.addresses.get().is_none() {
        plan.read(Query::Addresses);
    }
    observed.nat_gateways.get().and(observed.addresses.get())?;
    let policy = policy_in_effect(situation, plan)?;
    let edges = match policy {
        NatPolicy::PerZone => edges_with_one(situation, home, subnets),
        _ => BTreeSet::new(),
    };
    let mut wanted = wanted_zones(situation.desired, policy, &edges, plan);
    if *policy == NatPolicy::Single(None)
        && let Some(zone) = zone_of_survivor(situation, home, subnets)
    {
        wanted = BTreeSet::from([zone]);
    }
    let first = wanted.first().cloned();
    wanted.extend(edges);
    let chosen = wanted
        .iter()
        .filter_map(|zone| Some((zone.clone(), best_in(situation, home, subnets, zone)?)))
        .collect();
    let nats = Nats { policy, chosen, wanted, first };
    for zone in &nats.wanted {
        match nats.chosen.get(zone) {
            Some(found) => keep(situation, zone, found, &look, plan),
            None => make(situation, home, subnets, gateway, zone, plan),
        }
    }
    Some(nats)
}

/// The policy in effect. Reports why it is not that of the spec.
fn policy_in_effect<'a>(situation: &Situation<'a>, plan: &mut Plan) -> Option<&'a NatPolicy> {
    let desired = situation.desired;
    let policy = desired.nat_in_effect(situation.memory);
    if let NatPolicy::Regional { region, is_offered } = &desired.nat
        && policy != Some(&desired.nat)
    {
        let refusal = situation.memory.regional_nat_refusal.as_ref().filter(|_| *is_offered);
        let code = refusal.map_or_else(String::new, |code| format!(" (AWS answered {code})"));
        let fact = format!("Regional is not available in {region}{code}");
        let again = refusal.map_or("", |_| AGAIN);
        let (reason, rest) = if policy.is_some() {
            let rest = "the NAT gateways are those of PerAZ until natGateways.mode changes";
            (Reason::RegionalNatNotAvailable, rest)
        } else {
            let rest = "PerAZ needs a public subnet in each zone with a private one: add them, or \
                        change natGateways.mode";
            (Reason::Unsupported, rest)
        };
        plan.problem(Part::NatGateways, reason, format!("{fact}; {rest}{again}"));
    }
    policy
}

/// The edge zones of private subnets that have a NAT gateway of ours. It stays, since others have its address
/// in allow-lists; no other is created there, as AWS offers them in few edge zones.
fn edges_with_one(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
) -> BTreeSet<String> {
    let zones = situation.desired.private_edges().map(|edge| edge.name.clone());
    zones.filter(|zone| best_in(situation, home, subnets, zone).is_some()).collect()
}

/// The zones that shall have a NAT gateway, or [`REGIONAL`]. Those of `edges` have one.
fn wanted_zones(
    desired: &Desired,
    policy: &NatPolicy,
    edges: &BTreeSet<String>,
    plan: &mut Plan,
) -> BTreeSet<String> {
    let (has_public, has_private) = (desired.public_zones(), desired.private_zones());
    match policy {
        NatPolicy::Regional { .. } if has_private.is_empty() && !desired.has_private_edges() => {
            BTreeSet::new()
        }
        NatPolicy::Regional { .. } => BTreeSet::from([REGIONAL.to_owned()]),
        NatPolicy::None => BTreeSet::new(),
        NatPolicy::Single(zone) => {
            if has_private.len() > 1 {
                let message = "all private subnets depend on the zone of one NAT gateway";
                plan.problem(Part::NatGateways, Reason::NatSingleZone, message);
            }
            zone.clone().or_else(|| desired.zones(true).next()).into_iter().collect()
        }
        NatPolicy::PerZone => {
            for zone in has_private.difference(&has_public) {
                let message = format!(
                    "zone {zone} has private subnets but no public subnet for a NAT gateway"
                );
                plan.problem(Part::NatGateways, Reason::NoNatForZone, message);
            }
            let wanted: BTreeSet<_> = has_private.intersection(&has_public).cloned().collect();
            if !wanted.is_empty() {
                return wanted;
            }
            // Only edge zones have private subnets.
            let lacking = || desired.private_edges().filter(|edge| !edges.contains(&edge.name));
            let mut parents = lacking().filter_map(|edge| edge.parent.as_ref());
            let parent = parents.find(|parent| has_public.contains(*parent));
            let first = parent.or(has_public.first()).filter(|_| lacking().next().is_some());
            first.into_iter().cloned().collect()
        }
    }
}

/// Where the only NAT gateway is, or is being made, when the spec leaves the zone to us: others
/// have its address in allow-lists, so it does not follow the order of the subnets. None is made in an edge zone.
fn zone_of_survivor(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
) -> Option<String> {
    let regular: Vec<_> = situation.desired.zones(true).collect();
    let public = situation.desired.subnets.iter().filter(|subnet| subnet.public);
    let edges = public.filter_map(|subnet| subnet.edge.as_ref()).map(|edge| edge.name.clone());
    let zones: Vec<_> = regular.iter().cloned().chain(edges).collect();
    let found = |zone: &str| best_in(situation, home, subnets, zone);
    let is_available = |zone: &str| found(zone).is_some_and(|it| it.state == NatState::Available);
    let is_begun = |zone: &&String| {
        addresses::ours(situation).any(|it| addresses::zone_of(it) == Some(&**zone))
    };
    let first = |is_it: &dyn Fn(&str) -> bool| zones.iter().find(|zone| is_it(zone));
    let zone = first(&is_available)
        .or_else(|| first(&|zone| found(zone).is_some()))
        .or_else(|| regular.iter().find(is_begun));
    zone.cloned()
}

/// The NAT gateways of ours in the VPC.
pub(crate) fn ours<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
) -> impl Iterator<Item = &'a NatGateway> + use<'a> {
    let (situation, home) = (*situation, home.id.to_owned());
    let all = situation.observed.nat_gateways.all().iter();
    all.filter(move |found| found.vpc == home && situation.owns(&found.tags, &found.id))
}

/// The zone of a NAT gateway, or [`REGIONAL`]: that of its subnet, or what its tag says when the
/// subnet is gone.
fn zone_of<'a>(situation: &Situation<'a>, gateway: &'a NatGateway) -> Option<&'a str> {
    if gateway.is_regional {
        return Some(REGIONAL);
    }
    let subnet = situation.observed.subnets.of_id(&gateway.subnet);
    let zone = subnet.map(|subnet| &subnet.zone).or_else(|| gateway.tags.get(NAT_ZONE_TAG));
    zone.map(String::as_str)
}

fn in_zone<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    zone: &str,
) -> impl Iterator<Item = &'a NatGateway> + use<'a> {
    let (situation, zone) = (*situation, zone.to_owned());
    ours(&situation, home).filter(move |found| zone_of(&situation, found) == Some(zone.as_str()))
}

/// The gateway of a zone that counts: one in a public subnet of the spec, available before pending,
/// and the same one each time.
fn best_in<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    zone: &str,
) -> Option<&'a NatGateway> {
    let is_well_placed = |gateway: &&NatGateway| {
        let mut placed = subnets.placed.iter();
        gateway.is_regional || placed.any(|it| it.public && it.id == gateway.subnet)
    };
    in_zone(situation, home, zone)
        .filter(|gateway| gateway.is_live())
        .filter(is_well_placed)
        .min_by_key(|gateway| (gateway.state != NatState::Available, &gateway.id))
}

fn keep(situation: &Situation<'_>, zone: &str, found: &NatGateway, look: &Query, plan: &mut Plan) {
    let desired = situation.desired;
    let wanted = desired.nat_gateway_tags(zone, attempt_of(&found.tags));
    plan.tags.compare(&found.id, &found.tags, &wanted, &desired.retired_tags);
    if found.state == NatState::Pending {
        let what = format!("{} in {zone} is pending", found.id);
        plan.wait(Part::NatGateways, what, RECHECK, look.clone());
    }
}

fn make(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    gateway: Option<&str>,
    zone: &str,
    plan: &mut Plan,
) {
    if let Some(found) = upstreams_in(situation, home, zone) {
        let message = format!(
            "{found} in {zone} has the tag of this cluster but no owner-id, and no second NAT \
             gateway is created: set the annotation aws.cluster.x-k8s.io/adopt=true to adopt it, \
             or remove the tag"
        );
        plan.problem(Part::NatGateways, Reason::OwnershipConflict, message);
        return;
    }
    let mut is_clear = true;
    for found in in_zone(situation, home, zone) {
        is_clear &= end(found, home, plan);
    }
    let place = if zone == REGIONAL {
        None
    } else {
        // Without a subnet to use it in, an elastic IP would only cost money.
        let mut placed = subnets.placed.iter();
        let Some(subnet) = placed.find(|it| it.public && it.zone == zone) else { return };
        let address = addresses::for_zone(situation, zone, is_clear, plan);
        let Some(address) = address.filter(|_| subnet.available) else { return };
        Some((subnet.id.to_owned(), address.id.clone()))
    };
    if gateway.is_none() || !is_clear || is_paced(situation, home, zone, plan) {
        return;
    }
    let logical = LogicalId::NatGateway(zone.to_owned());
    let ended = in_zone(situation, home, zone).map(|found| attempt_of(&found.tags)).max();
    let attempt = situation.memory.attempt(&logical, ended, situation.now);
    let token = client_token(&situation.identity().owner_id, &logical, attempt);
    let tags = situation.desired.nat_gateway_tags(zone, attempt);
    let (vpc, zone) = (home.id.to_owned(), zone.to_owned());
    let create = match place {
        Some((subnet, allocation)) => {
            Action::CreateNatGateway { vpc, zone, subnet, allocation, attempt, token, tags }
        }
        None => Action::CreateRegionalNatGateway { vpc, attempt, token, tags },
    };
    situation.create(Part::NatGateways, create, &situation.observed.nat_gateways, plan);
}

/// A gateway that upstream's provider made for the zone: an adoption was broken off.
fn upstreams_in<'a>(situation: &Situation<'a>, home: &Home<'_>, zone: &str) -> Option<&'a str> {
    let mut all = situation.observed.nat_gateways.all().iter();
    let found = all.find(|found| {
        let ownership = || {
            situation.identity().ownership(&found.tags, situation.memory.has_recorded(&found.id))
        };
        found.vpc == home.id
            && found.is_live()
            && zone_of(situation, found) == Some(zone)
            && ownership() == Ownership::Upstreams
    });
    found.map(|found| found.id.as_str())
}

/// Sees a gateway off that failed or is being deleted. Whether it is gone.
fn end(found: &NatGateway, home: &Home<'_>, plan: &mut Plan) -> bool {
    match found.state {
        NatState::Failed => {
            let why = found.failure.as_deref().unwrap_or("AWS gives no reason");
            let message = format!("{} has failed: {why}", found.id);
            let is_quota = why.split(':').next().is_some_and(is_quota);
            let reason = if is_quota { Reason::QuotaExceeded } else { Reason::NatGatewayFailed };
            plan.problem(Part::NatGateways, reason, message);
            let delete = Action::DeleteNatGateway { nat_gateway: found.id.clone() };
            plan.act(Part::NatGateways, delete);
            false
        }
        NatState::Deleting => {
            let look = Query::NatGateways(home.scope());
            plan.wait(Part::NatGateways, format!("{} is being deleted", found.id), RECHECK, look);
            false
        }
        // One in a subnet that does not count is dealt with as surplus.
        NatState::Pending | NatState::Available | NatState::Deleted => true,
    }
}

/// Whether the next attempt has to wait, since earlier ones have failed.
fn is_paced(situation: &Situation<'_>, home: &Home<'_>, zone: &str, plan: &mut Plan) -> bool {
    let failures = in_zone(situation, home, zone).filter(|found| found.failure.is_some()).count();
    let logical = LogicalId::NatGateway(zone.to_owned());
    let Some(record) = situation.memory.records.get(&logical).filter(|_| failures > 0) else {
        return false;
    };
    let doublings = u32::try_from(failures - 1).unwrap_or(u32::MAX);
    let pause = FIRST_RETRY.saturating_mul(2_u64.saturating_pow(doublings)).min(LAST_RETRY);
    let left = record.since.plus(pause).left(situation.now);
    if left > 0 {
        let what = format!("the NAT gateway of {zone} is created again later");
        let look = Query::NatGateways(home.scope());
        plan.wait(Part::NatGateways, what, left, look);
    }
    left > 0
}

/// Plans the end of gateways that the policy no longer wants. A route that a read has not shown to
/// lead elsewhere keeps a gateway alive.
pub(crate) fn retire(situation: &Situation<'_>, home: &Home<'_>, nats: &Nats<'_>, plan: &mut Plan) {
    let observed = situation.observed;
    let look = || Query::RouteTables(home.scope());
    let is_surplus = |found: &&NatGateway| !found.is_gone() && !nats.keeps(&found.id);
    let (ending, surplus): (Vec<_>, Vec<_>) = ours(situation, home)
        .filter(is_surplus)
        .partition(|found| found.state == NatState::Deleting);
    for found in ending {
        let look = Query::NatGateways(home.scope());
        plan.wait(Part::NatGateways, format!("{} is being deleted", found.id), RECHECK, look);
    }
    if surplus.is_empty() || plan.is_busy(Part::RouteTables) {
        return;
    }
    if !observed.route_tables.is_as_read() {
        plan.read(look());
        return;
    }
    let is_used = |found: &NatGateway| {
        let target = crate::resources::Target::NatGateway(found.id.clone());
        let mut routes = observed.route_tables.all().iter().flat_map(|table| &table.routes);
        routes.any(|route| route.target == target)
    };
    for found in surplus {
        if is_used(found) {
            // Routes of ours lead elsewhere by now, so only somebody else changes these.
            let what = format!("routes of other subnets lead to {}", found.id);
            plan.wait(Part::NatGateways, what, FOR_ANOTHER, look());
        } else {
            let delete = Action::DeleteNatGateway { nat_gateway: found.id.clone() };
            plan.act(Part::NatGateways, delete);
        }
    }
}
