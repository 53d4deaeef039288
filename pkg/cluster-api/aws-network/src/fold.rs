//! Applies a write that was carried out to [`Observed`], so that a reconciliation goes on without
//! reading everything again.

use crate::action::Action;
use crate::identity::Tags;
use crate::memory::Timestamp;
use crate::observed::Observed;
use crate::outcome::Answer;
use crate::resources::{
    Address, Association, Instance, InstanceState, InternetGateway, Ipv6Range, NatGateway,
    NatState, Route, RouteTable, SecondaryCidr, SecurityGroup, Subnet, Vpc,
};
use crate::rule::{Rule, Source};

mod load_balancers;

impl Observed {
    /// Takes in a write that was carried out.
    pub fn fold(&mut self, action: &Action, answer: &Answer, now: Timestamp) {
        match action {
            Action::Elb(action) => load_balancers::fold_classic(self, action, answer),
            Action::ElbV2(action) => load_balancers::fold_network(self, action, answer),
            Action::CreateTags { resources, tags } => {
                edit_tags(self, resources, |found| found.extend(tags.clone()));
            }
            Action::DeleteTags { resources, keys } => {
                edit_tags(self, resources, |found| found.retain(|key, _| !keys.contains(key)));
            }
            _ if action.is_removal() => fold_removal(self, action),
            _ if action.creates().is_some() => fold_create(self, action, answer.clone(), now),
            _ => fold_change(self, action, answer),
        }
    }
}

fn fold_create(seen: &mut Observed, action: &Action, answer: Answer, now: Timestamp) {
    let id = answer.id;
    match action.clone() {
        Action::CreateVpc { cidr, ipv6, tags } => {
            let (dns_support, dns_hostnames) = (Some(true), Some(false));
            let (ipv6, more_ipv6) = (ipv6.then_some(Ipv6Range::Associating), Vec::new());
            let secondary = Vec::new();
            seen.vpcs.add(Vpc {
                id,
                cidr,
                secondary,
                ipv6,
                more_ipv6,
                dns_support,
                dns_hostnames,
                tags,
            });
            seen.know_to_be_empty(now);
        }
        Action::CreateSubnet { vpc, cidr, ipv6, zone, tags } => {
            let (map_public_ip, assigns_ipv6, available) = (false, false, false);
            let subnet =
                Subnet { id, vpc, cidr, ipv6, zone, map_public_ip, assigns_ipv6, available, tags };
            seen.subnets.add(subnet);
        }
        Action::CreateEgressOnlyGateway { vpc, tags, .. } => {
            seen.egress_only_gateways.add(gateway(id, Some(vpc), tags));
        }
        Action::CreateCarrierGateway { vpc, tags, .. } => {
            let made = InternetGateway { pending: true, ..gateway(id, Some(vpc), tags) };
            seen.carrier_gateways.add(made);
        }
        Action::CreateInternetGateway { tags } => {
            seen.internet_gateways.add(gateway(id, None, tags));
        }
        Action::AllocateAddress { tags, .. } => {
            if let Some(ip) = answer.address {
                seen.addresses.add(Address { id, ip, association: None, tags });
            }
        }
        Action::CreateNatGateway { vpc, subnet, allocation, tags, .. } => {
            let (allocations, public_ips) = (vec![allocation], Vec::new());
            let (state, failure) = (NatState::Pending, None);
            seen.nat_gateways.add(NatGateway {
                id,
                vpc,
                subnet,
                is_regional: false,
                route_table: None,
                allocations,
                public_ips,
                state,
                failure,
                tags,
            });
        }
        Action::CreateRegionalNatGateway { vpc, tags, .. } => seen.nat_gateways.add(NatGateway {
            id,
            vpc,
            subnet: String::new(),
            is_regional: true,
            // What AWS chooses is seen by the next read.
            route_table: None,
            allocations: Vec::new(),
            public_ips: Vec::new(),
            state: NatState::Pending,
            failure: None,
            tags,
        }),
        Action::CreateRouteTable { vpc, tags, .. } => {
            let (associations, routes) = (Vec::new(), Vec::new());
            seen.route_tables.add(RouteTable { id, vpc, associations, routes, tags });
        }
        Action::CreateSecurityGroup { vpc, name, tags, .. } => {
            seen.security_groups.add(SecurityGroup { id, vpc, name, rules: Vec::new(), tags });
        }
        Action::RunBastion { vpc, launch, .. } => {
            let (state, launched, tags) = (InstanceState::Pending, now.0, launch.tags);
            seen.bastions.add(Instance { id, vpc, state, launched, public_ip: None, tags });
        }
        _ => {}
    }
}

fn gateway(id: String, attached_to: Option<String>, tags: Tags) -> InternetGateway {
    InternetGateway { id, attached_to, pending: false, tags }
}

