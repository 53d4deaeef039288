//! What a cluster has, in words that do not depend on ids: two inventories that are equal differ in
//! nothing that counts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use aws_fixtures::{CLUSTER, second_load_balancer};
use aws_network::{
    ATTEMPT_TAG, ClassicLoadBalancer, Ipv6Range, LoadBalancerKind, Lookup, NAT_ZONE_TAG, Query,
    ROUTE_TABLE_TAG, Reply, Scope, Source, Tags, Target, default_load_balancer_name,
};
use ipnet::IpNet;

use crate::world::World;

type Names = BTreeMap<String, String>;

/// Lines, sorted, and the names of what they are about.
#[derive(Default)]
struct Inventory {
    lines: Vec<String>,
    names: Names,
    /// IPv6 CIDRs of VPCs, which moto draws.
    ranges: Vec<String>,
}

/// One line for each resource with the cluster's tag that is not gone.
pub(crate) async fn inventory(world: &World) -> Vec<String> {
    let mut inventory = Inventory::default();
    inventory.vpcs(world).await;
    inventory.subnets(world).await;
    inventory.gateways(world).await;
    inventory.groups(world).await;
    inventory.tables(world).await;
    inventory.bastions(world).await;
    inventory.balancers(world).await;
    for range in &inventory.ranges {
        inventory.lines.iter_mut().for_each(|line| *line = line.replace(range, "RANGE"));
    }
    inventory.lines.sort();
    inventory.lines
}

/// moto writes groups of an IPv6 address with leading zeros.
fn canonical(destination: &str) -> String {
    destination.parse::<IpNet>().map_or_else(|_| destination.to_owned(), |range| range.to_string())
}

async fn read(world: &World, query: Query) -> Reply {
    world.executor().read(&query).await.unwrap()
}

/// The load balancer that is named after this.
fn named(text: &str) -> Lookup {
    Lookup {
        names: vec![default_load_balancer_name(LoadBalancerKind::Classic, "", text)],
        vpc: None,
    }
}

