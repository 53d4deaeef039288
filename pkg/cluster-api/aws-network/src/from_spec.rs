//! From the texts of a [`Spec`] to a [`Desired`]: everything that can be found wrong without AWS is
//! found here.

use std::collections::BTreeSet;

use checks::{Errors, read_edge, read_ipv6, read_network};
use cidr::IpNet;

use crate::default_subnets::default_subnets;
use crate::desired::{
    Desired, DesiredBastion, DesiredSubnet, Ipv6Block, NEEDS_REGULAR, NatPolicy, Rank,
    SECONDARY_CIDRS,
};
use crate::spec::{EdgeZones, LoadBalancerSpec, NatMode, Spec, SpecError, SubnetSpec};
use crate::vpc::overlap;

mod checks;
mod groups;
mod load_balancer;

/// Upstream's CIDR of a VPC.
const VPC_CIDR: &str = "10.0.0.0/16";

/// The cheapest type that serves; upstream's t2.micro is not to be had in newer zones.
const BASTION_TYPE: &str = "t3.micro";

/// How the names of regions begin whose partitions have no regional NAT gateway: aws-cn, aws-us-gov,
/// aws-iso and its successors.
const WITHOUT_REGIONAL_NAT: [&str; 4] = ["cn-", "us-gov-", "us-iso", "eu-isoe-"];

impl Desired {
    /// Reads a spec, or says everything that is wrong with it.
    pub fn from_spec(spec: &Spec) -> Result<Self, Vec<SpecError>> {
        let (mut errors, mut doubts) = (Vec::new(), Vec::new());
        checks::check_tags(spec, &mut errors);
        let vpc_cidr = read_vpc_cidr(spec, &mut errors);
        let secondary_cidrs = read_secondary_cidrs(spec, vpc_cidr, &mut errors);
        let ranges = (vpc_cidr, &*secondary_cidrs);
        let edge_zones = EdgeZones { region: spec.region.clone(), known: spec.known_zones.clone() };
        let Some(subnets) = read_subnets(spec, &edge_zones, ranges, (&mut errors, &mut doubts))
        else {
            return Err(errors);
        };
        let nat = read_nat_policy(spec, &subnets, (&mut errors, &mut doubts));
        let groups = groups::read(spec, &mut errors);
        let mut read = |rank, balancer: Option<&LoadBalancerSpec>, errors: &mut Vec<SpecError>| {
            let balancer = balancer?;
            load_balancer::check_subnets(spec, rank, balancer, &subnets, (errors, &mut doubts));
            Some(load_balancer::read(spec, rank, balancer, errors))
        };
        let load_balancer = read(Rank::Primary, spec.load_balancer.as_ref(), &mut errors);
        let secondary_load_balancer =
            read(Rank::Secondary, spec.secondary_load_balancer.as_deref(), &mut errors);
        match vpc_cidr {
            Some(vpc_cidr) if errors.is_empty() => Ok(Self {
                identity: spec.identity.clone(),
                dialect: spec.dialect,
                additional_tags: spec.additional_tags.clone(),
                retired_tags: retired_tags(spec),
                vpc_id: spec.vpc_id.clone(),
                vpc_cidr,
                names_vpc_cidr: spec.vpc_cidr.is_some(),
                ipv6: spec.ipv6,
                secondary_cidrs,
                has_default_subnets: spec.subnets.is_empty(),
                subnets,
                edge_zones,
                nat,
                groups,
                load_balancer,
                secondary_load_balancer,
                bastion: read_bastion(spec),
                prune_subnets: spec.prune_subnets,
                contradictions: doubts,
            }),
            _ => Err([errors, doubts].concat()),
        }
    }
}

fn retired_tags(spec: &Spec) -> BTreeSet<String> {
    let wanted = |key: &&String| !spec.additional_tags.contains_key(*key);
    spec.applied_tags.iter().filter(wanted).cloned().collect()
}

fn read_bastion(spec: &Spec) -> Option<DesiredBastion> {
    spec.bastion.as_ref().map(|bastion| DesiredBastion {
        instance_type: bastion.instance_type.clone().unwrap_or_else(|| BASTION_TYPE.to_owned()),
        image: bastion.image.clone(),
        key: bastion.key.clone(),
    })
}

