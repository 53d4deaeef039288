//! The subnets of a spec that names none, as upstream would make them.

use cidr::{IpNet, Pool};

use crate::desired::{DesiredSubnet, Ipv6Block};
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
    has_ipv6: bool,
    zones: &[String],
) -> Option<Vec<DesiredSubnet>> {
    let mut subnets = match dialect {
        Dialect::V1Alpha2 => one_zone(vpc, zones),
        Dialect::V1Beta2 => many_zones(vpc, zones),
    }?;
    if has_ipv6 {
        number(&mut subnets);
    }
    Some(subnets)
}

/// Upstream's first /64 of IPv6; private subnets come first.
const FIRST_NUMBER: u8 = 2;

fn number(subnets: &mut [DesiredSubnet]) {
    let (public, private): (Vec<_>, Vec<_>) = subnets.iter_mut().partition(|it| it.public);
    for (number, subnet) in (FIRST_NUMBER..).zip(private.into_iter().chain(public)) {
        subnet.ipv6 = Some(Ipv6Block::Number(number));
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
        edge: None,
        public,
        ipv6: None,
        tags: Tags::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(count: usize) -> Vec<String> {
        ["b", "a", "c", "d"][..count].iter().map(|letter| format!("us-east-2{letter}")).collect()
    }

    fn texts(dialect: Dialect, vpc: &str, count: usize) -> Option<Vec<String>> {
        let subnets = default_subnets(dialect, cidr::parse(vpc).unwrap(), false, &zones(count))?;
        let text = |subnet: &DesiredSubnet| {
            let kind = if subnet.public { "public" } else { "private" };
            format!("{kind} {} {}", subnet.cidr.unwrap(), subnet.zone.as_ref().unwrap())
        };
        Some(subnets.iter().map(text).collect())
    }

    #[test]
    fn today_s_default_is_a_small_public_and_a_large_private_subnet_in_each_of_three_zones() {
        assert_eq!(
            texts(Dialect::V1Beta2, "10.0.0.0/16", 4).unwrap(),
            [
                "public 10.0.0.0/20 us-east-2b",
                "public 10.0.16.0/20 us-east-2a",
                "public 10.0.32.0/20 us-east-2c",
                "private 10.0.64.0/18 us-east-2b",
                "private 10.0.128.0/18 us-east-2a",
                "private 10.0.192.0/18 us-east-2c",
            ]
        );
        assert_eq!(
            texts(Dialect::V1Beta2, "10.0.0.0/16", 1).unwrap(),
            ["public 10.0.0.0/17 us-east-2b", "private 10.0.128.0/17 us-east-2b"]
        );
    }

    #[test]
    fn numbers_of_ipv6_begin_with_those_of_private_subnets() {
        let numbers = |dialect, count| -> Vec<(bool, Option<Ipv6Block>)> {
            let vpc = cidr::parse("10.0.0.0/16").unwrap();
            let subnets = default_subnets(dialect, vpc, true, &zones(count)).unwrap();
            subnets.iter().map(|subnet| (subnet.public, subnet.ipv6)).collect()
        };
        let of = |public, number| (public, Some(Ipv6Block::Number(number)));
        assert_eq!(
            numbers(Dialect::V1Beta2, 3),
            [of(true, 5), of(true, 6), of(true, 7), of(false, 2), of(false, 3), of(false, 4)]
        );
        assert_eq!(numbers(Dialect::V1Alpha2, 3), [of(false, 2), of(true, 3)]);
    }

    #[test]
    fn the_older_default_is_two_subnets_of_the_vpc_in_the_first_zone_by_name() {
        assert_eq!(
            texts(Dialect::V1Alpha2, "10.9.0.0/16", 2).unwrap(),
            ["private 10.9.0.0/24 us-east-2a", "public 10.9.1.0/24 us-east-2a"]
        );
        assert_eq!(
            texts(Dialect::V1Alpha2, "10.9.0.0/24", 2).unwrap(),
            ["private 10.9.0.0/25 us-east-2a", "public 10.9.0.128/25 us-east-2a"]
        );
    }

    #[test]
    fn a_vpc_that_is_too_small_and_a_region_without_zones_have_no_default() {
        assert_eq!(texts(Dialect::V1Beta2, "10.0.0.0/26", 3), None);
        assert_eq!(texts(Dialect::V1Alpha2, "10.0.0.0/28", 1), None);
        assert_eq!(texts(Dialect::V1Alpha2, "10.0.0.0/16", 0), None);
        assert_eq!(texts(Dialect::V1Beta2, "10.0.0.0/16", 0), None);
    }
}
