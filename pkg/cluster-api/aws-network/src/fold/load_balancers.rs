//! Writes to load balancers of both kinds, folded into what is known.

use crate::action::{ElbAction, ElbV2Action};
use crate::identity::Tags;
use crate::load_balancers::{
    BalancerState, ClassicAttributes, ClassicLoadBalancer, HealthCheck, NetworkListener,
    NetworkLoadBalancer, TargetGroup,
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
        ElbAction::Delete { name } => seen.classic.remove_where(|found| found.name == *name),
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
    let change = |of: &str, change: &dyn Fn(&mut ClassicLoadBalancer)| {
        seen.classic.edit_where(|found| found.name == of, change);
    };
    let mut change = change;
    match action {
        ElbAction::ConfigureHealthCheck { name, check } => {
            change(name, &|found| found.health_check = check.clone());
        }
        ElbAction::ModifyAttributes { name, attributes } => {
            change(name, &|found| found.attributes = Some(attributes.clone()));
        }
        ElbAction::AttachSubnets { name, subnets } => {
            change(name, &|found| found.subnets.extend_from_slice(subnets));
        }
        ElbAction::DetachSubnets { name, subnets } => {
            change(name, &|found| found.subnets.retain(|subnet| !subnets.contains(subnet)));
        }
        ElbAction::ApplyGroups { name, groups } => {
            change(name, &|found| found.groups.clone_from(groups));
        }
        ElbAction::CreateListeners { name, listeners } => {
            change(name, &|found| found.listeners.extend_from_slice(listeners));
        }
        ElbAction::DeleteListeners { name, ports } => {
            change(name, &|found| found.listeners.retain(|old| !ports.contains(&old.port)));
        }
        ElbAction::AddTags { name, tags } => {
            change(name, &|found| found.tags.get_or_insert_default().extend(tags.clone()));
        }
        ElbAction::RemoveTags { name, keys } => {
            change(name, &|found| {
                found.tags.get_or_insert_default().retain(|key, _| !keys.contains(key));
            });
        }
        ElbAction::Create { .. } | ElbAction::Delete { .. } => {}
    }
}

pub(super) fn fold_network(seen: &mut Observed, action: &ElbV2Action, answer: &Answer) {
    match action {
        ElbV2Action::Create { .. } => create_load_balancer(seen, action.clone(), answer),
        ElbV2Action::CreateTargetGroup { .. } => create_target_group(seen, action.clone(), answer),
        ElbV2Action::AddTags { arns, tags } => {
            edit_tags(seen, arns, &|found| found.extend(tags.clone()));
        }
        ElbV2Action::RemoveTags { arns, keys } => {
            edit_tags(seen, arns, &|found| found.retain(|key, _| !keys.contains(key)));
        }
        ElbV2Action::ConfigureHealthCheck { .. }
        | ElbV2Action::SetPreserveClientIp { .. }
        | ElbV2Action::DeleteTargetGroup { .. } => change_target_group(seen, action),
        change => change_load_balancer(seen, change, answer),
    }
}

fn create_load_balancer(seen: &mut Observed, action: ElbV2Action, answer: &Answer) {
    let ElbV2Action::Create { vpc, name, scheme, subnets, groups, tags } = action else {
        return;
    };
    seen.network.add(NetworkLoadBalancer {
        arn: answer.id.clone(),
        name,
        vpc,
        scheme,
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
    let ElbV2Action::CreateTargetGroup { vpc, name, check, tags, .. } = action else {
        return;
    };
    seen.target_groups.add(TargetGroup {
        arn: answer.id.clone(),
        name,
        vpc,
        health_check: check,
        // AWS: targets by instance id see the client's address unless told otherwise.
        preserve_client_ip: Some(true),
        tags,
    });
}

fn change_load_balancer(seen: &mut Observed, action: &ElbV2Action, answer: &Answer) {
    let balancers = &mut seen.network;
    match action {
        ElbV2Action::SetCrossZone { load_balancer, enabled } => balancers.edit_where(
            |found| found.arn == *load_balancer,
            |found| found.cross_zone = Some(*enabled),
        ),
        ElbV2Action::SetSubnets { load_balancer, subnets } => balancers.edit_where(
            |found| found.arn == *load_balancer,
            |found| found.subnets.clone_from(subnets),
        ),
        ElbV2Action::SetGroups { load_balancer, groups } => balancers.edit_where(
            |found| found.arn == *load_balancer,
            |found| found.groups.clone_from(groups),
        ),
        ElbV2Action::CreateListener { load_balancer, port, target_group } => {
            let (arn, target_group) = (answer.id.clone(), target_group.clone());
            let listener = NetworkListener { arn, port: *port, target_group };
            balancers.edit_where(
                |found| found.arn == *load_balancer,
                |found| found.listeners.push(listener.clone()),
            );
        }
        ElbV2Action::DeleteListener { listener } => balancers
            .edit_where(|_| true, |found| found.listeners.retain(|old| old.arn != *listener)),
        ElbV2Action::Delete { load_balancer } => {
            balancers.remove_where(|found| found.arn == *load_balancer);
        }
        _ => {}
    }
}

fn change_target_group(seen: &mut Observed, action: &ElbV2Action) {
    let groups = &mut seen.target_groups;
    match action {
        ElbV2Action::ConfigureHealthCheck { target_group, check } => groups.edit_where(
            |found| found.arn == *target_group,
            |found| found.health_check = check.clone(),
        ),
        ElbV2Action::SetPreserveClientIp { target_group, enabled } => groups.edit_where(
            |found| found.arn == *target_group,
            |found| found.preserve_client_ip = Some(*enabled),
        ),
        ElbV2Action::DeleteTargetGroup { target_group } => {
            groups.remove_where(|found| found.arn == *target_group);
        }
        _ => {}
    }
}

fn edit_tags(seen: &mut Observed, arns: &[String], change: &dyn Fn(&mut Tags)) {
    seen.network.edit_where(|found| arns.contains(&found.arn), |found| change(&mut found.tags));
    seen.target_groups
        .edit_where(|found| arns.contains(&found.arn), |found| change(&mut found.tags));
}
