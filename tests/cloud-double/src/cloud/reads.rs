//! Describe calls.

use aws_network::{InternetGateway, Lookup, Query, ROLE_TAG, Reply, Scope, Tags};

use super::Cloud;
use crate::store::Then;

impl Cloud {
    fn is_tagged(&self, tags: &Tags) -> bool {
        tags.contains_key(&self.cluster_tag)
    }

    fn in_scope(&self, scope: &Scope, vpc: &str, tags: &Tags) -> bool {
        match scope {
            Scope::Tagged => self.is_tagged(tags),
            Scope::Vpc(id) => id == vpc,
        }
    }

    fn is_gateway_in(&self, scope: &Scope, found: &InternetGateway) -> bool {
        self.in_scope(scope, found.attached_to.as_deref().unwrap_or_default(), &found.tags)
    }

    pub(super) fn read_at(&self, query: &Query, then: Then<'_>) -> Reply {
        match query {
            Query::TaggedVpcs | Query::Vpc(_) => self.read_vpcs(query, then),
            Query::VpcAttributes(id) => self.read_vpc_attributes(id),
            Query::Subnets(scope) => {
                let mut all = self.subnets.at(then);
                all.retain(|found| self.in_scope(scope, &found.vpc, &found.tags));
                Reply::Subnets(all)
            }
            Query::InternetGateways(scope) => {
                let mut all = self.gateways.at(then);
                all.retain(|found| self.is_gateway_in(scope, found));
                Reply::InternetGateways(all)
            }
            Query::EgressOnlyGateways(scope) => {
                let mut all = self.egress_only.at(then);
                all.retain(|found| self.is_gateway_in(scope, found));
                Reply::EgressOnlyGateways(all)
            }
            Query::CarrierGateways(scope) => {
                let mut all = self.carriers.at(then);
                all.retain(|found| self.is_gateway_in(scope, found));
                Reply::CarrierGateways(all)
            }
            Query::Addresses => {
                let mut all = self.addresses.at(then);
                all.retain(|found| self.is_tagged(&found.tags));
                Reply::Addresses(all)
            }
            Query::NatGateways(scope) => {
                let mut all = self.nats.at(then);
                all.retain(|found| self.in_scope(scope, &found.vpc, &found.tags));
                Reply::NatGateways(all)
            }
            Query::RouteTables(scope) => {
                let mut all = self.tables.at(then);
                all.retain(|found| self.in_scope(scope, &found.vpc, &found.tags));
                Reply::RouteTables(all)
            }
            Query::SecurityGroups(scope) => {
                let mut all = self.groups.at(then);
                all.retain(|found| self.in_scope(scope, &found.vpc, &found.tags));
                Reply::SecurityGroups(all)
            }
            Query::Bastions(recorded) => {
                let mut all = self.instances.at(then);
                let is_bastion =
                    |tags: &Tags| tags.get(ROLE_TAG).is_some_and(|role| role == "bastion");
                all.retain(|found| {
                    let is_meant = is_bastion(&found.tags) || recorded.as_ref() == Some(&found.id);
                    self.is_tagged(&found.tags) && is_meant
                });
                Reply::Bastions(all)
            }
            Query::BastionImage => Reply::BastionImage(Some("ami-ubuntu".to_owned())),
            Query::Residents(vpc) => {
                let mut gateways = [self.egress_only.at(then), self.carriers.at(then)].concat();
                gateways.retain(|found| found.attached_to.as_ref() == Some(vpc));
                let gateways = gateways.into_iter().map(|found| found.id);
                Reply::Residents(self.residents.iter().cloned().chain(gateways).collect())
            }
            Query::NetworkInterfaces(_) => Reply::NetworkInterfaces(self.interfaces.at(then)),
            balancers => self.read_balancers(balancers, then),
        }
    }

    fn read_vpcs(&self, query: &Query, then: Then<'_>) -> Reply {
        let mut all = self.vpcs.at(then);
        all.retain(|found| match query {
            Query::Vpc(id) => found.id == *id,
            _ => self.is_tagged(&found.tags),
        });
        for vpc in &mut all {
            (vpc.dns_support, vpc.dns_hostnames) = (None, None);
        }
        Reply::Vpcs(all)
    }

    fn read_vpc_attributes(&self, id: &str) -> Reply {
        let vpc = self.vpcs.get(id).unwrap();
        let (support, hostnames) = (vpc.dns_support.unwrap(), vpc.dns_hostnames.unwrap());
        Reply::VpcAttributes { vpc: id.to_owned(), dns_support: support, dns_hostnames: hostnames }
    }

    fn read_balancers(&self, query: &Query, then: Then<'_>) -> Reply {
        let is_meant = |lookup: &Lookup, name: &String, vpc: &String| {
            lookup.names.contains(name) || lookup.vpc.as_ref() == Some(vpc)
        };
        match query {
            Query::ClassicLoadBalancers(lookup) => {
                let mut all = self.classic.at(then);
                all.retain(|found| is_meant(lookup, &found.name, &found.vpc));
                for found in &mut all {
                    (found.attributes, found.tags) = (None, None);
                }
                Reply::ClassicLoadBalancers(all)
            }
            Query::ClassicAttributes(name) => {
                let found = self.classic.get(name);
                let attributes = found.and_then(|found| found.attributes.clone());
                Reply::ClassicAttributes { name: name.clone(), attributes }
            }
            Query::ClassicTags(names) => {
                let tags =
                    |name: &String| Some((name.clone(), self.classic.get(name)?.tags.clone()?));
                Reply::ClassicTags(names.iter().filter_map(tags).collect())
            }
            Query::NetworkLoadBalancers(lookup) => self.read_network(lookup, then),
            Query::NetworkAttributes { load_balancer, target_groups } => {
                let cross_zone = self.network.get(load_balancer).unwrap().cross_zone.unwrap();
                let of = |arn: &String| {
                    let group = self.target_groups.get(arn).unwrap();
                    (arn.clone(), group.attributes.clone().unwrap())
                };
                let target_groups = target_groups.iter().map(of).collect();
                let load_balancer = load_balancer.clone();
                Reply::NetworkAttributes { load_balancer, cross_zone, target_groups }
            }
            other => panic!("{other:?} is answered elsewhere"),
        }
    }

    fn read_network(&self, lookup: &Lookup, then: Then<'_>) -> Reply {
        let mut all = self.network.at(then);
        all.retain(|found| {
            lookup.names.contains(&found.name) || lookup.vpc.as_ref() == Some(&found.vpc)
        });
        let used: Vec<_> = all
            .iter()
            .flat_map(|found| &found.listeners)
            .map(|listener| &listener.target_group)
            .collect();
        let mut groups = self.target_groups.at(then);
        groups.retain(|found| {
            lookup.names.contains(&found.name)
                || used.contains(&&found.arn)
                || lookup.vpc.as_ref() == Some(&found.vpc)
        });
        for found in &mut all {
            found.cross_zone = None;
        }
        for found in &mut groups {
            found.attributes = None;
        }
        Reply::NetworkLoadBalancers(all, groups)
    }
}
