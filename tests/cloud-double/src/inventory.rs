//! The resources on AWS as text without ids: two clouds with equal inventories differ in
//! nothing that counts.

use std::collections::BTreeMap;

use aws_network::{ATTEMPT_TAG, Instance, Source, Tags, Target};

use crate::cloud::Cloud;

/// One line for each resource that is not gone, sorted.
///
/// # Panics
/// A VPC or a classic load balancer lacks attributes, or a NAT gateway its subnet.
pub fn inventory(cloud: &Cloud) -> Vec<String> {
    let names = names(cloud);
    let mut lines: Vec<String> = Vec::new();
    for vpc in cloud.vpcs.all() {
        let dns = (vpc.dns_support.unwrap(), vpc.dns_hostnames.unwrap());
        let ipv6 = vpc.ipv6.map(|_| " ipv6").unwrap_or_default();
        for more in &vpc.secondary {
            lines.push(format!("cidr {} associated {}", more.cidr, more.associated));
        }
        lines.push(format!("vpc {}{ipv6} dns {dns:?} {}", vpc.cidr, words(&vpc.tags)));
    }
    for subnet in cloud.subnets.all() {
        let public = subnet.map_public_ip;
        let assigned = |cidr| format!(" {cidr} assigned {}", subnet.assigns_ipv6);
        let ipv6 = subnet.ipv6.map(assigned).unwrap_or_default();
        lines.push(format!(
            "subnet {}{ipv6} {} maps {public} {}",
            subnet.cidr,
            subnet.zone,
            words(&subnet.tags)
        ));
    }
    for gateway in cloud.gateways.all() {
        let vpc = gateway.attached_to.map(|vpc| names[&vpc].clone());
        lines.push(format!("igw at {vpc:?} {}", words(&gateway.tags)));
    }
    for gateway in cloud.egress_only.all() {
        let vpc = gateway.attached_to.map(|vpc| names[&vpc].clone());
        lines.push(format!("egress-only at {vpc:?} {}", words(&gateway.tags)));
    }
    for gateway in cloud.carriers.all() {
        let vpc = gateway.attached_to.map(|vpc| names[&vpc].clone());
        lines.push(format!("carrier at {vpc:?} {}", words(&gateway.tags)));
    }
    for address in cloud.addresses.all() {
        lines.push(format!("eip used {} {}", address.association.is_some(), words(&address.tags)));
    }
    for nat in cloud.nats.all().into_iter().filter(|nat| !nat.is_gone()) {
        let place = if nat.is_regional { "all zones" } else { &*names[&nat.subnet] };
        let eips = nat.allocations.iter().map(|id| names[id].clone()).collect::<Vec<_>>();
        lines.push(format!("nat {:?} in {place} with {eips:?} {}", nat.state, words(&nat.tags)));
    }
    lines.extend(tables(cloud, &names));
    lines.extend(groups(cloud, &names));
    for instance in cloud.instances.all().iter().filter(|instance| Instance::is_live(instance)) {
        lines.push(format!("instance {:?} {}", instance.state, words(&instance.tags)));
    }
    lines.extend(balancers(cloud, &names));
    lines.sort();
    lines
}

/// Lines that only one of two inventories has: nothing, when they are the same.
pub fn differences(found: &[String], wanted: &[String]) -> Vec<String> {
    let only = |left: &[String], right: &[String], mark: &str| -> Vec<String> {
        left.iter()
            .filter(|line| !right.contains(line))
            .map(|line| format!("{mark} {line}"))
            .collect()
    };
    let mut lines = [only(found, wanted, "surplus"), only(wanted, found, "missing")].concat();
    if lines.is_empty() && found.len() != wanted.len() {
        lines.push(format!("{} lines instead of {}", found.len(), wanted.len()));
    }
    lines
}

