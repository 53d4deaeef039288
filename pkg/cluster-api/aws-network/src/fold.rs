//! Applies a write that was carried out to [`Observed`], so that a reconciliation goes on without
//! reading everything again.

use crate::action::{Action, BastionLaunch};
use crate::identity::Tags;
use crate::memory::Timestamp;
use crate::observed::Observed;
use crate::outcome::Answer;
use crate::resources::{
    Address, Association, DEFAULT_ROUTE, Instance, InstanceState, InternetGateway, NatGateway,
    NatState, Route, RouteTable, SecurityGroup, Subnet, Target, Vpc,
};
use crate::rule::{Rule, Source};

mod load_balancers;

impl Observed {
    /// Takes in a write that was carried out.
    pub fn fold(&mut self, action: &Action, answer: &Answer, now: Timestamp) {
        match action {
            Action::Elb(action) => load_balancers::fold_classic(self, action, answer),
            Action::ElbV2(action) => load_balancers::fold_network(self, action, answer),
            Action::CreateTags { resources, tags } => add_tags(self, resources, tags),
            Action::DeleteTags { resources, keys } => remove_tags(self, resources, keys),
            _ if action.is_removal() => fold_removal(self, action),
            _ if action.creates().is_some() => fold_create(self, action, answer.clone(), now),
            _ => fold_change(self, action, answer),
        }
    }
}

fn fold_create(seen: &mut Observed, action: &Action, answer: Answer, now: Timestamp) {
    let id = answer.id;
    match action.clone() {
        Action::CreateVpc { cidr, tags } => {
            let (dns_support, dns_hostnames) = (Some(true), Some(false));
            seen.vpcs.add(Vpc { id, cidr, dns_support, dns_hostnames, tags });
            seen.know_to_be_empty(now);
        }
        Action::CreateSubnet { vpc, cidr, zone, tags } => {
            let (map_public_ip, available) = (false, false);
            seen.subnets.add(Subnet { id, vpc, cidr, zone, map_public_ip, available, tags });
        }
        Action::CreateInternetGateway { tags } => {
            seen.internet_gateways.add(InternetGateway { id, attached_to: None, tags });
        }
        Action::AllocateAddress { tags, .. } => {
            if let Some(ip) = answer.address {
                seen.addresses.add(Address { id, ip, association: None, tags });
            }
        }
        Action::CreateNatGateway { vpc, subnet, allocation, tags, .. } => {
            seen.nat_gateways.add(pending_nat(id, vpc, subnet, allocation, tags));
        }
        Action::CreateRouteTable { vpc, tags, .. } => {
            let (associations, routes) = (Vec::new(), Vec::new());
            seen.route_tables.add(RouteTable { id, vpc, associations, routes, tags });
        }
        Action::CreateSecurityGroup { vpc, name, tags, .. } => {
            seen.security_groups.add(SecurityGroup { id, vpc, name, rules: Vec::new(), tags });
        }
        Action::RunBastion { vpc, launch, .. } => {
            seen.bastions.add(pending_bastion(id, vpc, launch, now));
        }
        _ => {}
    }
}

fn pending_nat(
    id: String,
    vpc: String,
    subnet: String,
    allocation: String,
    tags: Tags,
) -> NatGateway {
    NatGateway {
        id,
        vpc,
        subnet,
        allocations: vec![allocation],
        public_ips: Vec::new(),
        state: NatState::Pending,
        failure: None,
        tags,
    }
}

fn pending_bastion(id: String, vpc: String, launch: BastionLaunch, now: Timestamp) -> Instance {
    let state = InstanceState::Pending;
    Instance { id, vpc, state, launched: now.0, public_ip: None, tags: launch.tags }
}

fn fold_change(seen: &mut Observed, action: &Action, answer: &Answer) {
    match action {
        Action::EnableDnsSupport { vpc } => {
            seen.vpcs.edit_where(|found| found.id == *vpc, |found| found.dns_support = Some(true));
        }
        Action::EnableDnsHostnames { vpc } => {
            seen.vpcs
                .edit_where(|found| found.id == *vpc, |found| found.dns_hostnames = Some(true));
        }
        Action::SetMapPublicIp { subnet, enabled } => {
            seen.subnets
                .edit_where(|found| found.id == *subnet, |found| found.map_public_ip = *enabled);
        }
        Action::AttachInternetGateway { gateway, vpc } => {
            seen.internet_gateways.edit_where(
                |found| found.id == *gateway,
                |found| found.attached_to = Some(vpc.clone()),
            );
        }
        Action::CreateRoute { table, target } | Action::ReplaceRoute { table, target } => {
            lead_default_route(seen, table, target);
        }
        Action::AssociateRouteTable { table, subnet } => {
            let association = Association { id: answer.id.clone(), subnet: Some(subnet.clone()) };
            seen.route_tables.edit_where(
                |found| found.id == *table,
                |found| found.associations.push(association.clone()),
            );
        }
        Action::ReplaceAssociation { association, table } => {
            move_association(seen, association, table, &answer.id);
        }
        Action::AuthorizeIngress { group, rules } => add_rules(seen, group, rules),
        Action::DescribeIngress { group, rules } => describe_rules(seen, group, rules),
        _ => {}
    }
}

