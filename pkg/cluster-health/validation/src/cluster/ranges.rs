//! CIDRs of Pods and Services.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::field::Field;
use crate::findings::Findings;
use crate::formats;

/// Bits of a range that has an eleventh address: the tenth is the DNS server's, the first the
/// network's.
const BITS_FOR_DNS: u8 = 4;

const TWO_FAMILIES: &str = "must be one CIDR of each family";
const NO_DUAL_STACK: &str = "must be one CIDR; two need features.ipv6DualStack";

pub(super) fn check(spec: &Field<'_>, is_baremetal: bool, findings: &mut Findings) {
    let is_dual = spec.at(&["features", "ipv6DualStack"]).is_true();
    if is_baremetal {
        pods(spec, is_dual, findings);
    }
    services(spec, is_dual, findings);
}

fn pods(spec: &Field<'_>, is_dual: bool, findings: &mut Findings) {
    let at = spec.field("clusterCIDR");
    let Some(text) = at.word() else {
        return findings.required(&at, "the range of Pods, such as 10.244.0.0/16");
    };
    let ranges = match read(text, is_dual) {
        Ok(ranges) => ranges,
        Err(problem) => return findings.invalid(&at, problem),
    };
    for machine in spec.field("machines").items() {
        let ip = machine.field("ip");
        let address = ip.text().and_then(formats::ip);
        if address.is_some_and(|address| holds(&ranges, address)) {
            findings.invalid(&at, &format!("must not contain the address of {}", machine.path()));
        }
    }
}

fn holds(ranges: &[IpNet], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

fn services(spec: &Field<'_>, is_dual: bool, findings: &mut Findings) {
    let at = spec.field("serviceCIDR");
    let Some(text) = at.word() else { return };
    let ranges = match read(text, is_dual) {
        Ok(ranges) => ranges,
        Err(problem) => return findings.invalid(&at, problem),
    };
    let pods = spec.field("clusterCIDR").word().and_then(|text| read(text, true).ok());
    if ranges.iter().any(|range| pods.iter().flatten().any(|pods| overlap(pods, range))) {
        findings.invalid(&at, "must not overlap spec.clusterCIDR");
    }
    let is_small =
        |range: &IpNet| range.max_prefix_len().saturating_sub(range.prefix_len()) < BITS_FOR_DNS;
    if ranges.iter().any(is_small) {
        findings.invalid(&at, "must have 16 addresses: the tenth Service is the DNS server");
    }
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// One range, or in dual stack two.
pub(crate) fn read(text: &str, is_dual: bool) -> Result<Vec<IpNet>, &'static str> {
    let ranges: Option<Vec<IpNet>> = text.split(',').map(formats::cidr).collect();
    let ranges = ranges.ok_or(formats::CIDR)?;
    let is_v4 = |range: &&IpNet| matches!(range, IpNet::V4(_));
    let of_v4 = ranges.iter().filter(is_v4).count();
    match (ranges.len(), of_v4) {
        (1, _) => Ok(ranges),
        (2, 1) if is_dual => Ok(ranges),
        _ if is_dual => Err(TWO_FAMILIES),
        _ => Err(NO_DUAL_STACK),
    }
}
