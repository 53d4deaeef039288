//! Subnets: known by their CIDR in the VPC, or by the id that the spec gives.

use cidr::{IpNet, Pool};

use crate::action::Action;
use crate::desired::{DesiredSubnet, Ipv6Block, is_wavelength};
use crate::identity::{Ownership, ROLE_TAG};
use crate::memory::LogicalId;
use crate::observed::Observed;
use crate::plan::{Part, Plan, RECHECK, Reason, Situation};
use crate::query::Query;
use crate::resources::{RouteTable, Subnet, Target};
use crate::spec::Zone;
use crate::tags::BALANCER_TAGS;
use crate::vpc::Home;

/// AWS takes no other mask for a subnet than this.
const IPV6_MASK: u8 = 64;

/// A desired subnet that exists.
#[derive(Clone, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) cidr: IpNet,
    pub(crate) zone: &'a str,
    /// Its zone, where that is an edge zone.
    pub(crate) edge: Option<Zone>,
    pub(crate) public: bool,
    /// Whether it has an IPv6 CIDR that the network uses.
    pub(crate) ipv6: bool,
    pub(crate) available: bool,
}

/// The desired subnets, as far as they exist, in the order of the spec.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subnets<'a> {
    pub(crate) placed: Vec<Placed<'a>>,
    /// All of them exist and can be used.
    pub(crate) are_complete: bool,
}

impl<'a> Subnets<'a> {
    /// The subnets in availability zones, where control planes, load balancers and bastions are.
    pub(crate) fn regular(&self) -> impl Iterator<Item = &Placed<'a>> {
        self.placed.iter().filter(|subnet| subnet.edge.is_none())
    }
}

/// Plans the subnets. None as long as they were not read.
pub(crate) fn plan<'a>(
    situation: &Situation<'a>,
    home: &Home<'a>,
    plan: &mut Plan,
) -> Option<Subnets<'a>> {
    let look = Query::Subnets(home.scope());
    let Some(found) = situation.observed.subnets.get() else {
        plan.read(look);
        return None;
    };
    let present: Vec<_> = found.iter().filter(|subnet| subnet.vpc == home.id).collect();
    if situation.desired.subnets.is_empty() {
        let message = "the VPC of spec.network.vpc.id needs spec.network.subnets with its subnets";
        plan.problem(Part::Subnets, Reason::InvalidConfiguration, message);
        return None;
    }
    if !home.is_managed && situation.observed.route_tables.get().is_none() {
        plan.read(Query::RouteTables(home.scope()));
        return None;
    }
    let mut placed = Vec::new();
    let blocks = ipv6_blocks(&situation.desired.subnets, &present, home.ipv6_cidr());
    for (subnet, block) in situation.desired.subnets.iter().zip(blocks) {
        match present.iter().find(|found| is_meant(subnet, found)) {
            Some(found) => placed.extend(keep(situation, home, subnet, found, plan)),
            None => make(situation, home, subnet, block, plan),
        }
    }
    if home.is_managed {
        report_surplus(situation, &present, &placed, plan);
    }
    let available = placed.iter().filter(|subnet| subnet.available).count();
    Some(Subnets { are_complete: available == situation.desired.subnets.len(), placed })
}

pub(crate) fn is_meant(wanted: &DesiredSubnet, found: &Subnet) -> bool {
    match &wanted.id {
        Some(id) => *id == found.id,
        None => wanted.cidr == Some(found.cidr),
    }
}

/// The IPv6 CIDR that each subnet has if it is created now. Free ones are given in the order of the
/// spec, so that faults between creations do not change them.
fn ipv6_blocks(
    wanted: &[DesiredSubnet],
    present: &[&Subnet],
    range: Option<IpNet>,
) -> Vec<Option<IpNet>> {
    let pool = range.and_then(|range| Pool::new(range, IPV6_MASK, IPV6_MASK).ok());
    let block = |number: u128| pool.as_ref()?.block(number);
    let said = |subnet: &DesiredSubnet| match subnet.ipv6.filter(|_| range.is_some())? {
        Ipv6Block::Cidr(cidr) => Some(cidr),
        Ipv6Block::Number(number) => block(number.into()),
        Ipv6Block::Free => None,
    };
    let mut taken: Vec<_> = present.iter().filter_map(|subnet| subnet.ipv6).collect();
    taken.extend(wanted.iter().filter_map(said));
    let mut free = move || {
        let is_free =
            |cidr: &IpNet| taken.iter().all(|it| !it.contains(cidr) && !cidr.contains(it));
        let found = (0..).map_while(block).find(is_free)?;
        taken.push(found);
        Some(found)
    };
    let exists = |subnet: &DesiredSubnet| present.iter().any(|found| is_meant(subnet, found));
    let choose = |subnet: &DesiredSubnet| match subnet.ipv6 {
        Some(Ipv6Block::Free) if !exists(subnet) => free(),
        _ => said(subnet),
    };
    wanted.iter().map(choose).collect()
}