fn fold_change(seen: &mut Observed, action: &Action, answer: &Answer) {
    match action {
        Action::EnableDnsSupport { vpc } => {
            seen.vpcs.edit(vpc, |found| found.dns_support = Some(true));
        }
        Action::AssociateCidr { vpc, cidr } => {
            let added = SecondaryCidr { cidr: *cidr, associated: false, failed: false };
            seen.vpcs.edit(vpc, |found| found.secondary.push(added));
        }
        Action::EnableDnsHostnames { vpc } => {
            seen.vpcs.edit(vpc, |found| found.dns_hostnames = Some(true));
        }
        Action::SetMapPublicIp { subnet, enabled } => {
            seen.subnets.edit(subnet, |found| found.map_public_ip = *enabled);
        }
        Action::AssignIpv6 { subnet } => {
            seen.subnets.edit(subnet, |found| found.assigns_ipv6 = true);
        }
        Action::AttachInternetGateway { gateway, vpc } => {
            seen.internet_gateways.edit(gateway, |found| found.attached_to = Some(vpc.clone()));
        }
        Action::CreateRoute { table, destination, target }
        | Action::ReplaceRoute { table, destination, target } => {
            let (destination, target) = ((*destination).to_owned(), target.clone());
            seen.route_tables.edit(table, |found| {
                found.routes.retain(|old| old.destination != destination);
                found.routes.push(Route { destination, target, blackhole: false });
            });
        }
        Action::AssociateRouteTable { table, subnet } => {
            let association = Association { id: answer.id.clone(), subnet: Some(subnet.clone()) };
            seen.route_tables.edit(table, |found| found.associations.push(association));
        }
        Action::ReplaceAssociation { association, table } => {
            let mut all = seen.route_tables.all().iter().flat_map(|found| &found.associations);
            let Some(old) = all.find(|old| old.id == *association).cloned() else { return };
            disassociate(seen, association);
            let new = Association { id: answer.id.clone(), ..old };
            seen.route_tables.edit(table, |found| found.associations.push(new));
        }
        Action::AuthorizeIngress { group, rules } => add_rules(seen, group, rules),
        Action::DescribeIngress { group, rules } => {
            remove_rules(seen, group, rules);
            add_rules(seen, group, rules);
        }
        _ => {}
    }
}

fn fold_removal(seen: &mut Observed, action: &Action) {
    match action {
        Action::DeleteVpc { vpc } => seen.vpcs.remove(vpc),
        Action::DeleteSubnet { subnet } => seen.subnets.remove(subnet),
        Action::DetachInternetGateway { gateway, .. } => {
            seen.internet_gateways.edit(gateway, |found| found.attached_to = None);
        }
        Action::DeleteInternetGateway { gateway } => seen.internet_gateways.remove(gateway),
        Action::DeleteEgressOnlyGateway { gateway } => seen.egress_only_gateways.remove(gateway),
        Action::DeleteCarrierGateway { gateway } => seen.carrier_gateways.remove(gateway),
        Action::ReleaseAddress { allocation } => seen.addresses.remove(allocation),
        Action::DeleteNatGateway { nat_gateway } => {
            seen.nat_gateways.edit(nat_gateway, |found| found.state = NatState::Deleting);
        }
        Action::DeleteRoute { table, destination } => {
            let is_other = |route: &Route| route.destination != *destination;
            seen.route_tables.edit(table, |found| found.routes.retain(is_other));
        }
        Action::DisassociateRouteTable { association } => disassociate(seen, association),
        Action::DeleteRouteTable { table } => seen.route_tables.remove(table),
        Action::RevokeIngress { group, rules } => remove_rules(seen, group, rules),
        Action::DeleteSecurityGroup { group } => {
            // AWS deletes a group only when no other names it; its own rules, which may name
            // itself, go with it.
            seen.security_groups.remove(group);
            let named = Source::Group(group.clone());
            let is_other = |rule: &Rule| rule.key.source != named;
            seen.security_groups.edit_where(|_| true, |found| found.rules.retain(is_other));
        }
        Action::TerminateInstances { instances } => seen.bastions.edit_where(
            |found| instances.contains(&found.id),
            |found| found.state = InstanceState::ShuttingDown,
        ),
        Action::DeleteNetworkInterface { interface } => seen.interfaces.remove(interface),
        _ => {}
    }
}

fn disassociate(seen: &mut Observed, association: &str) {
    let is_other = |old: &Association| old.id != association;
    seen.route_tables.edit_where(|_| true, |found| found.associations.retain(is_other));
}

fn add_rules(seen: &mut Observed, group: &str, rules: &[Rule]) {
    seen.security_groups.edit(group, |found| found.rules.extend_from_slice(rules));
}

fn remove_rules(seen: &mut Observed, group: &str, rules: &[Rule]) {
    let is_other = |old: &Rule| rules.iter().all(|rule| rule.key != old.key);
    seen.security_groups.edit(group, |found| found.rules.retain(is_other));
}

fn edit_tags(seen: &mut Observed, ids: &[String], change: impl Fn(&mut Tags)) {
    macro_rules! kinds {
        ($($kind:ident)*) => {$(
            seen.$kind.edit_where(|found| ids.contains(&found.id), |found| change(&mut found.tags));
        )*};
    }
    kinds!(vpcs subnets internet_gateways egress_only_gateways carrier_gateways addresses
        nat_gateways route_tables security_groups bastions);
}