fn read_vpc_cidr(spec: &Spec, errors: &mut Vec<SpecError>) -> Option<IpNet> {
    let text = spec.vpc_cidr.as_deref().unwrap_or(VPC_CIDR);
    read_network("spec.network.vpc.cidrBlock", text, errors)
}

fn read_secondary_cidrs(
    spec: &Spec,
    vpc: Option<IpNet>,
    errors: &mut Vec<SpecError>,
) -> Vec<IpNet> {
    let mut all: Vec<IpNet> = Vec::new();
    // That of a VPC of the user is not known here.
    let vpc = vpc.filter(|_| spec.vpc_id.is_none());
    for (index, text) in spec.secondary_cidrs.iter().enumerate() {
        let path = format!("{SECONDARY_CIDRS}[{index}].ipv4CidrBlock");
        let Some(cidr) = read_network(&path, text, errors) else { continue };
        if let Some(other) = vpc.iter().chain(&all).find(|other| overlap(&cidr, other)) {
            errors.push(SpecError::new(path, format!("{cidr} overlaps {other} of the VPC")));
        }
        all.push(cidr);
    }
    all
}

/// None when they cannot even be chosen, so that nothing can be said of what lies in them.
fn read_subnets(
    spec: &Spec,
    edges: &EdgeZones,
    (vpc, secondary): (Option<IpNet>, &[IpNet]),
    (errors, doubts): Errors<'_>,
) -> Option<Vec<DesiredSubnet>> {
    if spec.subnets.is_empty() && spec.vpc_id.is_none() {
        let vpc = vpc?;
        let chosen = default_subnets(spec.dialect, vpc, spec.ipv6, &spec.zones);
        if chosen.is_none() {
            let problem = if spec.zones.is_empty() {
                "the zones for default subnets are not known: set spec.network.subnets".to_owned()
            } else {
                format!("{vpc} is too small for the default subnets: set spec.network.subnets")
            };
            errors.push(SpecError::new("spec.network.subnets", problem));
        }
        return chosen;
    }
    let subnets: Vec<_> = spec
        .subnets
        .iter()
        .enumerate()
        .map(|(index, subnet)| read_subnet(spec, edges, (index, subnet), (errors, doubts)))
        .collect();
    if !subnets.is_empty() && subnets.iter().all(|subnet| subnet.edge.is_some()) {
        doubts.push(SpecError::new("spec.network.subnets", NEEDS_REGULAR));
    }
    check_ranges(&subnets, vpc.filter(|_| spec.vpc_id.is_none()), secondary, errors);
    Some(subnets)
}

