//! Fields of the status of an AWSCluster: the condition of each part, endpoint and addresses, and
//! the [`NetworkIds`] of the VPC and its subnets.

use std::net::Ipv4Addr;

use cidr::IpNet;

use crate::addresses::public_ips;
use crate::desired::{Desired, DesiredSubnet};
use crate::observed::Observed;
use crate::plan::{Part, Plan, Problem};
use crate::resources::{InternetGateway, Subnet};
use crate::spec::{LoadBalancerKind, Zone};
use crate::subnets::{is_meant, is_public};
use crate::tags::NAME_TAG;

/// How a part is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The part of the network.
    pub part: Part,
    /// Whether the part is as the spec says.
    pub is_true: bool,
    /// The reason as one CamelCase word, upstream's where it has one.
    pub reason: &'static str,
    /// The waits or problems.
    pub message: String,
}

/// The condition of each part, given what a reconciliation that rests has planned and met.
pub fn conditions(
    desired: &Desired,
    observed: &Observed,
    plan: &Plan,
    problems: &[Problem],
) -> Vec<Condition> {
    let is_wanted = |part: &Part| match part {
        Part::SecondaryCidrs => !desired.secondary_cidrs.is_empty(),
        Part::EgressOnlyGateway => desired.ipv6,
        Part::CarrierGateway => desired.has_carrier_gateway(observed),
        Part::Bastion => desired.bastion.is_some(),
        Part::LoadBalancer => desired.load_balancer.is_some(),
        Part::SecondaryLoadBalancer => desired.secondary_load_balancer.is_some(),
        _ => true,
    };
    Part::OF_A_CLUSTER
        .into_iter()
        .filter(is_wanted)
        .map(|part| condition(part, plan, problems))
        .collect()
}

/// Everything that the cluster needs is there.
pub fn is_ready(conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| condition.is_true || !condition.part.is_mandatory())
}

fn condition(part: Part, plan: &Plan, problems: &[Problem]) -> Condition {
    let of_part = || problems.iter().filter(move |problem| problem.part == part);
    let waits: Vec<_> =
        plan.waits.iter().filter(|wait| wait.part == part).map(|wait| wait.what.as_str()).collect();
    let in_the_way: Vec<_> = of_part().filter(|problem| !problem.reason.is_advice()).collect();
    if let Some(first) = in_the_way.first() {
        let messages = in_the_way.iter().map(|problem| problem.message.as_str());
        let message = listed(&messages.collect::<Vec<_>>());
        return Condition { part, is_true: false, reason: first.reason.as_str(), message };
    }
    if !waits.is_empty() {
        return Condition { part, is_true: false, reason: "Waiting", message: waits.join("; ") };
    }
    // What comes first is not there yet, so that nothing was planned here.
    let is_blocked = problems.iter().any(|problem| {
        let comes_first = matches!(problem.part, Part::Vpc | Part::Subnets) && problem.part < part;
        comes_first && !problem.reason.is_advice()
    });
    if plan.is_busy(part) || !plan.reads.is_empty() || is_blocked {
        let message = "not complete yet".to_owned();
        return Condition { part, is_true: false, reason: "Creating", message };
    }
    let advice = of_part().next();
    Condition {
        part,
        is_true: true,
        reason: advice.map_or("Complete", |problem| problem.reason.as_str()),
        message: advice.map(|problem| problem.message.clone()).unwrap_or_default(),
    }
}

/// Most texts in one message.
const LISTED: usize = 5;

/// Several texts as one message: the first few, and how many more there are.
pub fn listed(texts: &[&str]) -> String {
    let first = texts.iter().take(LISTED).copied().collect::<Vec<_>>().join("; ");
    match texts.len().checked_sub(LISTED) {
        Some(more @ 1..) => format!("{first}; and {more} more"),
        _ => first,
    }
}

/// Ids and addresses of a cluster's network that other controllers use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// The VPC.
    pub vpc: Option<String>,
    /// The DNS name of the load balancer.
    pub endpoint: Option<String>,
    /// The public addresses of traffic from private subnets, for the allow-lists of others.
    pub nat_addresses: Vec<Ipv4Addr>,
    /// Zones that can hold instances, and whether the load balancer serves them; by name.
    pub failure_domains: Vec<(String, bool)>,
    /// The public address of the bastion.
    pub bastion: Option<Ipv4Addr>,
}

/// Ids and addresses that other controllers use, as far as they are known.
pub fn outputs(desired: &Desired, observed: &Observed, vpc: Option<&str>) -> Outputs {
    let balancer = desired.load_balancer.as_ref();
    let seen = balancer.and_then(|wanted| match wanted.kind {
        LoadBalancerKind::Classic => {
            let found = observed.classic.of_id(&wanted.name)?;
            Some((found.dns_name.clone(), found.subnets.clone()))
        }
        LoadBalancerKind::Network => {
            let found = observed.network.all().iter().find(|found| found.name == wanted.name)?;
            Some((found.dns_name.clone(), found.subnets.clone()))
        }
    });
    let (endpoint, served) = seen.unwrap_or_default();
    let bastions = observed.bastions.all().iter();
    Outputs {
        vpc: vpc.map(str::to_owned),
        endpoint: Some(endpoint).filter(|name| !name.is_empty()),
        nat_addresses: public_ips(observed, |tags, _| desired.identity.owns(tags))
            .into_iter()
            .collect(),
        failure_domains: failure_domains(desired, observed, &served),
        bastion: bastions.filter(|found| found.is_live()).find_map(|found| found.public_ip),
    }
}

