//! The subnets of a spec that names none, as upstream would make them.

use cidr::{IpNet, Pool};

use crate::desired::DesiredSubnet;
use crate::identity::Tags;
use crate::spec::Dialect;

/// Upstream uses so many zones unless told otherwise.
const ZONES: usize = 3;

/// The longest mask of a subnet on AWS.
const LONGEST_MASK: u8 = 28;

/// The default subnets of a VPC, or none when they would be too small for AWS.
pub(crate) fn default_subnets(
    dialect: Dialect,
    vpc: IpNet,
    zones: &[String],
) -> Option<Vec<DesiredSubnet>> {
    match dialect {
        Dialect::V1Alpha2 => one_zone(vpc, zones),
        Dialect::V1Beta2 => many_zones(vpc, zones),
    }
}

/// A private and a public subnet in the first zone: the first two /24, or the halves of a VPC that
/// has no two.
fn one_zone(vpc: IpNet, zones: &[String]) -> Option<Vec<DesiredSubnet>> {
    let zone = zones.iter().min()?;
    let mask = (vpc.prefix_len() + 1).max(24);
    let private = subnet(block(vpc, mask, 0)?, zone, false);
    Some(vec![private, subnet(block(vpc, mask, 1)?, zone, true)])
}

/// Equal blocks, one more than zones, rounded up to a power of two; the first block is divided
/// for public subnets.
fn many_zones(vpc: IpNet, zones: &[String]) -> Option<Vec<DesiredSubnet>> {
    let zones = zones.get(..ZONES.min(zones.len())).filter(|zones| !zones.is_empty())?;
    let private_mask = vpc.prefix_len() + bits_for(zones.len() + 1);
    let public_mask = private_mask + bits_for(zones.len());
    let mut subnets = Vec::new();
    for (index, zone) in (0..).zip(zones) {
        subnets.push(subnet(block(vpc, public_mask, index)?, zone, true));
    }
    for (index, zone) in (1..).zip(zones) {
        subnets.push(subnet(block(vpc, private_mask, index)?, zone, false));
    }
    Some(subnets)
}

/// Bits that number so many blocks.
fn bits_for(blocks: usize) -> u8 {
    match blocks {
        0 | 1 => 0,
        2 => 1,
        _ => 2,
    }
}

fn block(vpc: IpNet, mask: u8, index: u128) -> Option<IpNet> {
    if mask > LONGEST_MASK {
        return None;
    }
    Pool::new(vpc, mask, 0).ok()?.block(index)
}

fn subnet(cidr: IpNet, zone: &str, public: bool) -> DesiredSubnet {
    DesiredSubnet {
        id: None,
        name: None,
        cidr: Some(cidr),
        zone: Some(zone.to_owned()),
        public,
        tags: Tags::new(),
    }
}

#[cfg(test)]
mod tests;
