//! Rules of TKEStack's Cluster and ClusterCredential. `addresses.rs` has those of ways to the API server,
//! the credentials and what stays as it was made.

mod addresses;

use std::collections::BTreeSet;
use std::net::IpAddr;

use addresses::BAREMETAL;
use ipnet::IpNet;

use super::field::Field;
use super::findings::Findings;
use super::subject::Subject;
use super::{formats, subject};
pub(crate) use addresses::check_credential;

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    subject::check_type(&spec, &subject.environment.cluster_types, findings);
    version(subject, findings);
    check_sizes(&spec, findings);
    let is_baremetal = spec.field("type").text() == Some(BAREMETAL);
    check_ranges(&spec, is_baremetal, findings);
    check_masters(&spec, is_baremetal, findings);
    check_features(&spec, findings);
    addresses::check(&subject.root(), findings);
    addresses::check_constant(subject, findings);
    changes(subject, findings);
}

/// Rules about other objects.
pub(crate) fn about_others(subject: &Subject<'_>, findings: &mut Findings) {
    let new_masters = added(subject);
    subject::clusters(subject, findings);
    if subject.is_new() || new_masters > 0 {
        subject::licensed_nodes(subject, new_masters, findings);
        subject::licensed_cpus(subject, findings);
    }
    addresses::credential_pair(subject, findings);
}

/// Rules about the network.
pub(crate) fn network(subject: &Subject<'_>, findings: &mut Findings) {
    answer(subject, findings);
    addresses::addresses(subject, findings);
    addresses::credential(subject, findings);
    addresses::import(subject, findings);
}

fn version(subject: &Subject<'_>, findings: &mut Findings) {
    let (of, version) = (subject.spec().field("type"), subject.spec().field("version"));
    if of.text() != Some(BAREMETAL) || !subject.is_new() {
        return;
    }
    let supported = &subject.environment.supported_versions;
    match version.word() {
        None => findings.required(&version, "the version of Kubernetes to install"),
        Some(text) if !supported.is_empty() && !supported.iter().any(|known| known == text) => {
            findings.not_supported(
                &version,
                &version.shown(),
                supported.iter().map(String::as_str),
            );
        }
        Some(_) => {}
    }
}

fn check_sizes(spec: &Field<'_>, findings: &mut Findings) {
    let services = spec.at(&["properties", "maxClusterServiceNum"]);
    if !services.is_absent() && spec.field("serviceCIDR").word().is_some() {
        findings.forbidden(&services, "spec.serviceCIDR says how many Services there are");
    }
}

fn check_features(spec: &Field<'_>, findings: &mut Findings) {
    let features = spec.field("features");
    let ipvs = features.field("ipvs");
    if ipvs.is_true() && spec.field("serviceCIDR").word().is_none() {
        findings.invalid(&ipvs, "needs spec.serviceCIDR");
    }
    let ha = features.field("ha");
    let (own, others) = (ha.field("tke"), ha.field("thirdParty"));
    for kind in [&own, &others] {
        let vip = kind.field("vip");
        if !kind.is_absent() && vip.text().and_then(formats::ip).is_none() {
            findings.invalid(&vip, formats::IP);
        }
    }
    let port = others.field("vport");
    if !others.is_absent() && port.is_absent() {
        findings.invalid(&port, formats::PORT);
    }
}

fn check_masters(spec: &Field<'_>, is_baremetal: bool, findings: &mut Findings) {
    let machines = spec.field("machines");
    if is_baremetal && machines.items().next().is_none() {
        findings.required(&machines, "a Cluster of type Baremetal has masters");
    }
    let mut seen = BTreeSet::new();
    for machine in machines.items() {
        subject::check(&machine, findings);
        let ip = machine.field("ip");
        if ip.word().is_some_and(|text| !seen.insert(text)) {
            findings.duplicate(&ip);
        }
    }
}

/// How the machines of a stored Cluster may change.
fn changes(subject: &Subject<'_>, findings: &mut Findings) {
    let (spec, Some(old)) = (subject.spec(), subject.old_spec()) else { return };
    if old.field("type").text() != Some(BAREMETAL) {
        return;
    }
    let machines = spec.field("machines");
    let (before, after) = (addresses(&old), addresses(&spec));
    let (adds, removes) = (!after.is_subset(&before), !before.is_subset(&after));
    if adds && removes {
        findings.invalid(&machines, "machines are added or removed, not both at once");
    }
    let first = old.field("machines").items().next();
    let first = first.and_then(|machine| machine.field("ip").word());
    if first.is_some_and(|ip| !after.contains(ip)) {
        findings.invalid(&machines, "the first machine stays");
    }
    let high_availability = spec.at(&["features", "ha"]);
    let has_ha =
        ["tke", "thirdParty"].iter().any(|kind| !high_availability.field(kind).is_absent());
    if (adds || removes) && !has_ha {
        let why =
            "machines are added and removed only with features.ha.tke or features.ha.thirdParty";
        findings.invalid(&machines, why);
    }
}

/// How many machines there are that were none before.
fn added(subject: &Subject<'_>) -> usize {
    let before = subject.old_spec().map(|old| addresses(&old)).unwrap_or_default();
    addresses(&subject.spec()).difference(&before).count()
}

/// Reports the network checks of machines that are new or have a new address or login.
fn answer(subject: &Subject<'_>, findings: &mut Findings) {
    let old: Vec<Field<'_>> =
        subject.old_spec().into_iter().flat_map(|old| old.field("machines").items()).collect();
    for machine in subject.spec().field("machines").items() {
        if !old.iter().any(|old| subject::is_same(old, &machine)) {
            subject::answers(subject, &machine, findings);
        }
    }
}

fn addresses<'a>(spec: &Field<'a>) -> BTreeSet<&'a str> {
    spec.field("machines").items().filter_map(|machine| machine.field("ip").word()).collect()
}

/// Bits of a range that has an eleventh address: the tenth is the DNS server's, the first the
/// network's.
const BITS_FOR_DNS: u8 = 4;

const TWO_FAMILIES: &str = "must be one CIDR of each family";
const NO_DUAL_STACK: &str = "must be one CIDR; two need features.ipv6DualStack";

fn check_ranges(spec: &Field<'_>, is_baremetal: bool, findings: &mut Findings) {
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
    let ranges = match read_ranges(text, is_dual) {
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
    let ranges = match read_ranges(text, is_dual) {
        Ok(ranges) => ranges,
        Err(problem) => return findings.invalid(&at, problem),
    };
    let pods = spec.field("clusterCIDR").word().and_then(|text| read_ranges(text, true).ok());
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
pub(crate) fn read_ranges(text: &str, is_dual: bool) -> Result<Vec<IpNet>, &'static str> {
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
