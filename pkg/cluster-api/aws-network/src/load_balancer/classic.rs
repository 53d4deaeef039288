//! The classic load balancer. A crash may leave it without health check and time limit, so all of
//! it is compared.

use super::both_kinds::{Site, as_set, await_name, check_scheme, is_ours, lookup, may_be_made};
use crate::action::{Action, ElbAction};
use crate::desired::{DesiredLoadBalancer, INSTANCE_PORT};
use crate::load_balancers::{ClassicAttributes, ClassicListener, ClassicLoadBalancer};
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, Situation};
use crate::query::Query;
use crate::tags::difference;
use crate::vpc::Home;

/// Upstream's limit for idle connections, in seconds: watches are quiet for minutes.
const IDLE_TIMEOUT: u32 = 600;

pub(super) fn plan(
    situation: &Situation<'_>,
    home: &Home<'_>,
    wanted: &DesiredLoadBalancer,
    site: Option<&Site>,
    plan: &mut Plan,
) {
    let look = Query::ClassicLoadBalancers(lookup(wanted));
    let Some(all) = situation.observed.classic.get() else {
        plan.read(look);
        return;
    };
    let Some(found) = all.iter().find(|found| found.name == wanted.name) else {
        if may_be_made(situation, wanted, plan)
            && let Some(site) = site
        {
            let seen_at = situation.observed.classic.read_at();
            situation.create(Part::LoadBalancer, create(situation, wanted, site), seen_at, plan);
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
        repair(situation, wanted, found, site, plan);
        await_name(wanted, &found.dns_name, look, plan);
        return;
    };
    let ownership = situation.identity().ownership(tags, is_recorded);
    if is_ours(situation, home, &wanted.name, &found.vpc, ownership, plan) {
        repair_tags(situation, wanted, found, plan);
        repair(situation, wanted, found, site, plan);
        await_name(wanted, &found.dns_name, look, plan);
    }
}

fn act(action: ElbAction, plan: &mut Plan) {
    plan.act(Part::LoadBalancer, Action::Elb(action));
}

fn listener(wanted: &DesiredLoadBalancer) -> ClassicListener {
    ClassicListener { port: wanted.port, instance_port: INSTANCE_PORT, tcp: true }
}

fn create(situation: &Situation<'_>, wanted: &DesiredLoadBalancer, site: &Site) -> Action {
    Action::Elb(ElbAction::Create {
        vpc: site.vpc.clone(),
        name: wanted.name.clone(),
        scheme: wanted.scheme,
        listeners: vec![listener(wanted)],
        subnets: site.subnets.clone(),
        groups: site.groups.clone(),
        tags: situation.desired.load_balancer_tags(&wanted.name),
    })
}

fn repair_tags(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    found: &ClassicLoadBalancer,
    plan: &mut Plan,
) {
    let Some(present) = &found.tags else { return };
    let tags = situation.desired.load_balancer_tags(&wanted.name);
    let (tags, keys) = difference(present, &tags, &situation.desired.retired_tags);
    let name = || wanted.name.clone();
    if !tags.is_empty() {
        act(ElbAction::AddTags { name: name(), tags }, plan);
    }
    if !keys.is_empty() {
        act(ElbAction::RemoveTags { name: name(), keys }, plan);
    }
}

fn repair(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    found: &ClassicLoadBalancer,
    site: Option<&Site>,
    plan: &mut Plan,
) {
    check_scheme(wanted, found.scheme, plan);
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
    if let Some(site) = site {
        repair_subnets(situation, found, site, plan);
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
    let known = situation.observed.subnets.all();
    let zone =
        |id: &String| known.iter().find(|subnet| subnet.id == *id).map(|subnet| &subnet.zone);
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