fn words(tags: &Tags) -> String {
    let known = tags.iter().filter(|(key, _)| *key != ATTEMPT_TAG);
    known.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

impl Inventory {
    fn name(&self, id: &str) -> String {
        self.names.get(id).cloned().unwrap_or_else(|| format!("unknown {id}"))
    }

    fn all(&self, ids: &[String]) -> Vec<String> {
        let mut all: Vec<_> = ids.iter().map(|id| self.name(id)).collect();
        all.sort();
        all
    }

    fn note(&mut self, id: &str, name: String, line: String) {
        self.names.insert(id.to_owned(), name);
        self.lines.push(line);
    }

    async fn vpcs(&mut self, world: &World) {
        let Reply::Vpcs(vpcs) = read(world, Query::TaggedVpcs).await else { panic!("no VPCs") };
        for vpc in vpcs {
            let query = Query::VpcAttributes(vpc.id.clone());
            let Reply::VpcAttributes { dns_support, dns_hostnames, .. } = read(world, query).await
            else {
                panic!("no attributes")
            };
            if let Some(Ipv6Range::Associated(range)) = vpc.ipv6 {
                self.ranges.push(range.to_string());
            }
            let more = vpc.secondary.iter().map(|it| format!("cidr {} {}", it.cidr, it.associated));
            self.lines.extend(more);
            let line = format!(
                "vpc {} support {dns_support} hostnames {dns_hostnames} {}",
                vpc.cidr,
                words(&vpc.tags)
            );
            self.note(&vpc.id, format!("vpc {}", vpc.cidr), line);
        }
    }

    async fn subnets(&mut self, world: &World) {
        let Reply::Subnets(subnets) = read(world, Query::Subnets(Scope::Tagged)).await else {
            panic!("no subnets")
        };
        for subnet in subnets {
            let number = |address: IpAddr| match address {
                IpAddr::V6(address) => address.segments()[3] & 0xff,
                IpAddr::V4(_) => panic!("{address} is not of IPv6"),
            };
            let ipv6 = subnet.ipv6.map(|cidr| number(cidr.network()));
            let assigned = |number| format!(" ipv6 {number} assigned {}", subnet.assigns_ipv6);
            let line = format!(
                "subnet {}{} {} in {} maps {} {}",
                subnet.cidr,
                ipv6.map(assigned).unwrap_or_default(),
                subnet.zone,
                self.name(&subnet.vpc),
                subnet.map_public_ip,
                words(&subnet.tags)
            );
            self.note(&subnet.id, subnet.cidr.to_string(), line);
        }
    }

    async fn gateways(&mut self, world: &World) {
        let query = Query::InternetGateways(Scope::Tagged);
        let Reply::InternetGateways(found) = read(world, query).await else {
            panic!("no gateways")
        };
        for gateway in found {
            let vpc = gateway.attached_to.map(|vpc| self.name(&vpc));
            self.note(
                &gateway.id,
                "igw".to_owned(),
                format!("igw at {vpc:?} {}", words(&gateway.tags)),
            );
        }
        let query = Query::EgressOnlyGateways(Scope::Tagged);
        let Reply::EgressOnlyGateways(found) = read(world, query).await else {
            panic!("no gateways")
        };
        for gateway in found {
            let vpc = gateway.attached_to.map(|vpc| self.name(&vpc));
            let line = format!("egress-only at {vpc:?} {}", words(&gateway.tags));
            self.note(&gateway.id, "egress-only".to_owned(), line);
        }
        let query = Query::CarrierGateways(Scope::Tagged);
        let Reply::CarrierGateways(found) = read(world, query).await else { panic!("no gateways") };
        for gateway in found {
            let vpc = gateway.attached_to.map(|vpc| self.name(&vpc));
            let line = format!("carrier at {vpc:?} {}", words(&gateway.tags));
            self.note(&gateway.id, "carrier".to_owned(), line);
        }
        let Reply::Addresses(found) = read(world, Query::Addresses).await else {
            panic!("no addresses")
        };
        for address in found {
            let zone = address.tags.get(NAT_ZONE_TAG).cloned().unwrap_or_default();
            let line =
                format!("eip used {} {}", address.association.is_some(), words(&address.tags));
            self.note(&address.id, format!("eip {zone}"), line);
        }
        let Reply::NatGateways(found) = read(world, Query::NatGateways(Scope::Tagged)).await else {
            panic!("no NAT gateways")
        };
        for nat in found.iter().filter(|nat| !nat.is_gone()) {
            let zone = nat.tags.get(NAT_ZONE_TAG).cloned().unwrap_or_default();
            let eips = self.all(&nat.allocations);
            let place = if nat.is_regional { "all zones".into() } else { self.name(&nat.subnet) };
            let state = nat.state;
            let line = format!("nat {state:?} in {place} with {eips:?} {}", words(&nat.tags));
            self.note(&nat.id, format!("nat {zone}"), line);
        }
    }

    async fn tables(&mut self, world: &World) {
        let Reply::RouteTables(found) = read(world, Query::RouteTables(Scope::Tagged)).await else {
            panic!("no route tables")
        };
        for table in found {
            let users: Vec<_> = table
                .associations
                .iter()
                .map(|one| one.subnet.as_ref().map(|id| self.name(id)))
                .collect();
            let route = |route: &aws_network::Route| {
                let target = match &route.target {
                    Target::InternetGateway(id)
                    | Target::NatGateway(id)
                    | Target::EgressOnlyGateway(id)
                    | Target::CarrierGateway(id) => self.name(id),
                    Target::Other(id) => id.clone(),
                };
                format!("{} to {target}", canonical(&route.destination))
            };
            let mut routes: Vec<_> = table.routes.iter().map(route).collect();
            routes.sort();
            let subnet = table.tags.get(ROUTE_TABLE_TAG).cloned().unwrap_or_default();
            let line = format!("table of {users:?} routes {routes:?} {}", words(&table.tags));
            self.note(&table.id, format!("table {subnet}"), line);
        }
    }

    async fn groups(&mut self, world: &World) {
        let query = Query::SecurityGroups(Scope::Tagged);
        let Reply::SecurityGroups(found) = read(world, query).await else { panic!("no groups") };
        for group in &found {
            self.names.insert(group.id.clone(), group.name.clone());
        }
        for group in found {
            let rule = |rule: &aws_network::Rule| {
                let source = match &rule.key.source {
                    Source::Cidr(cidr) => cidr.to_string(),
                    Source::Group(id) | Source::PrefixList(id) => self.name(id),
                };
                let (from, to) = (rule.key.from_port, rule.key.to_port);
                format!("{} {from}-{to} from {source} ({})", rule.key.protocol, rule.description)
            };
            let mut rules: Vec<_> = group.rules.iter().map(rule).collect();
            rules.sort();
            self.lines.push(format!("group {} {rules:?} {}", group.name, words(&group.tags)));
        }
    }

    async fn bastions(&mut self, world: &World) {
        let Reply::Bastions(found) = read(world, Query::Bastions(None)).await else {
            panic!("no bastions")
        };
        for instance in found.iter().filter(|instance| instance.is_live()) {
            let (vpc, state) = (self.name(&instance.vpc), instance.state);
            self.lines.push(format!("instance {state:?} in {vpc} {}", words(&instance.tags)));
        }
    }

    async fn balancers(&mut self, world: &World) {
        let query = Query::ClassicLoadBalancers(named(CLUSTER));
        let Reply::ClassicLoadBalancers(found) = read(world, query).await else {
            panic!("no load balancers")
        };
        for balancer in found {
            self.classic(world, balancer).await;
        }
        let mut lookup = named(&format!("default-{CLUSTER}"));
        lookup.names.extend(second_load_balancer().name);
        let query = Query::NetworkLoadBalancers(lookup);
        let Reply::NetworkLoadBalancers(found, groups) = read(world, query).await else {
            panic!("no load balancers")
        };
        for group in &groups {
            let check = &group.health_check;
            let family = if group.is_ipv6 { " ipv6" } else { "" };
            let tags = words(&group.tags);
            let line = format!("target group {}{family} {check:?} {tags}", group.name);
            self.note(&group.arn, group.name.clone(), line);
        }
        for one in found {
            let listener = |listener: &aws_network::NetworkListener| {
                let (group, tags) = (self.name(&listener.target_group), words(&listener.tags));
                format!("{} to {group} {tags}", listener.port)
            };
            let mut listeners: Vec<_> = one.listeners.iter().map(listener).collect();
            listeners.sort();
            let (subnets, groups) = (self.all(&one.subnets), self.all(&one.groups));
            let family = if one.is_dualstack { " dualstack" } else { "" };
            self.lines.push(format!(
                "nlb {}{family} {:?} {listeners:?} in {subnets:?} with {groups:?} {}",
                one.name,
                one.scheme,
                words(&one.tags)
            ));
        }
    }

    async fn classic(&mut self, world: &World, balancer: ClassicLoadBalancer) {
        let name = balancer.name.clone();
        let query = Query::ClassicTags(vec![name.clone()]);
        let Reply::ClassicTags(tags) = read(world, query).await else { panic!("no tags") };
        let query = Query::ClassicAttributes(name.clone());
        let Reply::ClassicAttributes { attributes, .. } = read(world, query).await else {
            panic!("no attributes")
        };
        let (subnets, groups) = (self.all(&balancer.subnets), self.all(&balancer.groups));
        let tags = tags.first().map(|(_, tags)| words(tags)).unwrap_or_default();
        self.lines.push(format!(
            "elb {name} {:?} {:?} {:?} {:?} in {subnets:?} with {groups:?} {tags}",
            balancer.scheme, balancer.listeners, balancer.health_check, attributes
        ));
    }
}

/// Lines that only one of two inventories has: nothing, when they are the same.
pub(crate) fn differences(found: &[String], wanted: &[String]) -> Vec<String> {
    let only = |left: &[String], right: &[String], mark: &str| -> Vec<String> {
        let missing = left.iter().filter(|line| !right.contains(line));
        missing.map(|line| format!("{mark} {line}")).collect()
    };
    let mut lines = [only(found, wanted, "surplus"), only(wanted, found, "missing")].concat();
    if lines.is_empty() && found.len() != wanted.len() {
        lines.push(format!("{} lines instead of {}", found.len(), wanted.len()));
    }
    lines
}
