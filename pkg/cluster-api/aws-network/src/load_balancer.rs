//! The plan of the load balancers of the API server: their kind and their subnets.

use std::collections::BTreeSet;

use both_kinds::{Input, Site};

use crate::desired::{Desired, DesiredLoadBalancer, NEEDS_REGULAR};
use crate::load_balancers::Scheme;
use crate::memory::Memory;
use crate::plan::{Part, Plan, Reason, Situation};
use crate::query::Query;
use crate::rule::Role;
use crate::security_groups::Groups;
use crate::spec::LoadBalancerKind;
use crate::subnets::{Placed, Subnets};
use crate::vpc::Home;

mod both_kinds;
mod classic;
mod listeners;
mod network;

pub(crate) use network::is_deeply_known;

/// The query for a load balancer.
pub(crate) fn query(desired: &Desired, memory: &Memory, wanted: &DesiredLoadBalancer) -> Query {
    match wanted.kind {
        LoadBalancerKind::Classic => Query::ClassicLoadBalancers(classic::lookup(wanted)),
        LoadBalancerKind::Network => Query::NetworkLoadBalancers(network::lookup(desired, memory)),
    }
}

/// Plans the load balancers.
pub(crate) fn plan(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    gateway: Option<&str>,
    groups: &Groups,
    plan: &mut Plan,
) {
    for wanted in situation.desired.load_balancers() {
        let faces_internet = wanted.scheme == Scheme::InternetFacing;
        let is_reachable = gateway.is_some() || !faces_internet || !home.is_managed;
        let site = site(wanted, home, subnets, groups, plan).filter(|_| is_reachable);
        let (part, reaches_ipv6) =
            (Part::of_load_balancer(wanted.rank), reaches_ipv6(situation, home, subnets));
        let input = Input { part, situation, home, wanted, site, reaches_ipv6 };
        match wanted.kind {
            LoadBalancerKind::Classic => classic::plan(&input, plan),
            LoadBalancerKind::Network => network::plan(&input, plan),
        }
    }
}

fn site(
    wanted: &DesiredLoadBalancer,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    groups: &Groups,
    plan: &mut Plan,
) -> Option<Site> {
    let group = groups.get(&Role::ApiServerLb)?;
    if !subnets.are_complete {
        return None;
    }
    let chosen = if wanted.subnets.is_empty() {
        first_of_each_zone(wanted.scheme, subnets)
    } else {
        named(wanted, subnets, plan)?
    };
    let mut all = vec![group.clone()];
    all.extend(wanted.additional_groups.iter().cloned());
    all.retain(|_| wanted.takes_groups);
    let mut of_balancer = subnets.placed.iter().filter(|it| chosen.iter().any(|id| id == it.id));
    let has_ipv6 = of_balancer.all(|subnet| subnet.ipv6);
    Some(Site { vpc: home.id.to_owned(), subnets: chosen, has_ipv6, groups: all })
}

/// Whether each subnet has IPv6. In a network of ours the spec tells before all of them exist: the
/// target groups keep what they are created with.
fn reaches_ipv6(situation: &Situation<'_>, home: &Home<'_>, subnets: &Subnets<'_>) -> bool {
    home.ipv6.is_some()
        && if home.is_managed {
            let wanted = situation.desired.subnets.iter();
            wanted.filter(|subnet| subnet.edge.is_none()).all(|subnet| subnet.ipv6.is_some())
        } else {
            subnets.regular().all(|subnet| subnet.ipv6)
        }
}

/// The first public subnet of each zone; private ones when it is internal, or when there are no
/// public ones.
fn first_of_each_zone(scheme: Scheme, subnets: &Subnets<'_>) -> Vec<String> {
    let of_kind = |public: bool| -> Vec<&Placed<'_>> {
        subnets.regular().filter(|subnet| subnet.public == public).collect()
    };
    let (first, second) = match scheme {
        Scheme::InternetFacing => (of_kind(true), of_kind(false)),
        Scheme::Internal => (of_kind(false), of_kind(true)),
    };
    let mut zones = BTreeSet::new();
    let candidates = if first.is_empty() { second } else { first };
    let of_new_zone = candidates.into_iter().filter(|subnet| zones.insert(subnet.zone));
    of_new_zone.map(|subnet| subnet.id.to_owned()).collect()
}

fn named(
    wanted: &DesiredLoadBalancer,
    subnets: &Subnets<'_>,
    plan: &mut Plan,
) -> Option<Vec<String>> {
    let find = |text: &String| {
        let is_it = |subnet: &&Placed<'_>| subnet.id == text || subnet.name == Some(text);
        let found = subnets.placed.iter().find(is_it);
        let found = found.ok_or_else(|| {
            format!("subnet {text:?} of the load balancer is not one of spec.network.subnets")
        })?;
        if found.edge.is_some() {
            let (rank, zone) = (wanted.rank.path(), found.zone);
            return Err(format!("{rank}.subnets: {text} is in {zone}: {NEEDS_REGULAR}"));
        }
        Ok(found.id.to_owned())
    };
    match wanted.subnets.iter().map(find).collect::<Result<Vec<_>, String>>() {
        Ok(ids) => Some(ids),
        Err(message) => {
            plan.problem(
                Part::of_load_balancer(wanted.rank),
                Reason::InvalidConfiguration,
                message,
            );
            None
        }
    }
}
