//! Load balancers.

use aws_network::{
    Answer, BalancerState, ClassicAttributes, ClassicLoadBalancer, ElbAction, ElbV2Action,
    HealthCheck, NetworkListener, NetworkLoadBalancer, TargetAttributes, TargetGroup,
};

use super::ec2::{DONE, made};
use super::{Called, Cloud, Due};

fn born_health_check() -> HealthCheck {
    let (protocol, port, path) = ("TCP".to_owned(), 6443, None);
    HealthCheck { protocol, port, path, interval: 30, timeout: 5, healthy: 10, unhealthy: 2 }
}

impl Cloud {
    fn drain(&mut self, held: Vec<String>) {
        if self.nature.drain > 0 {
            self.draining.push((self.now + self.nature.drain, held));
        }
    }

    pub(super) fn call_elb(&mut self, action: &ElbAction) -> Called {
        let now = self.now;
        match action.clone() {
            ElbAction::Create { subnets, .. } if self.are_far(&subnets) => Err("InvalidSubnet"),
            ElbAction::Create { vpc, name, scheme, listeners, subnets, groups, tags } => {
                if self.classic.get(&name).is_some() {
                    return Err("DuplicateLoadBalancerName");
                }
                let dns_name = format!("{name}.elb.amazonaws.com");
                let found = ClassicLoadBalancer {
                    name: name.clone(),
                    vpc,
                    scheme,
                    dns_name: dns_name.clone(),
                    listeners,
                    health_check: born_health_check(),
                    subnets,
                    groups,
                    attributes: Some(ClassicAttributes { idle_timeout: 60, cross_zone: false }),
                    tags: Some(tags),
                };
                self.classic.put(&name, now, found);
                Ok(Answer { id: name, address: None, dns_name: Some(dns_name) })
            }
            ElbAction::Delete { name } => {
                let found = self.classic.get(&name).cloned();
                if let Some(found) = found {
                    self.drain([found.subnets, found.groups].concat());
                    self.classic.remove(&name, now);
                }
                DONE // AWS accepts the deletion of a missing load balancer.
            }
            change => self.change_elb(change),
        }
    }

    fn change_elb(&mut self, action: ElbAction) -> Called {
        let (ElbAction::ConfigureHealthCheck { name, .. }
        | ElbAction::ModifyAttributes { name, .. }
        | ElbAction::AttachSubnets { name, .. }
        | ElbAction::DetachSubnets { name, .. }
        | ElbAction::ApplyGroups { name, .. }
        | ElbAction::CreateListeners { name, .. }
        | ElbAction::DeleteListeners { name, .. }
        | ElbAction::AddTags { name, .. }
        | ElbAction::RemoveTags { name, .. }) = &action
        else {
            panic!("{action:?} changes no load balancer");
        };
        let name = name.clone();
        self.classic.get(&name).ok_or("LoadBalancerNotFound")?;
        self.classic.edit(&name, self.now, |found| match action {
            ElbAction::ConfigureHealthCheck { check, .. } => found.health_check = check,
            ElbAction::ModifyAttributes { attributes, .. } => found.attributes = Some(attributes),
            ElbAction::AttachSubnets { subnets, .. } => {
                found.subnets.retain(|old| !subnets.contains(old));
                found.subnets.extend(subnets);
            }
            ElbAction::DetachSubnets { subnets, .. } => {
                found.subnets.retain(|old| !subnets.contains(old));
            }
            ElbAction::ApplyGroups { groups, .. } => found.groups = groups,
            ElbAction::CreateListeners { listeners, .. } => {
                found.listeners.retain(|old| !listeners.contains(old));
                found.listeners.extend(listeners);
            }
            ElbAction::DeleteListeners { ports, .. } => {
                found.listeners.retain(|old| !ports.contains(&old.port));
            }
            ElbAction::AddTags { tags, .. } => found.tags.get_or_insert_default().extend(tags),
            ElbAction::RemoveTags { keys, .. } => {
                found.tags.get_or_insert_default().retain(|key, _| !keys.contains(key));
            }
            ElbAction::Create { .. } | ElbAction::Delete { .. } => {}
        });
        DONE
    }

