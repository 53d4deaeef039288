//! [`Observed`]: what AWS has, as far as it was read, with our own writes folded in.

use crate::load_balancers::{ClassicLoadBalancer, NetworkLoadBalancer, TargetGroup};
use crate::memory::Timestamp;
use crate::query::{Query, Reply, Scope};
use crate::resources::{
    Address, AwsResource, Instance, InternetGateway, NatGateway, NetworkInterface, RouteTable,
    SecurityGroup, Subnet, Vpc,
};

/// The resources of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<T> {
    items: Option<Vec<T>>,
    read_at: Timestamp,
    written: bool,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { items: None, read_at: Timestamp::default(), written: false }
    }
}

impl<T> Seen<T> {
    /// The resources; none when the kind was not read.
    pub fn get(&self) -> Option<&[T]> {
        self.items.as_deref()
    }

    /// The resources, none of them when the kind was not read.
    pub fn all(&self) -> &[T] {
        self.items.as_deref().unwrap_or_default()
    }

    /// Whether this is what a read showed, without anything that was written since.
    pub fn is_as_read(&self) -> bool {
        self.items.is_some() && !self.written
    }

    /// When the read began.
    pub fn read_at(&self) -> Timestamp {
        self.read_at
    }

    pub(crate) fn set(&mut self, items: Vec<T>, at: Timestamp) {
        *self = Self { items: Some(items), read_at: at, written: false };
    }

    /// Changes the resources that are meant; what was never read stays unknown.
    pub(crate) fn edit_where(&mut self, is_meant: impl Fn(&T) -> bool, change: impl Fn(&mut T)) {
        for item in self.items.iter_mut().flatten().filter(|item| is_meant(item)) {
            change(item);
            self.written = true;
        }
    }

    pub(crate) fn add(&mut self, item: T) {
        if let Some(items) = &mut self.items {
            items.push(item);
            self.written = true;
        }
    }

    pub(crate) fn remove_where(&mut self, is_meant: impl Fn(&T) -> bool) {
        if let Some(items) = &mut self.items {
            items.retain(|item| !is_meant(item));
            self.written = true;
        }
    }
}

impl<T: AwsResource> Seen<T> {
    /// The resource of this id.
    pub fn of_id(&self, id: &str) -> Option<&T> {
        self.all().iter().find(|item| item.id() == id)
    }

    /// Changes the resource of this id.
    pub(crate) fn edit(&mut self, id: &str, change: impl FnOnce(&mut T)) {
        if let Some(item) = self.items.iter_mut().flatten().find(|item| item.id() == id) {
            change(item);
            self.written = true;
        }
    }

    /// Completes the resource of this id, which does not count as a write.
    fn refine(&mut self, id: &str, change: impl FnOnce(&mut T)) {
        if let Some(item) = self.items.iter_mut().flatten().find(|item| item.id() == id) {
            change(item);
        }
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.remove_where(|item| item.id() == id);
    }
}

/// The resources on AWS, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// VPCs with the tag of the cluster, and those in [`asked_vpcs`](Self::asked_vpcs) that exist.
    pub vpcs: Seen<Vpc>,
    /// Ids of VPCs that were looked for by id.
    pub asked_vpcs: Vec<String>,
    /// Subnets.
    pub subnets: Seen<Subnet>,
    /// Internet gateways with the tag of the cluster.
    pub internet_gateways: Seen<InternetGateway>,
    /// Internet gateways that are attached to the VPC.
    pub attached_gateways: Seen<InternetGateway>,
    /// Egress-only internet gateways.
    pub egress_only_gateways: Seen<InternetGateway>,
    /// Carrier gateways.
    pub carrier_gateways: Seen<InternetGateway>,
    /// Elastic IPs.
    pub addresses: Seen<Address>,
    /// NAT gateways.
    pub nat_gateways: Seen<NatGateway>,
    /// Route tables.
    pub route_tables: Seen<RouteTable>,
    /// Security groups.
    pub security_groups: Seen<SecurityGroup>,
    /// Instances with the role of a bastion.
    pub bastions: Seen<Instance>,
    /// Images for a bastion, at most one.
    pub bastion_images: Seen<String>,
    /// Classic load balancers.
    pub classic: Seen<ClassicLoadBalancer>,
    /// Load balancers of the second generation.
    pub network: Seen<NetworkLoadBalancer>,
    /// Target groups.
    pub target_groups: Seen<TargetGroup>,
    /// Network interfaces.
    pub interfaces: Seen<NetworkInterface>,
    /// Ids of what else others have put into the VPC.
    pub residents: Seen<String>,
}

