//! Writes to load balancers of both kinds, folded into what is known.

use crate::action::{ElbAction, ElbV2Action};
use crate::identity::Tags;
use crate::load_balancers::{
    BalancerState, ClassicAttributes, ClassicLoadBalancer, HealthCheck, NetworkListener,
    NetworkLoadBalancer, TargetAttributes, TargetGroup,
};
use crate::observed::Observed;
use crate::outcome::Answer;

/// The health check that AWS gives a classic load balancer created with one listener: a check of
/// the instance port by TCP, and 60 seconds for idle connections.
fn born_health_check(port: u16) -> HealthCheck {
    let (protocol, path) = ("TCP".to_owned(), None);
    HealthCheck { protocol, port, path, interval: 30, timeout: 5, healthy: 10, unhealthy: 2 }
}

pub(super) fn fold_classic(seen: &mut Observed, action: &ElbAction, answer: &Answer) {
    match action {
        ElbAction::Create { .. } => create_classic(seen, action.clone(), answer),
        ElbAction::Delete { name } => seen.classic.remove(name),
        change => edit_classic(seen, change),
    }
}

fn create_classic(seen: &mut Observed, action: ElbAction, answer: &Answer) {
    let ElbAction::Create { vpc, name, scheme, listeners, subnets, groups, tags } = action else {
        return;
    };
    let port = listeners.first().map_or(0, |listener| listener.instance_port);
    seen.classic.add(ClassicLoadBalancer {
        name,
        vpc,
        scheme,
        dns_name: answer.dns_name.clone().unwrap_or_default(),
        listeners,
        health_check: born_health_check(port),
        subnets,
        groups,
        attributes: Some(ClassicAttributes { idle_timeout: 60, cross_zone: false }),
        tags: Some(tags),
    });
}

fn edit_classic(seen: &mut Observed, action: &ElbAction) {
    seen.classic.edit(action.subject(), |found| match action {
        ElbAction::ConfigureHealthCheck { check, .. } => found.health_check = check.clone(),
        ElbAction::ModifyAttributes { attributes, .. } => {
            found.attributes = Some(attributes.clone());
        }
        ElbAction::AttachSubnets { subnets, .. } => found.subnets.extend_from_slice(subnets),
        ElbAction::DetachSubnets { subnets, .. } => {
            found.subnets.retain(|subnet| !subnets.contains(subnet));
        }
        ElbAction::ApplyGroups { groups, .. } => found.groups.clone_from(groups),
        ElbAction::CreateListeners { listeners, .. } => {
            found.listeners.extend_from_slice(listeners);
        }
        ElbAction::DeleteListeners { ports, .. } => {
            found.listeners.retain(|old| !ports.contains(&old.port));
        }
        ElbAction::AddTags { tags, .. } => {
            found.tags.get_or_insert_default().extend(tags.clone());
        }
        ElbAction::RemoveTags { keys, .. } => {
            found.tags.get_or_insert_default().retain(|key, _| !keys.contains(key));
        }
        ElbAction::Create { .. } | ElbAction::Delete { .. } => {}
    });
}

pub(super) fn fold_network(seen: &mut Observed, action: &ElbV2Action, answer: &Answer) {
    match action {
        ElbV2Action::Create { .. } => create_load_balancer(seen, action.clone(), answer),
        ElbV2Action::CreateTargetGroup { .. } => create_target_group(seen, action.clone(), answer),
        ElbV2Action::AddTags { arns, tags } => {
            edit_tags(seen, arns, |found| found.extend(tags.clone()));
        }
        ElbV2Action::RemoveTags { arns, keys } => {
            edit_tags(seen, arns, |found| found.retain(|key, _| !keys.contains(key)));
        }
        ElbV2Action::SetCrossZone { load_balancer, enabled } => {
            seen.network.edit(load_balancer, |found| found.cross_zone = Some(*enabled));
        }
        ElbV2Action::MakeDualstack { load_balancer } => {
            seen.network.edit(load_balancer, |found| found.is_dualstack = true);
        }
        ElbV2Action::SetSubnets { load_balancer, subnets } => {
            seen.network.edit(load_balancer, |found| found.subnets.clone_from(subnets));
        }
        ElbV2Action::SetGroups { load_balancer, groups } => {
            seen.network.edit(load_balancer, |found| found.groups.clone_from(groups));
        }
        ElbV2Action::CreateListener { load_balancer, port, target_group, tags } => {
            let (arn, target_group) = (answer.id.clone(), target_group.clone());
            let listener = NetworkListener { arn, port: *port, target_group, tags: tags.clone() };
            seen.network.edit(load_balancer, |found| found.listeners.push(listener));
        }
        ElbV2Action::DeleteListener { listener } => {
            let is_other = |old: &NetworkListener| old.arn != *listener;
            seen.network.edit_where(|_| true, |found| found.listeners.retain(is_other));
        }
        ElbV2Action::Delete { load_balancer } => seen.network.remove(load_balancer),
        ElbV2Action::ConfigureHealthCheck { target_group, check } => {
            seen.target_groups.edit(target_group, |found| found.health_check = check.clone());
        }
        ElbV2Action::SetTargetAttributes { target_group, attributes } => {
            let attributes = Some(attributes.clone());
            seen.target_groups.edit(target_group, |found| found.attributes = attributes);
        }
        ElbV2Action::DeleteTargetGroup { target_group } => seen.target_groups.remove(target_group),
    }
}

fn create_load_balancer(seen: &mut Observed, action: ElbV2Action, answer: &Answer) {
    let ElbV2Action::Create { vpc, name, scheme, dualstack, subnets, groups, tags, .. } = action
    else {
        return;
    };
    seen.network.add(NetworkLoadBalancer {
        arn: answer.id.clone(),
        name,
        vpc,
        scheme,
        is_dualstack: dualstack,
        dns_name: answer.dns_name.clone().unwrap_or_default(),
        state: BalancerState::Provisioning,
        subnets,
        groups,
        cross_zone: Some(false),
        listeners: Vec::new(),
        tags,
    });
}

fn create_target_group(seen: &mut Observed, action: ElbV2Action, answer: &Answer) {
    let ElbV2Action::CreateTargetGroup { vpc, name, ipv6, check, tags, .. } = action else {
        return;
    };
    seen.target_groups.add(TargetGroup {
        arn: answer.id.clone(),
        name,
        vpc,
        is_ipv6: ipv6,
        health_check: check,
        attributes: Some(TargetAttributes::OF_AWS),
        tags,
    });
}

fn edit_tags(seen: &mut Observed, arns: &[String], change: impl Fn(&mut Tags)) {
    let is_meant = |arn: &String| arns.contains(arn);
    seen.network.edit_where(|found| is_meant(&found.arn), |found| change(&mut found.tags));
    seen.target_groups.edit_where(|found| is_meant(&found.arn), |found| change(&mut found.tags));
    let leads_on = |found: &NetworkLoadBalancer| found.listeners.iter().any(|it| is_meant(&it.arn));
    seen.network.edit_where(leads_on, |found| {
        found
            .listeners
            .iter_mut()
            .filter(|it| is_meant(&it.arn))
            .for_each(|it| change(&mut it.tags));
    });
}
