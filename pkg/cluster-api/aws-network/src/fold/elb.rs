//! Writes to classic load balancers, folded.

use crate::elb_action::ElbAction;
use crate::load_balancers::{ClassicAttributes, ClassicLoadBalancer, HealthCheck};
use crate::observed::Observed;
use crate::outcome::Answer;

/// What AWS gives a classic load balancer that was created with one listener: a check of the
/// instance port by TCP, and 60 seconds for idle connections.
fn born_health_check(port: u16) -> HealthCheck {
    let (protocol, path) = ("TCP".to_owned(), None);
    HealthCheck { protocol, port, path, interval: 30, timeout: 5, healthy: 10, unhealthy: 2 }
}

pub(super) fn fold(seen: &mut Observed, action: &ElbAction, answer: &Answer) {
    match action {
        ElbAction::Create { .. } => create(seen, action.clone(), answer),
        ElbAction::Delete { name } => seen.classic.remove_where(|found| found.name == *name),
        change => edit(seen, change),
    }
}

fn create(seen: &mut Observed, action: ElbAction, answer: &Answer) {
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

fn edit(seen: &mut Observed, action: &ElbAction) {
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