/// Every availability zone of a private subnet; of a public one where there is no private one.
fn failure_domains(
    desired: &Desired,
    observed: &Observed,
    served: &[String],
) -> Vec<(String, bool)> {
    let known = observed.subnets.all();
    let found = |wanted: &DesiredSubnet| known.iter().find(|found| is_meant(wanted, found));
    let zones = |public: bool| -> std::collections::BTreeSet<&str> {
        let of_kind = desired.subnets.iter().filter(|subnet| subnet.public == public);
        let zones = of_kind.filter_map(found).map(|found| found.zone.as_str());
        zones.filter(|zone| desired.edge_zones.find(zone).is_none()).collect()
    };
    let (private, public) = (zones(false), zones(true));
    let zones = if private.is_empty() { public } else { private };
    let is_served =
        |zone: &str| known.iter().any(|found| found.zone == zone && served.contains(&found.id));
    zones.into_iter().map(|zone| (zone.to_owned(), is_served(zone))).collect()
}

/// The VPC of a cluster, and its subnets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkIds {
    /// The id of the VPC.
    pub vpc: String,
    /// CIDR.
    pub cidr: IpNet,
    /// The internet gateway that is attached to it, if that is ours.
    pub internet_gateway: Option<String>,
    /// Its carrier gateway, if that is ours.
    pub carrier_gateway: Option<String>,
    /// The ids of each subnet of the spec, or of the chosen subnets, in their order.
    pub subnets: Vec<SubnetIds>,
}

/// A subnet of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetIds {
    /// Id.
    pub id: String,
    /// Name in the tag `Name`; empty without one.
    pub name: String,
    /// CIDR.
    pub cidr: IpNet,
    /// IPv6 CIDR, where the spec asks for one.
    pub ipv6: Option<IpNet>,
    /// Zone.
    pub zone: String,
    /// What is known of its zone, where that is an edge zone.
    pub edge: Option<Zone>,
    /// Whether it has a route to an internet gateway.
    pub public: bool,
    /// The route table that it uses.
    pub route_table: Option<String>,
    /// The NAT gateway in it, if that is ours.
    pub nat_gateway: Option<String>,
}

/// Where all of it lies; none while a part of that is not known.
pub fn network_ids(desired: &Desired, observed: &Observed) -> Option<NetworkIds> {
    let vpcs = observed.vpcs.all();
    let vpc = match &desired.vpc_id {
        Some(id) => observed.vpcs.of_id(id)?,
        None => {
            let mut ours = vpcs.iter().filter(|vpc| desired.identity.owns(&vpc.tags));
            // Of several it is not known here which one counts.
            ours.next().filter(|_| ours.next().is_none())?
        }
    };
    let is_managed = desired.identity.owns(&vpc.tags);
    let here: Vec<_> =
        observed.subnets.all().iter().filter(|subnet| subnet.vpc == vpc.id).collect();
    let ids_of = |wanted: &DesiredSubnet| {
        let found = *here.iter().find(|found| is_meant(wanted, found))?;
        let public = if is_managed { wanted.public } else { is_public(observed, &vpc.id, found) };
        let ids = subnet_ids(desired, observed, found, public);
        Some(SubnetIds { ipv6: found.ipv6.filter(|_| wanted.ipv6.is_some()), ..ids })
    };
    let mut gateways =
        observed.attached_gateways.all().iter().chain(observed.internet_gateways.all());
    let mut carrier = observed.carrier_gateways.all().iter();
    let is_here = |gateway: &&InternetGateway| {
        gateway.attached_to.as_ref() == Some(&vpc.id) && desired.identity.owns(&gateway.tags)
    };
    Some(NetworkIds {
        vpc: vpc.id.clone(),
        cidr: vpc.cidr,
        internet_gateway: gateways.find(is_here).map(|gateway| gateway.id.clone()),
        carrier_gateway: carrier.find(is_here).map(|gateway| gateway.id.clone()),
        subnets: desired.subnets.iter().map(ids_of).collect::<Option<_>>()?,
    })
}

fn subnet_ids(desired: &Desired, observed: &Observed, found: &Subnet, public: bool) -> SubnetIds {
    let tables = observed.route_tables.all().iter();
    let mut tables = tables.filter(|table| table.association_of(&found.id).is_some());
    let mut nats =
        observed.nat_gateways.all().iter().filter(|nat| {
            nat.is_live() && nat.subnet == found.id && desired.identity.owns(&nat.tags)
        });
    SubnetIds {
        id: found.id.clone(),
        name: found.tags.get(NAME_TAG).cloned().unwrap_or_default(),
        cidr: found.cidr,
        ipv6: None,
        zone: found.zone.clone(),
        edge: desired.edge_zones.find(&found.zone),
        public,
        route_table: tables.next().map(|table| table.id.clone()),
        nat_gateway: nats.next().map(|nat| nat.id.clone()),
    }
}