/// Whether AWS can have chosen this as the id of a subnet, with 8 or 17 digits: a template of upstream has names
/// such as `subnet-zone-2`.
fn is_id(text: &str) -> bool {
    let number = text.strip_prefix("subnet-").unwrap_or_default();
    [8, 17].contains(&number.len())
        && number.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

fn read_subnet(
    spec: &Spec,
    edges: &EdgeZones,
    (index, subnet): (usize, &SubnetSpec),
    (errors, doubts): Errors<'_>,
) -> DesiredSubnet {
    let path = format!("spec.network.subnets[{index}]");
    let (id, name) = match &subnet.id {
        Some(id) if is_id(id) => (Some(id.clone()), None),
        other => (None, other.clone()),
    };
    let cidr = subnet
        .cidr_block
        .as_ref()
        .and_then(|text| read_network(&format!("{path}.cidrBlock"), text, errors));
    if id.is_none() && subnet.cidr_block.is_none() {
        errors.push(SpecError::new(&path, "it has neither cidrBlock nor id"));
    }
    match &subnet.availability_zone {
        Some(zone) if !zone.starts_with(&spec.region) => {
            let problem = format!("{zone:?} is not a zone of region {:?}", spec.region);
            errors.push(SpecError::new(format!("{path}.availabilityZone"), problem));
        }
        None if id.is_none() && spec.vpc_id.is_none() => {
            errors.push(SpecError::new(
                format!("{path}.availabilityZone"),
                "a new subnet needs a zone",
            ));
        }
        _ => {}
    }
    let (zone, public) = (subnet.availability_zone.clone(), subnet.is_public);
    let edge = zone.as_ref().and_then(|zone| read_edge(&path, edges, zone, subnet, doubts));
    // Where the VPC has none, that of a subnet has no effect.
    let ipv6 = match subnet.ipv6_cidr_block.as_ref().filter(|_| spec.ipv6) {
        Some(text) => {
            read_ipv6(&format!("{path}.ipv6CidrBlock"), text, errors).map(Ipv6Block::Cidr)
        }
        None => (subnet.is_ipv6 && spec.ipv6).then_some(Ipv6Block::Free),
    };
    if let Some(edge) = edge.as_ref().filter(|_| ipv6.is_some()) {
        let problem = format!("IPv6 is not supported in {} {}", edge.zone_type.word(), edge.name);
        doubts.push(SpecError::new(path, problem));
    }
    DesiredSubnet { id, name, cidr, zone, edge, public, ipv6, tags: subnet.tags.clone() }
}

fn check_ranges(
    subnets: &[DesiredSubnet],
    vpc: Option<IpNet>,
    secondary: &[IpNet],
    errors: &mut Vec<SpecError>,
) {
    let numbered = || subnets.iter().enumerate();
    let cidrs = numbered().filter_map(|(index, subnet)| Some((index, subnet.cidr?)));
    let ipv6 = numbered().filter_map(|(index, subnet)| match subnet.ipv6? {
        Ipv6Block::Cidr(cidr) => Some((index, cidr)),
        Ipv6Block::Number(_) | Ipv6Block::Free => None,
    });
    let cidrs: Vec<_> = cidrs.chain(ipv6).collect();
    for (number, (index, cidr)) in cidrs.iter().enumerate() {
        let is_ipv4 = matches!(cidr, IpNet::V4(_));
        let field = if is_ipv4 { "cidrBlock" } else { "ipv6CidrBlock" };
        let path = format!("spec.network.subnets[{index}].{field}");
        // That of IPv6 is known once AWS has chosen it.
        let is_inside = |range: &IpNet| range.contains(cidr);
        if let Some(vpc) = vpc.filter(|_| is_ipv4)
            && !is_inside(&vpc)
            && !secondary.iter().any(is_inside)
        {
            errors.push(SpecError::new(&path, format!("{cidr} is not inside the VPC's {vpc}")));
        }
        if let Some((first, other)) = cidrs[..number].iter().find(|(_, other)| overlap(cidr, other))
        {
            let problem = format!("{cidr} overlaps {other} of spec.network.subnets[{first}]");
            errors.push(SpecError::new(path, problem));
        }
    }
}

fn read_nat_policy(
    spec: &Spec,
    subnets: &[DesiredSubnet],
    (errors, doubts): Errors<'_>,
) -> NatPolicy {
    let path = "spec.network.natGateways";
    let all = || subnets.iter().filter(|subnet| subnet.public);
    let mut public = all().filter(|subnet| subnet.edge.is_none());
    match spec.nat_mode {
        // Subnets of a VPC that is not ours get no NAT gateways, whatever they are.
        _ if spec.vpc_id.is_some() => {}
        NatMode::None | NatMode::Regional => {}
        _ if public.clone().next().is_none() => {
            let errors = if all().next().is_none() { errors } else { doubts };
            errors.push(SpecError::new(
                path,
                "a NAT gateway needs a public subnet in an availability zone; add one or set \
                 natGateways.mode to None",
            ));
        }
        NatMode::Single => {
            let is_there = |subnet: &DesiredSubnet| subnet.zone == spec.nat_zone;
            if let Some(zone) = &spec.nat_zone
                && !public.any(is_there)
            {
                let errors = if all().any(is_there) { doubts } else { errors };
                let problem = format!("zone {zone:?} has no public subnet for the NAT gateway");
                errors.push(SpecError::new(format!("{path}.availabilityZone"), problem));
            }
        }
        NatMode::PerZone => {}
    }
    match spec.nat_mode {
        NatMode::PerZone => NatPolicy::PerZone,
        NatMode::Single => NatPolicy::Single(spec.nat_zone.clone()),
        NatMode::None => NatPolicy::None,
        NatMode::Regional => {
            let region = spec.region.clone();
            let is_offered = !WITHOUT_REGIONAL_NAT.iter().any(|start| region.starts_with(start));
            NatPolicy::Regional { region, is_offered }
        }
    }
}

#[cfg(test)]
mod tests;