fn make(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnet: &DesiredSubnet,
    ipv6: Option<IpNet>,
    plan: &mut Plan,
) {
    let range = home.ipv6_cidr();
    if subnet.ipv6.is_some() && home.ipv6.is_some() && ipv6.is_none() {
        // That of the VPC is awaited, or all of it is used.
        if let Some(range) = range {
            let message = format!("{range} of {} has no free /64 for another subnet", home.id);
            plan.problem(Part::Subnets, Reason::QuotaExceeded, message);
        }
        return;
    }
    if let (Some(range), Some(ipv6)) = (range, ipv6)
        && !range.contains(&ipv6)
    {
        let message = format!("{ipv6} is not inside {range} of {}", home.id);
        plan.problem(Part::Subnets, Reason::InvalidConfiguration, message);
        return;
    }
    let desired = situation.desired;
    let is_of_secondary =
        |cidr: IpNet| desired.secondary_cidrs.iter().any(|range| range.contains(&cidr));
    match (subnet.cidr, &subnet.zone, &subnet.id) {
        (Some(cidr), ..) if is_of_secondary(cidr) && !home.can_hold(&cidr) => {}
        (Some(cidr), Some(zone), None) if home.is_managed => {
            let tags = situation.desired.subnet_tags(subnet, zone);
            let (vpc, zone) = (home.id.to_owned(), zone.clone());
            let create = Action::CreateSubnet { vpc, cidr, ipv6, zone, tags };
            situation.create(Part::Subnets, create, &situation.observed.subnets, plan);
        }
        _ => {
            let text = subnet.cidr.map(|cidr| cidr.to_string());
            let which = subnet.id.clone().or(text).unwrap_or_default();
            let message = format!("subnet {which} of the spec does not exist in {}", home.id);
            plan.problem(Part::Subnets, Reason::NotFound, message);
        }
    }
}

/// A subnet that exists, or none when it is somebody else's or in the wrong place.
fn keep<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    wanted: &'a DesiredSubnet,
    found: &'a Subnet,
    plan: &mut Plan,
) -> Option<Placed<'a>> {
    let logical = LogicalId::Subnet(found.cidr.to_string());
    let named = wanted.id.is_some();
    let ownership = situation.ownership(&found.tags, &found.id, &logical);
    let ours = ownership == Ownership::Ours;
    // A subnet of the user is used where the spec names it.
    if home.is_managed && !ours && (!named || ownership == Ownership::Upstreams) {
        let message =
            format!("{} has {} and does not belong to this cluster", found.id, found.cidr);
        plan.problem(Part::Subnets, Reason::OwnershipConflict, message);
        return None;
    }
    if wanted.zone.as_ref().is_some_and(|zone| *zone != found.zone) {
        let message =
            format!("{} is in zone {}: the zone of a subnet is fixed", found.id, found.zone);
        plan.problem(Part::Subnets, Reason::Immutable, message);
        return None;
    }
    if !found.available {
        let look = Query::Subnets(home.scope());
        plan.wait(Part::Subnets, format!("{} is pending", found.id), RECHECK, look);
    }
    let public =
        if home.is_managed { wanted.public } else { is_public(situation.observed, home.id, found) };
    // In a network of ours others may have given a subnet IPv6, with routes of their own.
    let is_asked_for = wanted.ipv6.is_some() || !home.is_managed || !situation.desired.ipv6;
    let ipv6 = home.ipv6.is_some() && is_asked_for && found.ipv6.is_some();
    if home.is_managed && ours {
        correct(situation, wanted, found, plan);
        correct_ipv6(home, wanted, found, plan);
    }
    let edge = wanted.edge.clone();
    Some(Placed {
        id: &found.id,
        name: wanted.name.as_deref(),
        cidr: found.cidr,
        zone: &found.zone,
        edge: edge.or_else(|| situation.desired.edge_zones.find(&found.zone)),
        public,
        ipv6,
        available: found.available,
    })
}