fn lead_default_route(seen: &mut Observed, table: &str, target: &Target) {
    let route =
        Route { destination: DEFAULT_ROUTE.to_owned(), target: target.clone(), blackhole: false };
    seen.route_tables.edit_where(
        |found| found.id == table,
        |found| {
            found.routes.retain(|old| old.destination != DEFAULT_ROUTE);
            found.routes.push(route.clone());
        },
    );
}

fn move_association(seen: &mut Observed, association: &str, table: &str, new_id: &str) {
    seen.route_tables.edit(|tables| {
        let moved = tables.iter_mut().find_map(|found| {
            let place = found.associations.iter().position(|old| old.id == association)?;
            Some(found.associations.remove(place))
        });
        if let (Some(moved), Some(to)) = (moved, tables.iter_mut().find(|found| found.id == table))
        {
            to.associations.push(Association { id: new_id.to_owned(), ..moved });
        }
    });
}

fn fold_removal(seen: &mut Observed, action: &Action) {
    match action {
        Action::DeleteVpc { vpc } => seen.vpcs.remove_where(|found| found.id == *vpc),
        Action::DeleteSubnet { subnet } => seen.subnets.remove_where(|found| found.id == *subnet),
        Action::DetachInternetGateway { gateway, .. } => {
            seen.internet_gateways
                .edit_where(|found| found.id == *gateway, |found| found.attached_to = None);
        }
        Action::DeleteInternetGateway { gateway } => {
            seen.internet_gateways.remove_where(|found| found.id == *gateway);
        }
        Action::ReleaseAddress { allocation } => {
            seen.addresses.remove_where(|found| found.id == *allocation);
        }
        Action::DeleteNatGateway { nat_gateway } => {
            seen.nat_gateways.edit_where(
                |found| found.id == *nat_gateway,
                |found| found.state = NatState::Deleting,
            );
        }
        Action::DeleteRoute { table } => {
            seen.route_tables.edit_where(
                |found| found.id == *table,
                |found| found.routes.retain(|route| route.destination != DEFAULT_ROUTE),
            );
        }
        Action::DisassociateRouteTable { association } => {
            seen.route_tables.edit_where(
                |_| true,
                |found| found.associations.retain(|old| old.id != *association),
            );
        }
        Action::DeleteRouteTable { table } => {
            seen.route_tables.remove_where(|found| found.id == *table);
        }
        Action::RevokeIngress { group, rules } => remove_rules(seen, group, rules),
        Action::DeleteSecurityGroup { group } => delete_group(seen, group),
        Action::TerminateInstances { instances } => {
            seen.bastions.edit_where(
                |found| instances.contains(&found.id),
                |found| found.state = InstanceState::ShuttingDown,
            );
        }
        Action::DeleteNetworkInterface { interface } => {
            seen.interfaces.remove_where(|found| found.id == *interface);
        }
        _ => {}
    }
}

fn add_rules(seen: &mut Observed, group: &str, rules: &[Rule]) {
    seen.security_groups
        .edit_where(|found| found.id == group, |found| found.rules.extend_from_slice(rules));
}

fn describe_rules(seen: &mut Observed, group: &str, rules: &[Rule]) {
    remove_rules(seen, group, rules);
    add_rules(seen, group, rules);
}

fn remove_rules(seen: &mut Observed, group: &str, rules: &[Rule]) {
    seen.security_groups.edit_where(
        |found| found.id == group,
        |found| found.rules.retain(|old| rules.iter().all(|rule| rule.key != old.key)),
    );
}

/// AWS deletes a group only when no other names it; its own rules, which may name itself, go with
/// it.
fn delete_group(seen: &mut Observed, group: &str) {
    seen.security_groups.remove_where(|found| found.id == group);
    let named = Source::Group(group.to_owned());
    seen.security_groups
        .edit_where(|_| true, |found| found.rules.retain(|rule| rule.key.source != named));
}

fn add_tags(seen: &mut Observed, resources: &[String], tags: &Tags) {
    edit_tags(seen, resources, &|found| {
        found.extend(tags.iter().map(|(key, value)| (key.clone(), value.clone())));
    });
}

fn remove_tags(seen: &mut Observed, resources: &[String], keys: &[String]) {
    edit_tags(seen, resources, &|found| found.retain(|key, _| !keys.contains(key)));
}

fn edit_tags(seen: &mut Observed, ids: &[String], change: &dyn Fn(&mut Tags)) {
    macro_rules! kinds {
        ($($kind:ident)*) => {$(
            if seen.$kind.all().iter().any(|found| ids.contains(&found.id)) {
                seen.$kind.edit_where(|found| ids.contains(&found.id), |found| change(&mut found.tags));
            }
        )*};
    }
    kinds!(vpcs subnets internet_gateways addresses nat_gateways route_tables security_groups bastions);
}
