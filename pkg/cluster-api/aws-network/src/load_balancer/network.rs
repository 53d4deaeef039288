//! The network load balancer, its target group and its listener. All names are fixed, so that none
//! is lost.

use super::both_kinds::{Site, as_set, await_name, check_scheme, is_ours, lookup, may_be_made};
use crate::action::{Action, ElbV2Action};
use crate::desired::{DesiredLoadBalancer, INSTANCE_PORT};
use crate::identity::Tags;
use crate::load_balancers::{BalancerState, NetworkListener, NetworkLoadBalancer, TargetGroup};
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, RECHECK, Reason, Situation};
use crate::query::Query;
use crate::tags::difference;
use crate::vpc::Home;

pub(super) fn plan(
    situation: &Situation<'_>,
    home: &Home<'_>,
    wanted: &DesiredLoadBalancer,
    site: Option<&Site>,
    plan: &mut Plan,
) {
    let look = Query::NetworkLoadBalancers(lookup(wanted));
    let (Some(balancers), Some(_)) =
        (situation.observed.network.get(), situation.observed.target_groups.get())
    else {
        plan.read(look);
        return;
    };
    let Some(found) = balancers.iter().find(|found| found.name == wanted.name) else {
        let may_be_made = may_be_made(situation, wanted, plan);
        if let Some(site) = site.filter(|_| may_be_made) {
            let seen_at = situation.observed.network.read_at();
            situation.create(Part::LoadBalancer, create(situation, wanted, site), seen_at, plan);
            target_group(situation, home, wanted, None, plan);
        }
        return;
    };
    let recorded = situation.memory.id(&LogicalId::LoadBalancer) == Some(found.arn.as_str());
    let ownership = situation.identity().ownership(&found.tags, recorded);
    if !is_ours(situation, home, &wanted.name, &found.vpc, ownership, plan) {
        return;
    }
    repair(situation, wanted, found, site, plan);
    adopt_groups(situation, home, found, plan);
    if port_is_taken(situation, home, wanted, found, plan) {
        return;
    }
    if let Some(group) = target_group(situation, home, wanted, Some(found), plan) {
        listeners(situation, wanted, found, group, plan);
        repair_target_group(situation, wanted, group, plan);
        if situation.deep && (found.cross_zone.is_none() || group.preserve_client_ip.is_none()) {
            let (load_balancer, target_group) = (found.arn.clone(), group.arn.clone());
            plan.read(Query::NetworkAttributes { load_balancer, target_group });
        }
    }
    match found.state {
        BalancerState::Active => {}
        BalancerState::Provisioning => {
            let what = format!("load balancer {} is being provisioned", wanted.name);
            plan.wait(Part::LoadBalancer, what, RECHECK, look.clone());
        }
        BalancerState::Failed => {
            let message = format!(
                "AWS could not create load balancer {} and does not try again: delete it, and \
                 set the annotation aws.cluster.x-k8s.io/allow-lb-recreate=true if its name is \
                 published",
                wanted.name
            );
            plan.problem(Part::LoadBalancer, Reason::LoadBalancerFailed, message);
        }
    }
    await_name(wanted, &found.dns_name, look, plan);
}

fn act(action: ElbV2Action, plan: &mut Plan) {
    plan.act(Part::LoadBalancer, Action::ElbV2(action));
}

fn create(situation: &Situation<'_>, wanted: &DesiredLoadBalancer, site: &Site) -> Action {
    Action::ElbV2(ElbV2Action::Create {
        vpc: site.vpc.clone(),
        name: wanted.name.clone(),
        scheme: wanted.scheme,
        subnets: site.subnets.clone(),
        groups: site.groups.clone(),
        tags: situation.desired.load_balancer_tags(&wanted.name),
    })
}

fn repair(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    found: &NetworkLoadBalancer,
    site: Option<&Site>,
    plan: &mut Plan,
) {
    check_scheme(wanted, found.scheme, plan);
    repair_tags(situation, wanted, &found.arn, &found.tags, plan);
    let load_balancer = || found.arn.clone();
    if found.cross_zone.is_some_and(|enabled| enabled != wanted.cross_zone) {
        let enabled = wanted.cross_zone;
        act(ElbV2Action::SetCrossZone { load_balancer: load_balancer(), enabled }, plan);
    }
    let Some(site) = site else { return };
    if as_set(&found.subnets) != as_set(&site.subnets) {
        let subnets = site.subnets.clone();
        act(ElbV2Action::SetSubnets { load_balancer: load_balancer(), subnets }, plan);
    }
    if found.groups.is_empty() {
        let message = format!(
            "load balancer {} was created without security groups, and AWS cannot add them \
             later: security groups and ingress rules of spec.controlPlaneLoadBalancer have no \
             effect until it is replaced",
            wanted.name
        );
        plan.problem(Part::LoadBalancer, Reason::NoSecurityGroups, message);
    } else if as_set(&found.groups) != as_set(&site.groups) {
        let groups = site.groups.clone();
        act(ElbV2Action::SetGroups { load_balancer: load_balancer(), groups }, plan);
    }
}

fn repair_tags(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    arn: &str,
    present: &Tags,
    plan: &mut Plan,
) {
    let tags = situation.desired.load_balancer_tags(&wanted.name);
    let (tags, keys) = difference(present, &tags, &situation.desired.retired_tags);
    let arns = || vec![arn.to_owned()];
    if !tags.is_empty() {
        act(ElbV2Action::AddTags { arns: arns(), tags }, plan);
    }
    if !keys.is_empty() {
        act(ElbV2Action::RemoveTags { arns: arns(), keys }, plan);
    }
}