fn correct(situation: &Situation<'_>, wanted: &DesiredSubnet, found: &Subnet, plan: &mut Plan) {
    let desired = situation.desired;
    let role = found.tags.get(ROLE_TAG).map(String::as_str);
    let other = if wanted.public { "private" } else { "public" };
    if role == Some(other) && !wanted.tags.contains_key(ROLE_TAG) {
        let message =
            format!("{} was created as a {other} subnet, but the spec has changed that", found.id);
        plan.problem(Part::Subnets, Reason::Immutable, message);
        return;
    }
    let edge = desired.edge_zones.find(&found.zone);
    let mut retired = desired.retired_tags.clone();
    // Upstream sets them where it looks at the subnet again.
    retired.extend(edge.iter().flat_map(|_| BALANCER_TAGS).map(str::to_owned));
    let tags = desired.subnet_tags(wanted, &found.zone);
    plan.tags.compare(&found.id, &found.tags, &tags, &retired);
    // In a wavelength zone AWS refuses it: there instances get addresses of the carrier.
    let enabled = wanted.public && !edge.as_ref().is_some_and(is_wavelength);
    if found.map_public_ip != enabled {
        let subnet = found.id.clone();
        plan.act(Part::Subnets, Action::SetMapPublicIp { subnet, enabled });
    }
}

fn correct_ipv6(home: &Home<'_>, wanted: &DesiredSubnet, found: &Subnet, plan: &mut Plan) {
    let Some(block) = wanted.ipv6.filter(|_| home.ipv6.is_some()) else { return };
    let differs = matches!(block, Ipv6Block::Cidr(cidr) if found.ipv6 != Some(cidr));
    if differs || found.ipv6.is_none() {
        let has = found.ipv6.map_or_else(|| "no IPv6 CIDR".to_owned(), |cidr| cidr.to_string());
        let message = format!(
            "{} has {has}, but the spec has another: associate it with the subnet",
            found.id
        );
        plan.problem(Part::Subnets, Reason::Immutable, message);
    } else if !found.assigns_ipv6 {
        plan.act(Part::Subnets, Action::AssignIpv6 { subnet: found.id.clone() });
    }
}

/// A subnet of somebody else's VPC is public by its tag, or by a route to an internet gateway or a carrier gateway.
pub(crate) fn is_public(observed: &Observed, vpc: &str, subnet: &Subnet) -> bool {
    let tables = observed.route_tables.all();
    let here = || tables.iter().filter(|table| table.vpc == vpc);
    let explicit = here().find(|table| table.association_of(&subnet.id).is_some());
    let table = explicit.or_else(|| here().find(|table| table.is_main()));
    let leads_out = |table: &RouteTable| {
        let is_gateway =
            |it: &Target| matches!(it, Target::InternetGateway(_) | Target::CarrierGateway(_));
        table.routes.iter().any(|route| is_gateway(&route.target))
    };
    subnet.tags.get(ROLE_TAG).is_some_and(|role| role == "public") || table.is_some_and(leads_out)
}

fn report_surplus(
    situation: &Situation<'_>,
    present: &[&Subnet],
    placed: &[Placed<'_>],
    plan: &mut Plan,
) {
    let wanted = |subnet: &Subnet| {
        placed.iter().any(|placed| placed.id == subnet.id)
            || situation.desired.subnets.iter().any(|wanted| is_meant(wanted, subnet))
    };
    let surplus =
        present.iter().filter(|subnet| situation.identity().owns(&subnet.tags) && !wanted(subnet));
    for subnet in surplus {
        if situation.desired.prune_subnets {
            // AWS refuses as long as anything uses it.
            plan.act(Part::Subnets, Action::DeleteSubnet { subnet: subnet.id.clone() });
        } else {
            let message = format!(
                "{} with {} belongs to this cluster but is not in the spec",
                subnet.id, subnet.cidr
            );
            plan.problem(Part::Subnets, Reason::SurplusSubnet, message);
        }
    }
}
