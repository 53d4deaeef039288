//! Rules of TKEStack's Cluster and ClusterCredential. `ranges.rs` has those of CIDRs of Pods and Services, `addresses.rs`
//! those of ways to the API server, the credentials and what stays as it was made.

mod addresses;
pub(crate) mod ranges;

use std::collections::BTreeSet;

use addresses::BAREMETAL;
pub(crate) use addresses::check_credential;

use super::field::Field;
use super::findings::Findings;
use super::subject::Subject;
use super::{formats, subject};

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    subject::check_type(&spec, &subject.environment.cluster_types, findings);
    version(subject, findings);
    check_sizes(&spec, findings);
    let is_baremetal = spec.field("type").text() == Some(BAREMETAL);
    ranges::check(&spec, is_baremetal, findings);
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