/// The target group: the one that our listener leads to (upstream's has a name of its own), else
/// the one of our name.
fn target_group<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    wanted: &DesiredLoadBalancer,
    balancer: Option<&NetworkLoadBalancer>,
    plan: &mut Plan,
) -> Option<&'a TargetGroup> {
    let groups = situation.observed.target_groups.all();
    let is_ours = |group: &&TargetGroup| is_our_group(situation, home, group);
    let listeners = balancer.map(|balancer| balancer.listeners.as_slice()).unwrap_or_default();
    let in_use = listeners.iter().find(|listener| listener.port == wanted.port);
    let used = in_use.and_then(|listener| {
        groups.iter().filter(is_ours).find(|group| group.arn == listener.target_group)
    });
    if let Some(group) = used.or_else(|| groups.iter().find(|group| group.name == wanted.name)) {
        if is_ours(&group) {
            return Some(group);
        }
        let message = format!(
            "a target group that does not belong to this cluster has the name {}",
            wanted.name
        );
        plan.problem(Part::LoadBalancer, Reason::OwnershipConflict, message);
        return None;
    }
    let create = Action::ElbV2(ElbV2Action::CreateTargetGroup {
        vpc: home.id.to_owned(),
        name: wanted.name.clone(),
        port: INSTANCE_PORT,
        check: wanted.health_check.clone(),
        tags: situation.desired.load_balancer_tags(&wanted.name),
    });
    let seen_at = situation.observed.target_groups.read_at();
    situation.create(Part::LoadBalancer, create, seen_at, plan);
    None
}

/// Listeners that lead to our target group are ours, others stay as they are
/// (`rule:settings-of-others-stay`).
fn listeners(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    found: &NetworkLoadBalancer,
    group: &TargetGroup,
    plan: &mut Plan,
) {
    if found.listeners.iter().all(|listener| listener.port != wanted.port) {
        let (load_balancer, port) = (found.arn.clone(), wanted.port);
        let target_group = group.arn.clone();
        act(ElbV2Action::CreateListener { load_balancer, port, target_group }, plan);
        return;
    }
    let is_surplus = |listener: &&NetworkListener| {
        listener.port != wanted.port
            && listener.target_group == group.arn
            && situation.identity().marks(&group.tags)
    };
    for listener in found.listeners.iter().filter(is_surplus) {
        act(ElbV2Action::DeleteListener { listener: listener.arn.clone() }, plan);
    }
}

/// Whether a listener of others has our port; then that is the problem.
fn port_is_taken(
    situation: &Situation<'_>,
    home: &Home<'_>,
    wanted: &DesiredLoadBalancer,
    found: &NetworkLoadBalancer,
    plan: &mut Plan,
) -> bool {
    let Some(listener) = found.listeners.iter().find(|listener| listener.port == wanted.port)
    else {
        return false;
    };
    let mut groups = situation.observed.target_groups.all().iter();
    let leads_to_ours = groups
        .any(|group| group.arn == listener.target_group && is_our_group(situation, home, group));
    if !leads_to_ours {
        let NetworkListener { arn, port, target_group } = listener;
        let message = format!(
            "port {port} is used by {arn}, which forwards to {target_group} and does not belong \
             to this cluster"
        );
        plan.problem(Part::LoadBalancer, Reason::OwnershipConflict, message);
    }
    !leads_to_ours
}

fn is_our_group(situation: &Situation<'_>, home: &Home<'_>, group: &TargetGroup) -> bool {
    situation.is_ours(&group.tags, &group.arn, &LogicalId::TargetGroup) && group.vpc == home.id
}

/// Target groups of upstream's additional listeners are kept as they are, and end with the cluster.
fn adopt_groups(
    situation: &Situation<'_>,
    home: &Home<'_>,
    found: &NetworkLoadBalancer,
    plan: &mut Plan,
) {
    let identity = situation.identity();
    let is_behind = |group: &&TargetGroup| {
        found.listeners.iter().any(|listener| listener.target_group == group.arn)
    };
    let groups = situation.observed.target_groups.all().iter().filter(is_behind);
    let unmarked =
        groups.filter(|group| is_our_group(situation, home, group) && !identity.marks(&group.tags));
    let arns: Vec<_> = unmarked.map(|group| group.arn.clone()).collect();
    if !arns.is_empty() {
        let tags = Tags::from([(identity.owner_tag.clone(), identity.owner_id.clone())]);
        act(ElbV2Action::AddTags { arns, tags }, plan);
    }
}

fn repair_target_group(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    group: &TargetGroup,
    plan: &mut Plan,
) {
    repair_tags(situation, wanted, &group.arn, &group.tags, plan);
    let target_group = || group.arn.clone();
    if group.health_check != wanted.health_check {
        let check = wanted.health_check.clone();
        act(ElbV2Action::ConfigureHealthCheck { target_group: target_group(), check }, plan);
    }
    if group.preserve_client_ip.is_some_and(|enabled| enabled != wanted.preserve_client_ip) {
        let enabled = wanted.preserve_client_ip;
        act(ElbV2Action::SetPreserveClientIp { target_group: target_group(), enabled }, plan);
    }
}
