//! The plan for a cluster that shall exist, put together from its parts. What a part needs of
//! another is passed on, so the order here is the order in which things can be made; everything
//! that can be made is planned at once.

use crate::desired::Desired;
use crate::memory::{LogicalId, Memory};
use crate::observed::Observed;
use crate::plan::{Part, Plan, Planned, Situation};
use crate::query::{Query, Scope};
use crate::spec::LoadBalancerKind;
use crate::{
    addresses, bastion, gateways, load_balancer, nat_gateways, route_tables, security_groups,
    subnets, vpc,
};

/// Plans the next writes, reads and waits of a cluster that shall exist.
///
/// A pure function: the same arguments give the same plan. What it plans is carried out, taken in
/// ([`Observed::fold`], [`Observed::take_in`]) and planned on.
pub(crate) fn plan(situation: &Situation<'_>) -> Plan {
    let mut plan = Plan::default();
    if *situation.observed == Observed::default() {
        plan.reads = first_reads(situation.desired, situation.observed, situation.memory);
        return plan;
    }
    let Some(home) = vpc::plan(situation, &mut plan) else { return with_tags(situation, plan) };
    let mut gateways = gateways::plan(situation, &home, &mut plan);
    let groups = security_groups::plan(situation, &home, &mut plan);
    let Some(subnets) = subnets::plan(situation, &home, &mut plan) else {
        return with_tags(situation, plan);
    };
    gateways.carrier = gateways::plan_carrier(situation, &home, &subnets, &mut plan);
    load_balancer::plan(situation, &home, &subnets, gateways.internet, &groups, &mut plan);
    if home.is_managed {
        bastion::plan(situation, &home, &subnets, &groups, &mut plan);
        security_groups::discard_bastion_group(situation, &home, &mut plan);
        let nats = nat_gateways::plan(situation, &home, &subnets, gateways.internet, &mut plan);
        route_tables::plan(situation, &home, &subnets, gateways, nats.as_ref(), &mut plan);
        if let Some(nats) = &nats {
            nat_gateways::retire(situation, &home, nats, &mut plan);
            addresses::settle(situation, &|zone| nats.lacks(zone), &mut plan);
            route_tables::await_exits(&subnets, nats, &mut plan);
        } else if situation.desired.nat_in_effect(situation.memory).is_none() {
            route_tables::report_closed(situation, &subnets, &mut plan);
        }
    }
    with_tags(situation, plan)
}

/// Corrections of tags are the last: what they are about may be deleted in this very plan. While
/// something adopted lacks our owner id, nothing else is written
/// (`rule:adoption-begins-with-the-owner-id`).
fn with_tags(situation: &Situation<'_>, mut plan: Plan) -> Plan {
    for action in plan.tags.actions() {
        plan.act(Part::Vpc, action);
    }
    let identity = situation.identity();
    let marks = |planned: &Planned| planned.action.sets_tag(&identity.owner_tag);
    if identity.adopt && plan.actions.iter().any(marks) {
        plan.actions.retain(marks);
    }
    plan
}

/// Everything that can be asked for without having read anything, so that it is asked for at once.
fn first_reads(desired: &Desired, observed: &Observed, memory: &Memory) -> Vec<Query> {
    let mut reads = match &desired.vpc_id {
        Some(id) => vec![Query::Vpc(id.clone())],
        None => vec![Query::TaggedVpcs],
    };
    let recorded = memory.id(&LogicalId::Vpc).filter(|_| desired.vpc_id.is_none());
    if let Some(vpc) = recorded {
        let scope = || Scope::Vpc(vpc.to_owned());
        reads.extend([
            Query::Subnets(scope()),
            Query::InternetGateways(Scope::Tagged),
            Query::Addresses,
        ]);
        reads.extend([Query::NatGateways(scope()), Query::RouteTables(scope())]);
        reads.push(Query::SecurityGroups(scope()));
        reads.extend(desired.ipv6.then(|| Query::EgressOnlyGateways(scope())));
        let has_carrier = desired.has_carrier_gateway(observed);
        reads.extend(has_carrier.then(|| Query::CarrierGateways(scope())));
        reads.extend(desired.bastion.as_ref().map(|_| Query::bastion(memory)));
    }
    reads.extend(desired.load_balancers().map(|it| load_balancer::query(desired, memory, it)));
    reads.dedup();
    reads
}

/// Whether what only a deep look shows was seen, or written, and is right.
pub(crate) fn is_deeply_known(desired: &Desired, observed: &Observed) -> bool {
    let vpcs = observed.vpcs.all().iter();
    let managed = vpcs
        .filter(|vpc| desired.identity.owns(&vpc.tags))
        .all(|vpc| vpc.dns_support == Some(true) && vpc.dns_hostnames == Some(true));
    managed
        && desired.load_balancers().all(|wanted| match wanted.kind {
            LoadBalancerKind::Classic => {
                let found = observed.classic.of_id(&wanted.name);
                found.is_some_and(|found| found.attributes.is_some() && found.tags.is_some())
            }
            LoadBalancerKind::Network => load_balancer::is_deeply_known(desired, wanted, observed),
        })
}