impl Observed {
    /// Takes in the answer to a query that began at `at`.
    ///
    /// What an earlier, deeper read of the same resource showed is kept.
    pub fn take_in(&mut self, query: &Query, reply: Reply, at: Timestamp) {
        match reply {
            Reply::Vpcs(found) => self.take_in_vpcs(query, found, at),
            Reply::Subnets(found) => self.subnets.set(found, at),
            Reply::InternetGateways(found) => match query {
                Query::InternetGateways(Scope::Vpc(_)) => self.attached_gateways.set(found, at),
                _ => self.internet_gateways.set(found, at),
            },
            Reply::EgressOnlyGateways(found) => self.egress_only_gateways.set(found, at),
            Reply::CarrierGateways(found) => self.carrier_gateways.set(found, at),
            Reply::Addresses(found) => self.addresses.set(found, at),
            Reply::NatGateways(found) => self.nat_gateways.set(found, at),
            Reply::RouteTables(found) => self.route_tables.set(found, at),
            Reply::SecurityGroups(found) => self.security_groups.set(found, at),
            Reply::Bastions(found) => self.bastions.set(found, at),
            Reply::BastionImage(found) => {
                self.bastion_images.set(found.into_iter().collect(), at);
            }
            Reply::ClassicLoadBalancers(found) => self.take_in_classic(found, at),
            Reply::NetworkLoadBalancers(found, groups) => self.take_in_network(found, groups, at),
            Reply::NetworkInterfaces(found) => self.interfaces.set(found, at),
            Reply::Residents(found) => self.residents.set(found, at),
            detail => self.take_in_detail(detail),
        }
    }

    /// Takes in what an extra call shows of resources that are known.
    fn take_in_detail(&mut self, reply: Reply) {
        match reply {
            Reply::VpcAttributes { vpc, dns_support, dns_hostnames } => {
                self.vpcs.refine(&vpc, |found| {
                    found.dns_support = Some(dns_support);
                    found.dns_hostnames = Some(dns_hostnames);
                });
            }
            Reply::ClassicAttributes { name, attributes } => {
                self.classic.refine(&name, |found| found.attributes = attributes);
            }
            Reply::ClassicTags(all) => {
                for (name, tags) in all {
                    self.classic.refine(&name, |found| found.tags = Some(tags));
                }
            }
            Reply::NetworkAttributes { load_balancer, cross_zone, target_groups } => {
                self.network.refine(&load_balancer, |found| found.cross_zone = Some(cross_zone));
                for (arn, attributes) in target_groups {
                    self.target_groups.refine(&arn, |it| it.attributes = Some(attributes));
                }
            }
            _ => {}
        }
    }

    /// VPCs are found by two questions, whose answers add up.
    fn take_in_vpcs(&mut self, query: &Query, mut found: Vec<Vpc>, at: Timestamp) {
        let known = std::mem::take(&mut self.vpcs.items).unwrap_or_default();
        for vpc in &mut found {
            if let Some(known) = known.iter().find(|known| known.id == vpc.id) {
                vpc.dns_support = vpc.dns_support.or(known.dns_support);
                vpc.dns_hostnames = vpc.dns_hostnames.or(known.dns_hostnames);
            }
        }
        let stays = |old: &Vpc| match query {
            Query::Vpc(id) => old.id != *id,
            _ => self.asked_vpcs.contains(&old.id) && found.iter().all(|new| new.id != old.id),
        };
        let mut all: Vec<_> = known.into_iter().filter(stays).collect();
        all.append(&mut found);
        if let Query::Vpc(id) = query
            && !self.asked_vpcs.contains(id)
        {
            self.asked_vpcs.push(id.clone());
        }
        self.vpcs.set(all, at);
    }

    fn take_in_classic(&mut self, mut found: Vec<ClassicLoadBalancer>, at: Timestamp) {
        for balancer in &mut found {
            let known = self.classic.all().iter().find(|known| {
                (&known.name, &known.dns_name) == (&balancer.name, &balancer.dns_name)
            });
            if let Some(known) = known {
                balancer.attributes = balancer.attributes.take().or(known.attributes.clone());
                balancer.tags = balancer.tags.take().or(known.tags.clone());
            }
        }
        self.classic.set(found, at);
    }

    fn take_in_network(
        &mut self,
        mut found: Vec<NetworkLoadBalancer>,
        mut groups: Vec<TargetGroup>,
        at: Timestamp,
    ) {
        for balancer in &mut found {
            let known = self.network.of_id(&balancer.arn);
            balancer.cross_zone = balancer.cross_zone.or(known.and_then(|known| known.cross_zone));
        }
        for group in &mut groups {
            let known = self.target_groups.of_id(&group.arn);
            let known = known.and_then(|known| known.attributes.clone());
            group.attributes = group.attributes.take().or(known);
        }
        self.network.set(found, at);
        self.target_groups.set(groups, at);
    }

    /// The network load balancers and their target groups.
    pub(crate) fn only_network(self) -> Self {
        Self { network: self.network, target_groups: self.target_groups, ..Self::default() }
    }

