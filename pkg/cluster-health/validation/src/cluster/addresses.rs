//! Ways to the API server.

use crate::cluster::types::IMPORTED;
use crate::findings::Findings;
use crate::formats;
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
        return findings
            .required(&addresses, "say in spec.addresses where the API server of the cluster is");
    }
    // The status of others is not judged.
    if is_imported || addresses.path().starts_with("spec") {
        let types: &[&str] = if is_imported { &OF_IMPORTED } else { &ALL };
        addresses.items().for_each(|address| one(&address, types, findings));
    }
}

fn one(address: &Place<'_>, types: &[&'static str], findings: &mut Findings) {
    let of = address.field("type");
    match of.text() {
        None => findings.required(&of, "what kind of address it is, such as Internal"),
        Some(text) if !types.contains(&text) => {
            findings.not_supported(&of, &of.shown(), types.iter().copied());
        }
        Some(_) => {}
    }
    let host = address.field("host");
    match host.word() {
        None => findings.required(&host, "the name or IP address of the API server"),
        Some(text) if text.contains(['@', '/']) => {
            findings.invalid(&host, "must be a name or an IP address and nothing else");
        }
        Some(_) => {}
    }
    let port = address.field("port");
    match port.number() {
        _ if port.is_absent() => {
            findings.required(&port, "the port of the API server, such as 6443");
        }
        // The type check covers the spec only; the schema of the status has no bounds.
        Some(number) if !port.path().starts_with("spec") && formats::port(number).is_none() => {
            findings.invalid(&port, formats::PORT);
        }
        _ => {}
    }
    let path = address.field("path");
    if path.word().is_some_and(|text| !text.starts_with('/')) {
        findings.invalid(&path, "must begin with /");
    }
}
