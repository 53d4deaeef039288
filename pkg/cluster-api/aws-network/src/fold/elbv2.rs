//! Writes to load balancers of the second generation, folded.

use crate::elbv2_action::ElbV2Action;
use crate::identity::Tags;
use crate::load_balancers::{BalancerState, NetworkListener, NetworkLoadBalancer, TargetGroup};
use crate::observed::Observed;
use crate::outcome::Answer;

pub(super) fn fold(seen: &mut Observed, action: &ElbV2Action, answer: &Answer) {
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
