//! `spec.machines`: the machines that are or become masters.

use std::collections::BTreeSet;

use crate::cluster::types::BAREMETAL;
use crate::findings::Findings;
use crate::login;
use crate::place::Place;
use crate::subject::Subject;
use crate::taints;

pub(super) fn check(spec: &Place<'_>, is_baremetal: bool, findings: &mut Findings) {
    let machines = spec.field("machines");
    if is_baremetal && machines.items().next().is_none() {
        findings.required(&machines, "a Cluster of type Baremetal has masters");
    }
    let mut seen = BTreeSet::new();
    for machine in machines.items() {
        login::check(&machine, findings);
        taints::check(&machine, findings);
        proxy(&machine.field("proxy"), findings);
        let ip = machine.field("ip");
        if ip.word().is_some_and(|text| !seen.insert(text)) {
            findings.duplicate(&ip);
        }
    }
}

fn proxy(proxy: &Place<'_>, findings: &mut Findings) {
    let kind = proxy.field("type");
    if kind.text().is_some_and(|text| !login::PROXIES.contains(&text)) {
        findings.not_supported(&kind, &kind.shown(), login::PROXIES);
    }
}

/// How the machines of a stored Cluster may change.
pub(super) fn changes(subject: &Subject<'_>, findings: &mut Findings) {
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
pub(super) fn added(subject: &Subject<'_>) -> usize {
    let before = subject.old_spec().map(|old| addresses(&old)).unwrap_or_default();
    addresses(&subject.spec()).difference(&before).count()
}

/// What the network said of machines that are new or reached in another way
pub(super) fn answer(subject: &Subject<'_>, findings: &mut Findings) {
    let old: Vec<Place<'_>> =
        subject.old_spec().into_iter().flat_map(|old| old.field("machines").items()).collect();
    for machine in subject.spec().field("machines").items() {
        if !old.iter().any(|old| login::is_same(old, &machine)) {
            login::answers(subject, &machine, findings);
        }
    }
}

fn addresses<'a>(spec: &Place<'a>) -> BTreeSet<&'a str> {
    spec.field("machines").items().filter_map(|machine| machine.field("ip").word()).collect()
}
