//! Rules of ClusterCIDR: ranges for the Pods of Nodes.

use ipnet::IpNet;

use crate::findings::Findings;
use crate::formats::{self, IMMUTABLE};
use crate::node_selector;
use crate::place::Place;
use crate::subject::Subject;

/// The fewest address bits inside a block.
pub(crate) const FEWEST_HOST_BITS: i64 = 4;
/// The most: of the largest block that an IPv6 range can have.
pub(crate) const MOST_HOST_BITS: i64 = 124;

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    if spec.is_absent() {
        return findings.required(&spec, "the ranges");
    }
    let ranges = ranges(&spec, findings);
    host_bits(&spec.field("perNodeHostBits"), &ranges, findings);
    node_selector::check(&spec.field("nodeSelector"), findings);
    // The last: of a spec that is said to be missing nothing more is said.
    if ["ipv4", "ipv6"].iter().all(|name| spec.field(name).is_absent()) {
        findings.required(&spec, "at least one of ipv4 and ipv6");
    }
    let Some(old) = subject.old_spec() else { return };
    for name in ["perNodeHostBits", "ipv4", "ipv6", "nodeSelector"] {
        let (now, before) = (spec.field(name), old.field(name));
        if now.value() != before.value() {
            findings.invalid(&now, IMMUTABLE);
        }
    }
}

fn ranges(spec: &Place<'_>, findings: &mut Findings) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    let (ipv4, ipv6) = (spec.field("ipv4"), spec.field("ipv6"));
    for (at, family, is_v4) in
        [(&ipv4, "must be an IPv4 CIDR", true), (&ipv6, "must be an IPv6 CIDR", false)]
    {
        match at.text().map(formats::cidr) {
            None => {}
            Some(Some(range)) if matches!(range, IpNet::V4(_)) == is_v4 => ranges.push(range),
            Some(Some(_)) => findings.invalid(at, family),
            Some(None) => findings.invalid(at, formats::CIDR),
        }
    }
    ranges
}

fn host_bits(at: &Place<'_>, ranges: &[IpNet], findings: &mut Findings) {
    let Some(bits) = at.number() else {
        return findings.required(at, "the address bits inside of a block, such as 8");
    };
    // Of others it is told already that no range has blocks of them.
    if bits > MOST_HOST_BITS {
        return;
    }
    for range in ranges {
        let room = i64::from(range.max_prefix_len().saturating_sub(range.prefix_len()));
        if bits > room {
            findings.invalid(at, &format!("must be less than or equal to {room} for {range}"));
        }
    }
}
