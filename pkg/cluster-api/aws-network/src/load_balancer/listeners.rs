//! The listeners of a network load balancer, and their target groups. All names are fixed, so that
//! none is lost.

use super::both_kinds::Input;
use crate::action::{Action, ElbV2Action};
use crate::desired::{DesiredListener, Rank};
use crate::identity::Tags;
use crate::load_balancers::{NetworkListener, NetworkLoadBalancer, TargetAttributes, TargetGroup};
use crate::memory::LogicalId;
use crate::plan::{Plan, Reason};
use crate::query::Query;

/// Upstream's time until connections to an unhealthy target end, in seconds.
const DRAINING_INTERVAL: u32 = 300;

/// Plans the target groups of a load balancer that does not exist yet.
pub(super) fn make_target_groups(input: &Input<'_>, plan: &mut Plan) {
    for wanted in input.wanted.listeners() {
        target_group_of_name(input, &wanted, plan);
    }
}

/// Plans listeners and target groups. Whether a listener of others has the port of the API server,
/// which is a problem of its own.
pub(super) fn plan(input: &Input<'_>, found: &NetworkLoadBalancer, plan: &mut Plan) -> bool {
    adopt_groups(input, found, plan);
    let wanted = input.wanted.listeners();
    let mut used: Vec<&TargetGroup> = Vec::new();
    let mut api: Option<&TargetGroup> = None;
    for (number, listener) in wanted.iter().enumerate() {
        let is_of_api = number == 0;
        match keep(input, found, listener, &used, plan) {
            Kept::Group(group) => {
                used.push(group);
                api = api.or(Some(group).filter(|_| is_of_api));
            }
            Kept::Conflict if is_of_api => return true,
            Kept::Conflict | Kept::Nothing => {}
        }
    }
    delete_surplus(input, found, api, plan);
    let is_unknown = |group: &&TargetGroup| group.attributes.is_none();
    if input.situation.deep
        && api.is_some()
        && (found.cross_zone.is_none() || used.iter().any(is_unknown))
    {
        let target_groups = used.iter().map(|group| group.arn.clone()).collect();
        let load_balancer = found.arn.clone();
        plan.read(Query::NetworkAttributes { load_balancer, target_groups });
    }
    false
}

fn act(input: &Input<'_>, action: ElbV2Action, plan: &mut Plan) {
    plan.act(input.part, Action::ElbV2(action));
}

/// The target group of a listener that is kept.
enum Kept<'a> {
    Group(&'a TargetGroup),
    /// A listener or a target group of others is in the way.
    Conflict,
    /// It does not exist yet, or the listener leads elsewhere and is deleted first.
    Nothing,
}

/// Plans a listener: the one that is on the port (upstream's leads to a target group with a name of
/// its own), else one that leads to the target group of our name.
fn keep<'a>(
    input: &Input<'a>,
    found: &NetworkLoadBalancer,
    wanted: &DesiredListener,
    used: &[&TargetGroup],
    plan: &mut Plan,
) -> Kept<'a> {
    let on_port = listener_on(found, wanted.port);
    let group = match on_port {
        None => match target_group_of_name(input, wanted, plan) {
            Kept::Group(group) => group,
            nothing => return nothing,
        },
        Some(listener) => {
            let group = input.situation.observed.target_groups.of_id(&listener.target_group);
            let Some(group) = group.filter(|group| is_our_group(input, group)) else {
                report_taken(input, listener, plan);
                return Kept::Conflict;
            };
            let is_of_another = |other: &DesiredListener| {
                other.port != wanted.port && other.target_group == group.name
            };
            if used.iter().any(|other| other.arn == group.arn)
                || input.wanted.listeners().iter().any(is_of_another)
            {
                let listener = listener.arn.clone();
                act(input, ElbV2Action::DeleteListener { listener }, plan);
                return Kept::Nothing;
            }
            group
        }
    };
    match on_port {
        None => {
            let (load_balancer, target_group) = (found.arn.clone(), group.arn.clone());
            let (port, tags) = (wanted.port, input.tags());
            let create = ElbV2Action::CreateListener { load_balancer, port, target_group, tags };
            act(input, create, plan);
        }
        // By its tags ours is known once the spec does not name it any more. That of the API server
        // stays.
        Some(listener) if wanted.port != input.wanted.port => {
            input.repair_tags(&listener.arn, &listener.tags, plan);
        }
        Some(_) => {}
    }
    repair_target_group(input, wanted, group, plan);
    Kept::Group(group)
}

/// The target group of our name, which is created where it does not exist.
fn target_group_of_name<'a>(
    input: &Input<'a>,
    wanted: &DesiredListener,
    plan: &mut Plan,
) -> Kept<'a> {
    let (situation, name) = (input.situation, &wanted.target_group);
    let groups = &situation.observed.target_groups;
    match groups.all().iter().find(|group| group.name == *name) {
        Some(group) if is_our_group(input, group) => Kept::Group(group),
        Some(_) => {
            let message = format!(
                "cannot create target group {name}: another one with this name does not belong to \
                 this cluster; delete it"
            );
            plan.problem(input.part, Reason::OwnershipConflict, message);
            Kept::Conflict
        }
        None => {
            let create = Action::ElbV2(ElbV2Action::CreateTargetGroup {
                logical: logical_id(input, wanted),
                vpc: input.home.id.to_owned(),
                name: name.clone(),
                port: wanted.instance_port,
                ipv6: wanted.ipv6_targets.unwrap_or(input.reaches_ipv6)
                    && input.home.ipv6.is_some(),
                check: wanted.health_check.clone(),
                tags: input.tags(),
            });
            situation.create(input.part, create, groups, plan);
            Kept::Nothing
        }
    }
}