    pub(super) fn call_elbv2(&mut self, action: &ElbV2Action) -> Called {
        let now = self.now;
        match action.clone() {
            ElbV2Action::Create { subnets, .. } if self.are_far(&subnets) => Err("InvalidSubnet"),
            ElbV2Action::Create { vpc, name, scheme, dualstack, subnets, groups, tags, .. } => {
                let has_ipv6 =
                    |id: &String| self.subnets.get(id).is_some_and(|found| found.ipv6.is_some());
                if dualstack && !subnets.iter().all(has_ipv6) {
                    return Err("InvalidConfigurationRequest");
                }
                if self.network.all().iter().any(|found| found.name == name) {
                    return Err("DuplicateLoadBalancerName");
                }
                let (arn, dns_name) = (self.id("arn:lb"), format!("{name}.elb.amazonaws.com"));
                let found = NetworkLoadBalancer {
                    arn: arn.clone(),
                    name,
                    vpc,
                    scheme,
                    is_dualstack: dualstack,
                    dns_name: dns_name.clone(),
                    state: BalancerState::Provisioning,
                    subnets,
                    groups,
                    cross_zone: Some(false),
                    listeners: Vec::new(),
                    tags,
                };
                self.network.put(&arn, now, found);
                self.later(Due::BalancerActive(arn.clone()));
                Ok(Answer { id: arn, address: None, dns_name: Some(dns_name) })
            }
            ElbV2Action::CreateTargetGroup { vpc, name, ipv6, check, tags, .. } => {
                if self.target_groups.all().iter().any(|found| found.name == name) {
                    return Err("DuplicateTargetGroupName");
                }
                let arn = self.id("arn:tg");
                let group = TargetGroup {
                    arn: arn.clone(),
                    name,
                    vpc,
                    is_ipv6: ipv6,
                    health_check: check,
                    attributes: Some(TargetAttributes::OF_AWS),
                    tags,
                };
                self.target_groups.put(&arn, now, group);
                made(&arn)
            }
            ElbV2Action::DeleteTargetGroup { target_group } => {
                self.target_groups.get(&target_group).ok_or("TargetGroupNotFound")?;
                let is_used = self.network.all().iter().any(|found| {
                    found.listeners.iter().any(|listener| listener.target_group == target_group)
                });
                if is_used {
                    return Err("ResourceInUse");
                }
                self.target_groups.remove(&target_group, now);
                DONE
            }
            ElbV2Action::Delete { load_balancer } => {
                let found =
                    self.network.get(&load_balancer).cloned().ok_or("LoadBalancerNotFound")?;
                self.drain([found.subnets, found.groups].concat());
                self.network.remove(&load_balancer, now);
                DONE
            }
            change => self.change_elbv2(change),
        }
    }

    fn change_elbv2(&mut self, action: ElbV2Action) -> Called {
        let now = self.now;
        match action {
            ElbV2Action::CreateListener { load_balancer, port, target_group, tags } => {
                let found = self.network.get(&load_balancer).ok_or("LoadBalancerNotFound")?;
                self.target_groups.get(&target_group).ok_or("TargetGroupNotFound")?;
                if found.listeners.iter().any(|listener| listener.port == port) {
                    return Err("DuplicateListener");
                }
                let arn = self.id("arn:listener");
                let listener = NetworkListener { arn: arn.clone(), port, target_group, tags };
                self.network.edit(&load_balancer, now, |found| found.listeners.push(listener));
                return made(&arn);
            }
            ElbV2Action::SetCrossZone { load_balancer, enabled } => {
                self.network.edit(&load_balancer, now, |found| found.cross_zone = Some(enabled));
            }
            ElbV2Action::MakeDualstack { load_balancer } => {
                self.network.edit(&load_balancer, now, |found| found.is_dualstack = true);
            }
            ElbV2Action::SetSubnets { load_balancer, subnets } => {
                self.network.edit(&load_balancer, now, |found| found.subnets = subnets);
            }
            ElbV2Action::SetGroups { load_balancer, groups } => {
                let found = self.network.get(&load_balancer).ok_or("LoadBalancerNotFound")?;
                if found.groups.is_empty() {
                    return Err("InvalidConfigurationRequest");
                }
                self.network.edit(&load_balancer, now, |found| found.groups = groups);
            }
            ElbV2Action::ConfigureHealthCheck { target_group, check } => {
                self.target_groups.edit(&target_group, now, |found| found.health_check = check);
            }
            ElbV2Action::SetTargetAttributes { target_group, attributes } => {
                self.target_groups
                    .edit(&target_group, now, |found| found.attributes = Some(attributes));
            }
            ElbV2Action::AddTags { arns, tags } => {
                self.edit_listeners(|listeners| {
                    let named = listeners.iter_mut().filter(|it| arns.contains(&it.arn));
                    named.for_each(|it| it.tags.extend(tags.clone()));
                });
                for arn in arns {
                    self.network.edit(&arn, now, |found| found.tags.extend(tags.clone()));
                    self.target_groups.edit(&arn, now, |found| found.tags.extend(tags.clone()));
                }
            }
            ElbV2Action::RemoveTags { arns, keys } => {
                self.edit_listeners(|listeners| {
                    let named = listeners.iter_mut().filter(|it| arns.contains(&it.arn));
                    named.for_each(|it| it.tags.retain(|key, _| !keys.contains(key)));
                });
                for arn in arns {
                    self.network
                        .edit(&arn, now, |found| found.tags.retain(|key, _| !keys.contains(key)));
                    self.target_groups
                        .edit(&arn, now, |found| found.tags.retain(|key, _| !keys.contains(key)));
                }
            }
            ElbV2Action::DeleteListener { listener } => {
                self.edit_listeners(|listeners| listeners.retain(|found| found.arn != listener));
            }
            other => panic!("{other:?} changes no load balancer"),
        }
        DONE
    }

    fn edit_listeners(&mut self, change: impl Fn(&mut Vec<NetworkListener>)) {
        for found in self.network.all() {
            self.network.edit(&found.arn, self.now, |found| change(&mut found.listeners));
        }
    }
}