fn words(tags: &Tags) -> String {
    let known = tags.iter().filter(|(key, _)| *key != ATTEMPT_TAG);
    known.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// A name for each id.
fn names(cloud: &Cloud) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    names.extend(cloud.vpcs.all().into_iter().map(|vpc| (vpc.id, format!("vpc {}", vpc.cidr))));
    names.extend(cloud.subnets.all().into_iter().map(|found| (found.id, found.cidr.to_string())));
    let zone = |tags: &Tags| tags.get(aws_network::NAT_ZONE_TAG).cloned().unwrap_or_default();
    names.extend(
        cloud
            .addresses
            .all()
            .into_iter()
            .map(|found| (found.id, format!("eip {}", zone(&found.tags)))),
    );
    names.extend(
        cloud.nats.all().into_iter().map(|found| (found.id, format!("nat {}", zone(&found.tags)))),
    );
    names.extend(cloud.gateways.all().into_iter().map(|found| (found.id, "igw".to_owned())));
    let egress_only = cloud.egress_only.all().into_iter();
    names.extend(egress_only.map(|found| (found.id, "egress-only".to_owned())));
    names.extend(cloud.carriers.all().into_iter().map(|it| (it.id, "carrier".to_owned())));
    names.extend(cloud.groups.all().into_iter().map(|found| (found.id, found.name)));
    names.extend(cloud.target_groups.all().into_iter().map(|found| (found.arn, found.name)));
    names
}

fn name(names: &BTreeMap<String, String>, id: &str) -> String {
    names.get(id).cloned().unwrap_or_else(|| format!("unknown {id}"))
}

fn tables(cloud: &Cloud, names: &BTreeMap<String, String>) -> Vec<String> {
    let one = |table: &aws_network::RouteTable| {
        let users: Vec<_> = table
            .associations
            .iter()
            .map(|found| found.subnet.as_ref().map(|id| name(names, id)))
            .collect();
        let mut routes: Vec<_> = table
            .routes
            .iter()
            .map(|route| {
                let target = match &route.target {
                    Target::InternetGateway(id)
                    | Target::NatGateway(id)
                    | Target::EgressOnlyGateway(id)
                    | Target::CarrierGateway(id) => name(names, id),
                    Target::Other(id) => id.clone(),
                };
                let dead = if route.blackhole { " (dead)" } else { "" };
                format!("{} to {target}{dead}", route.destination)
            })
            .collect();
        routes.sort();
        format!("table of {users:?} routes {routes:?} {}", words(&table.tags))
    };
    cloud.tables.all().iter().map(one).collect()
}

fn groups(cloud: &Cloud, names: &BTreeMap<String, String>) -> Vec<String> {
    let one = |group: &aws_network::SecurityGroup| {
        let mut rules: Vec<_> = group
            .rules
            .iter()
            .map(|rule| {
                let source = match &rule.key.source {
                    Source::Cidr(cidr) => cidr.to_string(),
                    Source::Group(id) => name(names, id),
                    Source::PrefixList(id) => id.clone(),
                };
                let (protocol, from, to) =
                    (&rule.key.protocol, rule.key.from_port, rule.key.to_port);
                format!("{protocol} {from}-{to} from {source} ({})", rule.description)
            })
            .collect();
        rules.sort();
        format!("group {} {rules:#?} {}", group.name, words(&group.tags))
    };
    cloud.groups.all().iter().map(one).collect()
}

fn balancers(cloud: &Cloud, names: &BTreeMap<String, String>) -> Vec<String> {
    let all = |ids: &[String]| {
        let mut all: Vec<_> = ids.iter().map(|id| name(names, id)).collect();
        all.sort();
        all
    };
    let mut lines = Vec::new();
    for found in cloud.classic.all() {
        lines.push(format!(
            "elb {} {:?} {:?} {:?} {:?} in {:?} with {:?} {}",
            found.name,
            found.scheme,
            found.listeners,
            found.health_check,
            found.attributes.unwrap(),
            all(&found.subnets),
            all(&found.groups),
            words(&found.tags.unwrap())
        ));
    }
    for found in cloud.network.all() {
        let mut listeners: Vec<_> = found
            .listeners
            .iter()
            .map(|one| (one.port, name(names, &one.target_group), words(&one.tags)))
            .collect();
        listeners.sort();
        lines.push(format!(
            "nlb {} {:?} dualstack {} {:?} cross-zone {:?} {listeners:?} in {:?} with {:?} {}",
            found.name,
            found.scheme,
            found.is_dualstack,
            found.state,
            found.cross_zone,
            all(&found.subnets),
            all(&found.groups),
            words(&found.tags)
        ));
    }
    for found in cloud.target_groups.all() {
        lines.push(format!(
            "target group {} ipv6 {} {:?} {:?} {}",
            found.name,
            found.is_ipv6,
            found.health_check,
            found.attributes,
            words(&found.tags)
        ));
    }
    lines
}
