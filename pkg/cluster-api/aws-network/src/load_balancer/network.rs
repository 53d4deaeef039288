//! The network load balancer, its target group and its listener. All names are fixed, so that none
//! is lost.

use super::both_kinds::{Input, Site, as_set};
use crate::action::{Action, ElbV2Action};
use crate::desired::INSTANCE_PORT;
use crate::identity::Tags;
use crate::load_balancers::{BalancerState, NetworkListener, NetworkLoadBalancer, TargetGroup};
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, RECHECK, Reason};
use crate::query::Query;

pub(super) fn plan(input: &Input<'_>, plan: &mut Plan) {
    let Input { situation, wanted, site, .. } = input;
    let look = Query::NetworkLoadBalancers(input.lookup());
    let (Some(balancers), Some(_)) =
        (situation.observed.network.get(), situation.observed.target_groups.get())
    else {
        plan.read(look);
        return;
    };
    let Some(found) = balancers.iter().find(|found| found.name == wanted.name) else {
        let may_be_made = input.may_be_made(plan);
        if let Some(site) = site.as_ref().filter(|_| may_be_made) {
            situation.create(
                Part::LoadBalancer,
                create(input, site),
                &situation.observed.network,
                plan,
            );
            target_group(input, None, plan);
        }
        return;
    };
    let recorded = situation.memory.id(&LogicalId::LoadBalancer) == Some(found.arn.as_str());
    let ownership = situation.identity().ownership(&found.tags, recorded);
    if !input.is_ours(&found.vpc, ownership, plan) {
        return;
    }
    repair(input, found, plan);
    adopt_groups(input, found, plan);
    if port_is_taken(input, found, plan) {
        return;
    }
    if let Some(group) = target_group(input, Some(found), plan) {
        listeners(input, found, group, plan);
        repair_target_group(input, group, plan);
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
    input.await_name(&found.dns_name, look, plan);
}

fn act(action: ElbV2Action, plan: &mut Plan) {
    plan.act(Part::LoadBalancer, Action::ElbV2(action));
}

fn create(input: &Input<'_>, site: &Site) -> Action {
    let Site { vpc, subnets, groups } = site.clone();
    let (name, scheme, tags) = (input.wanted.name.clone(), input.wanted.scheme, input.tags());
    Action::ElbV2(ElbV2Action::Create { vpc, name, scheme, subnets, groups, tags })
}

fn repair(input: &Input<'_>, found: &NetworkLoadBalancer, plan: &mut Plan) {
    let wanted = input.wanted;
    input.check_scheme(found.scheme, plan);
    repair_tags(input, &found.arn, &found.tags, plan);
    let load_balancer = || found.arn.clone();
    if found.cross_zone.is_some_and(|enabled| enabled != wanted.cross_zone) {
        let enabled = wanted.cross_zone;
        act(ElbV2Action::SetCrossZone { load_balancer: load_balancer(), enabled }, plan);
    }
    let Some(site) = &input.site else { return };
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

fn repair_tags(input: &Input<'_>, arn: &str, present: &Tags, plan: &mut Plan) {
    let (tags, keys) = input.tag_drift(present);
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
    input: &Input<'a>,
    balancer: Option<&NetworkLoadBalancer>,
    plan: &mut Plan,
) -> Option<&'a TargetGroup> {
    let (situation, wanted) = (input.situation, input.wanted);
    let groups = &situation.observed.target_groups;
    let in_use = balancer.and_then(|balancer| listener_on(balancer, wanted.port));
    let used = in_use.and_then(|listener| groups.of_id(&listener.target_group));
    let used = used.filter(|group| is_our_group(input, group));
    let of_our_name = || groups.all().iter().find(|group| group.name == wanted.name);
    if let Some(group) = used.or_else(of_our_name) {
        if is_our_group(input, group) {
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
        vpc: input.home.id.to_owned(),
        name: wanted.name.clone(),
        port: INSTANCE_PORT,
        check: wanted.health_check.clone(),
        tags: input.tags(),
    });
    situation.create(Part::LoadBalancer, create, groups, plan);
    None
}

fn listener_on(balancer: &NetworkLoadBalancer, port: u16) -> Option<&NetworkListener> {
    balancer.listeners.iter().find(|listener| listener.port == port)
}

/// Listeners that lead to our target group are ours, others stay as they are
/// (`rule:settings-of-others-stay`).
fn listeners(input: &Input<'_>, found: &NetworkLoadBalancer, group: &TargetGroup, plan: &mut Plan) {
    let port = input.wanted.port;
    if listener_on(found, port).is_none() {
        let (load_balancer, target_group) = (found.arn.clone(), group.arn.clone());
        act(ElbV2Action::CreateListener { load_balancer, port, target_group }, plan);
        return;
    }
    let is_surplus = |listener: &&NetworkListener| {
        listener.port != port
            && listener.target_group == group.arn
            && input.situation.identity().marks(&group.tags)
    };
    for listener in found.listeners.iter().filter(is_surplus) {
        act(ElbV2Action::DeleteListener { listener: listener.arn.clone() }, plan);
    }
}

/// Whether a listener of others has our port; then that is the problem.
fn port_is_taken(input: &Input<'_>, found: &NetworkLoadBalancer, plan: &mut Plan) -> bool {
    let Some(listener) = listener_on(found, input.wanted.port) else { return false };
    let group = input.situation.observed.target_groups.of_id(&listener.target_group);
    let leads_to_ours = group.is_some_and(|group| is_our_group(input, group));
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

fn is_our_group(input: &Input<'_>, group: &TargetGroup) -> bool {
    input.situation.is_ours(&group.tags, &group.arn, &LogicalId::TargetGroup)
        && group.vpc == input.home.id
}

/// Target groups of upstream's additional listeners are kept as they are, and end with the cluster.
fn adopt_groups(input: &Input<'_>, found: &NetworkLoadBalancer, plan: &mut Plan) {
    let identity = input.situation.identity();
    let is_behind = |group: &&TargetGroup| {
        found.listeners.iter().any(|listener| listener.target_group == group.arn)
    };
    let groups = input.situation.observed.target_groups.all().iter().filter(is_behind);
    let unmarked =
        groups.filter(|group| is_our_group(input, group) && !identity.marks(&group.tags));
    let arns: Vec<_> = unmarked.map(|group| group.arn.clone()).collect();
    if !arns.is_empty() {
        let tags = Tags::from([(identity.owner_tag.clone(), identity.owner_id.clone())]);
        act(ElbV2Action::AddTags { arns, tags }, plan);
    }
}

fn repair_target_group(input: &Input<'_>, group: &TargetGroup, plan: &mut Plan) {
    let wanted = input.wanted;
    repair_tags(input, &group.arn, &group.tags, plan);
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
