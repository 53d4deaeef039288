//! Ways to the API server (`rule:imported-clusters-have-addresses`).

use crate::cluster::types::IMPORTED;
use crate::findings::Findings;
use crate::login;
use crate::place::Place;

/// Those that probes use.
const OF_IMPORTED: [&str; 3] = ["Advertise", "Real", "Internal"];
const ALL: [&str; 5] = ["Public", "Advertise", "Real", "Internal", "Support"];

/// The list that counts: that of the spec, and that of the status where the spec has none, as
/// upstream's users write it.
pub(super) fn list<'a>(cluster: &Place<'a>) -> Place<'a> {
    let of_spec = cluster.at(&["spec", "addresses"]);
    if of_spec.items().next().is_some() { of_spec } else { cluster.at(&["status", "addresses"]) }
}

pub(super) fn check(cluster: &Place<'_>, findings: &mut Findings) {
    let is_imported = cluster.at(&["spec", "type"]).text() == Some(IMPORTED);
    let addresses = list(cluster);
    if is_imported && addresses.items().next().is_none() {
        return findings.required(&addresses, "a Cluster of type Imported has spec.addresses");
    }
    // The status of others is not judged.
    if is_imported || addresses.path().starts_with("spec") {
        let types: &[&str] = if is_imported { &OF_IMPORTED } else { &ALL };
        addresses.items().for_each(|address| one(&address, types, findings));
    }
}

/// `rule:addresses-are-whole`
fn one(address: &Place<'_>, types: &[&'static str], findings: &mut Findings) {
    let of = address.field("type");
    match of.text() {
        None => findings.required(&of, ""),
        Some(text) if !types.contains(&text) => {
            findings.not_supported(&of, &of.shown(), types.iter().copied());
        }
        Some(_) => {}
    }
    let host = address.field("host");
    if host.word().is_none() {
        findings.required(&host, "");
    }
    login::port(&address.field("port"), findings);
    let path = address.field("path");
    if path.word().is_some_and(|text| !text.starts_with('/')) {
        findings.invalid(&path, "must begin with /");
    }
}
