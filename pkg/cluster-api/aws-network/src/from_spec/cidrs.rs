//! CIDRs of a spec.

use cidr::IpNet;

use crate::spec_error::SpecError;

/// The masks that AWS takes, of VPCs and subnets alike.
const MASKS: std::ops::RangeInclusive<u8> = 16..=28;

/// A CIDR of the spec; what is wrong with it is noted.
pub(super) fn read_cidr(path: &str, text: &str, errors: &mut Vec<SpecError>) -> Option<IpNet> {
    match cidr::parse(text) {
        Ok(cidr) => Some(cidr),
        Err(error) => {
            errors.push(SpecError::new(path, error.to_string()));
            None
        }
    }
}

/// The same for a VPC or a subnet, which AWS wants to be IPv4 and neither too large nor too small.
pub(super) fn read_network(path: &str, text: &str, errors: &mut Vec<SpecError>) -> Option<IpNet> {
    let cidr = read_cidr(path, text, errors)?;
    if matches!(cidr, IpNet::V4(_)) && MASKS.contains(&cidr.prefix_len()) {
        return Some(cidr);
    }
    let (least, most) = (MASKS.start(), MASKS.end());
    errors.push(SpecError::new(path, format!("{cidr} is not an IPv4 CIDR of /{least} to /{most}")));
    None
}