    /// The answer about network load balancers of these names, from all that there are. A read of all
    /// shows no listeners and no tags: they are what was seen here. None where one was not seen.
    pub fn completed(
        &self,
        names: &[String],
        balancers: &[NetworkLoadBalancer],
        groups: &[TargetGroup],
    ) -> Option<Reply> {
        let mut found = Vec::new();
        for balancer in balancers.iter().filter(|it| names.contains(&it.name)) {
            let known = self.network.of_id(&balancer.arn)?;
            let (listeners, tags) = (known.listeners.clone(), known.tags.clone());
            found.push(NetworkLoadBalancer { listeners, tags, ..balancer.clone() });
        }
        let listeners = || found.iter().flat_map(|balancer| &balancer.listeners);
        let is_used = |arn: &str| listeners().any(|listener| listener.target_group == arn);
        let mut of_them = Vec::new();
        for group in groups.iter().filter(|it| names.contains(&it.name) || is_used(&it.arn)) {
            let tags = self.target_groups.of_id(&group.arn)?.tags.clone();
            of_them.push(TargetGroup { tags, ..group.clone() });
        }
        Some(Reply::NetworkLoadBalancers(found, of_them))
    }

    /// Has what was not read not exist, except for an image for a bastion, and begins all reads at
    /// `at`.
    pub(crate) fn know_the_rest(&mut self, image: &str, at: Timestamp) {
        macro_rules! know {
            ($($kind:ident)*) => {$(
                let items = std::mem::take(&mut self.$kind).items;
                self.$kind.set(items.unwrap_or_default(), at);
            )*};
        }
        know!(vpcs subnets internet_gateways attached_gateways egress_only_gateways
            carrier_gateways addresses nat_gateways route_tables security_groups bastions bastion_images classic network
            target_groups interfaces residents);
        if self.bastion_images.all().is_empty() {
            self.bastion_images.add(image.to_owned());
        }
    }

    /// A VPC that was just created is known to be empty without a read.
    pub(crate) fn know_to_be_empty(&mut self, at: Timestamp) {
        self.attached_gateways.set(Vec::new(), at);
        self.egress_only_gateways.set(Vec::new(), at);
        self.carrier_gateways.set(Vec::new(), at);
        self.subnets.set(Vec::new(), at);
        self.nat_gateways.set(Vec::new(), at);
        self.route_tables.set(Vec::new(), at);
        self.security_groups.set(Vec::new(), at);
        self.bastions.set(Vec::new(), at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Tags;
    use crate::load_balancers::{BalancerState, HealthCheck, NetworkListener, Scheme};

    fn balancer(arn: &str, listeners: Vec<NetworkListener>) -> NetworkLoadBalancer {
        NetworkLoadBalancer {
            arn: arn.to_owned(),
            name: "a".to_owned(),
            vpc: "vpc-1".to_owned(),
            scheme: Scheme::Internal,
            is_dualstack: false,
            dns_name: String::new(),
            state: BalancerState::Active,
            subnets: Vec::new(),
            groups: Vec::new(),
            cross_zone: None,
            listeners,
            tags: [("k".to_owned(), arn.to_owned())].into(),
        }
    }

    fn group(arn: &str) -> TargetGroup {
        let protocol = "TCP".to_owned();
        let (interval, timeout, healthy, unhealthy) = (10, 5, 5, 3);
        TargetGroup {
            arn: arn.to_owned(),
            name: arn.to_owned(),
            vpc: "vpc-1".to_owned(),
            is_ipv6: false,
            health_check: HealthCheck {
                protocol,
                port: 6443,
                path: None,
                interval,
                timeout,
                healthy,
                unhealthy,
            },
            attributes: None,
            tags: [("k".to_owned(), arn.to_owned())].into(),
        }
    }

    #[test]
    fn a_list_of_load_balancers_gets_listeners_and_tags_of_the_same_ones_only() {
        let listener = NetworkListener {
            arn: "l".to_owned(),
            port: 6443,
            target_group: "g".to_owned(),
            tags: Tags::new(),
        };
        let mut earlier = Observed::default();
        earlier.network.set(vec![balancer("1", vec![listener])], Timestamp(5));
        earlier.target_groups.set(vec![group("g")], Timestamp(5));
        let bare =
            |arn: &str| NetworkLoadBalancer { tags: Tags::new(), ..balancer(arn, Vec::new()) };
        let bare_group = |arn: &str| TargetGroup { tags: Tags::new(), ..group(arn) };
        let names = ["a".to_owned()];
        let complete = |balancers: &[_], groups: &[_]| earlier.completed(&names, balancers, groups);
        let whole = Reply::NetworkLoadBalancers(earlier.network.all().to_vec(), vec![group("g")]);
        assert_eq!(complete(&[bare("1")], &[bare_group("g"), bare_group("other")]), Some(whole));
        let none = Reply::NetworkLoadBalancers(Vec::new(), Vec::new());
        assert_eq!(complete(&[], &[bare_group("g")]), Some(none), "it is gone");
        assert_eq!(complete(&[bare("2")], &[]), None, "it was replaced by another one");
        assert_eq!(complete(&[bare("1")], &[bare_group("a")]), None, "one of our names is new");
    }
}