fn logical_id(input: &Input<'_>, wanted: &DesiredListener) -> LogicalId {
    if input.wanted.rank == Rank::Primary && wanted.port == input.wanted.port {
        LogicalId::TargetGroup
    } else {
        LogicalId::NamedTargetGroup(wanted.target_group.clone())
    }
}

fn listener_on(balancer: &NetworkLoadBalancer, port: u16) -> Option<&NetworkListener> {
    balancer.listeners.iter().find(|listener| listener.port == port)
}

/// A listener of others has a port of ours.
fn report_taken(input: &Input<'_>, listener: &NetworkListener, plan: &mut Plan) {
    let NetworkListener { arn, port, target_group, .. } = listener;
    let message = format!(
        "cannot listen on port {port}: {arn} has it, forwards to {target_group} and does not belong \
         to this cluster; delete that listener, or change the port in {}",
        input.wanted.rank.path()
    );
    plan.problem(input.part, Reason::OwnershipConflict, message);
}

fn is_our_group(input: &Input<'_>, group: &TargetGroup) -> bool {
    input.situation.owns(&group.tags, &group.arn) && group.vpc == input.home.id
}

/// Deletes listeners that the spec does not name any more: those that lead to the target group of
/// the API server, and those with our tags; others stay (`rule:settings-of-others-stay`). Then
/// deletes the target groups to which no listener leads.
fn delete_surplus(
    input: &Input<'_>,
    found: &NetworkLoadBalancer,
    api: Option<&TargetGroup>,
    plan: &mut Plan,
) {
    let (situation, identity) = (input.situation, input.situation.identity());
    let groups = &situation.observed.target_groups;
    let has_api = listener_on(found, input.wanted.port).is_some();
    let wanted = input.wanted.listeners();
    for listener in &found.listeners {
        let group = groups.of_id(&listener.target_group);
        let Some(group) = group.filter(|group| identity.marks(&group.tags)) else { continue };
        let leads_to_api = has_api && api.is_some_and(|api| api.arn == group.arn);
        let is_ours = leads_to_api || identity.marks(&listener.tags);
        if is_ours && wanted.iter().all(|wanted| wanted.port != listener.port) {
            let listener = listener.arn.clone();
            act(input, ElbV2Action::DeleteListener { listener }, plan);
        }
    }
    let names = situation.desired.target_group_names();
    let is_led_to = |group: &TargetGroup| {
        let balancers = situation.observed.network.all().iter();
        let mut listeners = balancers.flat_map(|balancer| &balancer.listeners);
        listeners.any(|listener| listener.target_group == group.arn)
    };
    for group in groups.all().iter().filter(|group| group.vpc == input.home.id) {
        if identity.marks(&group.tags) && !names.contains(&group.name) && !is_led_to(group) {
            let target_group = group.arn.clone();
            act(input, ElbV2Action::DeleteTargetGroup { target_group }, plan);
        }
    }
}

/// Target groups behind listeners that upstream made get our owner id, and end with the cluster.
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
        act(input, ElbV2Action::AddTags { arns, tags }, plan);
    }
}

fn repair_target_group(
    input: &Input<'_>,
    wanted: &DesiredListener,
    group: &TargetGroup,
    plan: &mut Plan,
) {
    input.repair_tags(&group.arn, &group.tags, plan);
    if wanted.ipv6_targets.is_some_and(|ipv6| ipv6 != group.is_ipv6) {
        let family = if group.is_ipv6 { "ipv6" } else { "ipv4" };
        let message = format!(
            "target group {} has the address type {family}, which cannot change: set \
             targetGroupIPType of port {} in {} to {family}",
            group.name,
            wanted.port,
            input.wanted.rank.path()
        );
        plan.problem(input.part, Reason::Immutable, message);
    }
    let target_group = || group.arn.clone();
    if group.health_check != wanted.health_check {
        let check = wanted.health_check.clone();
        let configure = ElbV2Action::ConfigureHealthCheck { target_group: target_group(), check };
        act(input, configure, plan);
    }
    let Some(present) = &group.attributes else { return };
    let preserve_client_ip = input.wanted.preserve_client_ip;
    let attributes = if is_new(present) {
        TargetAttributes {
            preserve_client_ip,
            terminates_connections: false,
            draining_interval: DRAINING_INTERVAL,
        }
    } else {
        TargetAttributes { preserve_client_ip, ..present.clone() }
    };
    // Clients are let in by their own addresses first.
    let opens =
        |planned: &crate::plan::Planned| matches!(planned.action, Action::AuthorizeIngress { .. });
    let is_too_early = preserve_client_ip && plan.actions.iter().any(opens);
    if *present != attributes && !is_too_early {
        let set = ElbV2Action::SetTargetAttributes { target_group: target_group(), attributes };
        act(input, set, plan);
    }
}

/// Whether unhealthy targets are treated as AWS treats those of a new target group. Other values are
/// a choice of the user, and stay.
fn is_new(present: &TargetAttributes) -> bool {
    let of_aws = TargetAttributes::OF_AWS;
    present.terminates_connections == of_aws.terminates_connections
        && present.draining_interval == of_aws.draining_interval
}
