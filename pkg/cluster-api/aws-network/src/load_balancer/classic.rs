//! The classic load balancer. A crash may leave it without health check and time limit, so all of
//! it is compared.

use super::both_kinds::{Input, Site, as_set};
use crate::action::{Action, ElbAction};
use crate::desired::{DesiredLoadBalancer, INSTANCE_PORT};
use crate::load_balancers::{ClassicAttributes, ClassicListener, ClassicLoadBalancer};
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, Situation};
use crate::query::{Lookup, Query};

/// Upstream's limit for idle connections, in seconds: watches are quiet for minutes.
const IDLE_TIMEOUT: u32 = 600;

pub(crate) fn lookup(wanted: &DesiredLoadBalancer) -> Lookup {
    Lookup { names: vec![wanted.name.clone()], vpc: None }
}

pub(super) fn plan(input: &Input<'_>, plan: &mut Plan) {
    let Input { situation, home, wanted, site, .. } = input;
    let look = Query::ClassicLoadBalancers(lookup(wanted));
    if situation.observed.classic.get().is_none() {
        plan.read(look);
        return;
    }
    let Some(found) = situation.observed.classic.of_id(&wanted.name) else {
        if input.may_be_made(plan)
            && let Some(site) = site
        {
            situation.create(
                Part::LoadBalancer,
                create(input, site),
                &situation.observed.classic,
                plan,
            );
        }
        return;
    };
    let is_recorded = situation.memory.id(&LogicalId::LoadBalancer) == Some(wanted.name.as_str());
    let Some(tags) = found.tags.as_ref().filter(|_| !situation.deep || found.attributes.is_some())
    else {
        // A recorded name proves nothing: it may be another load balancer by now.
        if situation.deep || !is_recorded || found.vpc != home.id {
            plan.read(Query::ClassicTags(vec![wanted.name.clone()]));
            plan.read(Query::ClassicAttributes(wanted.name.clone()));
            return;
        }
        repair(input, found, plan);
        input.await_name(&found.dns_name, look, plan);
        return;
    };
    if input.is_ours(&found.vpc, tags, &wanted.name, plan) {
        let (tags, keys) = input.tag_drift(tags);
        if !tags.is_empty() {
            act(ElbAction::AddTags { name: wanted.name.clone(), tags }, plan);
        }
        if !keys.is_empty() {
            act(ElbAction::RemoveTags { name: wanted.name.clone(), keys }, plan);
        }
        repair(input, found, plan);
        input.await_name(&found.dns_name, look, plan);
    }
}

fn act(action: ElbAction, plan: &mut Plan) {
    plan.act(Part::LoadBalancer, Action::Elb(action));
}

fn listener(wanted: &DesiredLoadBalancer) -> ClassicListener {
    ClassicListener { port: wanted.port, instance_port: INSTANCE_PORT, tcp: true }
}

fn create(input: &Input<'_>, site: &Site) -> Action {
    let Site { vpc, subnets, groups, .. } = site.clone();
    Action::Elb(ElbAction::Create {
        vpc,
        name: input.wanted.name.clone(),
        scheme: input.wanted.scheme,
        listeners: vec![listener(input.wanted)],
        subnets,
        groups,
        tags: input.tags(),
    })
}

fn repair(input: &Input<'_>, found: &ClassicLoadBalancer, plan: &mut Plan) {
    let wanted = input.wanted;
    input.check_scheme(found.scheme, plan);
    repair_listeners(wanted, found, plan);
    let name = || wanted.name.clone();
    if found.health_check != wanted.health_check {
        let check = wanted.health_check.clone();
        act(ElbAction::ConfigureHealthCheck { name: name(), check }, plan);
    }
    let attributes =
        ClassicAttributes { idle_timeout: IDLE_TIMEOUT, cross_zone: wanted.cross_zone };
    if found.attributes.as_ref().is_some_and(|found| *found != attributes) {
        act(ElbAction::ModifyAttributes { name: name(), attributes }, plan);
    }
    if let Some(site) = &input.site {
        repair_subnets(input.situation, found, site, plan);
        if as_set(&found.groups) != as_set(&site.groups) {
            let groups = site.groups.clone();
            act(ElbAction::ApplyGroups { name: name(), groups }, plan);
        }
    }
}

/// A port has one listener, so one that leads elsewhere goes before ours comes. On other ports
/// those that lead to the API server are ours and go after it; others stay
/// (`rule:settings-of-others-stay`).
fn repair_listeners(wanted: &DesiredLoadBalancer, found: &ClassicLoadBalancer, plan: &mut Plan) {
    let ours = listener(wanted);
    let has_ours = found.listeners.contains(&ours);
    let is_surplus = |other: &&ClassicListener| {
        let leads_to_api = other.tcp && other.instance_port == INSTANCE_PORT;
        **other != ours && (other.port == ours.port || (has_ours && leads_to_api))
    };
    let ports: Vec<_> = found.listeners.iter().filter(is_surplus).map(|other| other.port).collect();
    let name = wanted.name.clone();
    if !ports.is_empty() {
        act(ElbAction::DeleteListeners { name, ports }, plan);
    } else if !has_ours {
        act(ElbAction::CreateListeners { name, listeners: vec![ours] }, plan);
    }
}

/// Subnets come before others go, so that the load balancer is never without one; but it has one in
/// a zone at most, so one that is in the way goes first.
fn repair_subnets(
    situation: &Situation<'_>,
    found: &ClassicLoadBalancer,
    site: &Site,
    plan: &mut Plan,
) {
    let known = &situation.observed.subnets;
    let zone = |id: &String| known.of_id(id).map(|subnet| &subnet.zone);
    let (have, want) = (as_set(&found.subnets), as_set(&site.subnets));
    let missing: Vec<_> = want.difference(&have).map(|id| (*id).clone()).collect();
    let surplus: Vec<_> = have.difference(&want).map(|id| (*id).clone()).collect();
    let is_in_the_way = |id: &&String| missing.iter().any(|missing| zone(missing) == zone(id));
    let in_the_way: Vec<_> = surplus.iter().filter(is_in_the_way).cloned().collect();
    let name = found.name.clone();
    if !in_the_way.is_empty() {
        act(ElbAction::DetachSubnets { name, subnets: in_the_way }, plan);
    } else if !missing.is_empty() {
        act(ElbAction::AttachSubnets { name, subnets: missing }, plan);
    } else if !surplus.is_empty() {
        act(ElbAction::DetachSubnets { name, subnets: surplus }, plan);
    }
}
