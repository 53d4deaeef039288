//! Ways to the API server.

use serde_json::{Value, json};

use crate::field::Field;
use crate::findings::Findings;
use crate::formats::{IMMUTABLE, host_and_port};
use crate::kind::Kind;
use crate::network_checks::{CheckResult, Question};
use crate::subject::{Subject, name_of};
use crate::{formats, schema};

/// Types of addresses that probes use.
const OF_IMPORTED: [&str; 3] = ["Advertise", "Real", "Internal"];

/// The addresses in use: those of the spec, or those of the status where the spec has none, as upstream's users write
/// them.
pub(super) fn list<'a>(cluster: &Field<'a>) -> Field<'a> {
    let of_spec = cluster.at(&["spec", "addresses"]);
    if of_spec.items().next().is_some() { of_spec } else { cluster.at(&["status", "addresses"]) }
}

pub(super) fn check(cluster: &Field<'_>, findings: &mut Findings) {
    let is_imported = cluster.at(&["spec", "type"]).text() == Some(IMPORTED);
    let addresses = list(cluster);
    if is_imported && addresses.items().next().is_none() {
        return findings
            .required(&addresses, "say in spec.addresses where the API server of the cluster is");
    }
    let is_of_spec = addresses.path().starts_with("spec");
    // Of other types the status is not judged; the schema has judged the spec.
    for address in addresses.items().filter(|_| is_imported || is_of_spec) {
        let schema = schema::of(Kind::Cluster).at("spec.addresses[]");
        if let Some(schema) = schema.filter(|_| !is_of_spec) {
            schema.check(&address, findings);
        }
        one(&address, is_imported, findings);
    }
}

fn one(address: &Field<'_>, is_imported: bool, findings: &mut Findings) {
    let of = address.field("type");
    if is_imported {
        if of.text().is_some_and(|text| !OF_IMPORTED.contains(&text)) {
            findings.not_supported(&of, &of.shown(), OF_IMPORTED);
        }
    } else if let Some(schema) = schema::of(Kind::Cluster).at("spec.addresses[].type") {
        schema.check_words(&of, findings);
    }
    let host = address.field("host");
    if host.text().is_some_and(|text| text.contains(['@', '/'])) {
        findings.invalid(&host, "must be a name or an IP address and nothing else");
    }
    let path = address.field("path");
    if path.word().is_some_and(|text| !text.starts_with('/')) {
        findings.invalid(&path, "must begin with /");
    }
}

/// Fields of a Cluster of type Baremetal that its machines are set up with.
const OF_BAREMETAL: [&str; 8] = [
    "networkDevice",
    "clusterCIDR",
    "dnsDomain",
    "dockerExtraArgs",
    "kubeletExtraArgs",
    "apiServerExtraArgs",
    "controllerManagerExtraArgs",
    "schedulerExtraArgs",
];

pub(super) fn check_constant(subject: &Subject<'_>, findings: &mut Findings) {
    let (spec, Some(old)) = (subject.spec(), subject.old_spec()) else { return };
    let (now, before) = (spec.field("type"), old.field("type"));
    if before.word().is_some() && now.value() != before.value() {
        findings.invalid(&now, IMMUTABLE);
    }
    if before.text() != Some(BAREMETAL) {
        return;
    }
    for name in OF_BAREMETAL {
        if meant(name, &spec) != meant(name, &old) {
            findings.invalid(&spec.field(name), IMMUTABLE);
        }
    }
}

/// With the default of a field that is left out, which upstream writes into the object.
fn meant(name: &str, spec: &Field<'_>) -> Value {
    match (spec.field(name).value(), name) {
        (Value::Null, "networkDevice") => json!("eth0"),
        (Value::Null, "dnsDomain") => json!("cluster.local"),
        (Value::Null, "clusterCIDR") => json!(""),
        (Value::Null, _) => json!({}),
        (value, _) => value.clone(),
    }
}

/// Upstream's installer makes them on machines.
pub(super) const BAREMETAL: &str = "Baremetal";
/// The machines exist already.
pub(super) const IMPORTED: &str = "Imported";

/// Whether there is an API server where the addresses lead.
pub(super) fn addresses(subject: &Subject<'_>, findings: &mut Findings) {
    if !is_imported(subject) {
        return;
    }
    let old: Vec<Field<'_>> =
        subject.old().into_iter().flat_map(|old| list(&Field::root(old)).items()).collect();
    for address in list(&subject.root()).items() {
        if old.iter().any(|old| old.value() == address.value()) {
            continue;
        }
        let port = address.field("port").number().and_then(formats::port);
        let (Some(host), Some(port)) = (address.field("host").word(), port) else { continue };
        let target = host_and_port(host, port);
        let why = format!("no connection to {target}");
        told(subject, &address, Question::Tcp(target), &why, findings);
    }
}

fn is_imported(subject: &Subject<'_>) -> bool {
    subject.spec().field("type").text() == Some(IMPORTED)
}

/// The name of the credential of an imported cluster, where it is new. Of every other cluster TKEStack makes the
/// credential first and the API server that takes it later.
fn new_credential<'a>(subject: &Subject<'a>) -> Option<(Field<'a>, &'a str)> {
    if !is_imported(subject) {
        return None;
    }
    let of = |spec: &Field<'a>| spec.at(&["clusterCredentialRef", "name"]).word();
    // No object has such a name, and it may be anything.
    let name = of(&subject.spec()).filter(|name| !name.contains('@'))?;
    let before = subject.old_spec().and_then(|old| of(&old));
    (before != Some(name)).then(|| (subject.spec().field("clusterCredentialRef"), name))
}

/// Rules of a ClusterCredential.
pub(crate) fn check_credential(credential: &Field<'_>, findings: &mut Findings) {
    if let Some(half) = missing_half(credential) {
        let why = "clientCert and clientKey go together";
        findings.required(&credential.field(half), why);
    }
}

/// The half of the client pair that is missing while the other one is there.
pub(crate) fn missing_half(credential: &Field<'_>) -> Option<&'static str> {
    let has = |name: &str| credential.field(name).word().is_some();
    match (has("clientCert"), has("clientKey")) {
        (true, false) => Some("clientKey"),
        (false, true) => Some("clientCert"),
        _ => None,
    }
}

pub(super) fn credential_pair(subject: &Subject<'_>, findings: &mut Findings) {
    let Some((at, name)) = new_credential(subject) else { return };
    let Some(credentials) = &subject.environment.cluster_credentials else {
        let question = format!("whether the ClusterCredential {name} is whole");
        return findings.unchecked(&at, &question, "clusterCredentials");
    };
    let found = credentials.iter().find(|credential| name_of(credential) == Some(name));
    match found.map(|credential| missing_half(&Field::root(credential))) {
        Some(None) => {}
        Some(Some(half)) => {
            findings.required(&at, &format!("the ClusterCredential {name} has no {half}"));
        }
        None => findings.warn(&at, &format!("there is no ClusterCredential {name} yet")),
    }
}

pub(super) fn credential(subject: &Subject<'_>, findings: &mut Findings) {
    let Some((at, name)) = new_credential(subject) else { return };
    let why = format!("the API server does not take the ClusterCredential {name}");
    told(subject, &at, Question::Credential(name.to_owned()), &why, findings);
}

pub(super) fn import(subject: &Subject<'_>, findings: &mut Findings) {
    let (at, Some(name)) = (subject.root().at(&["metadata", "name"]), subject.name()) else {
        return;
    };
    if !is_imported(subject) || !subject.is_new() {
        return;
    }
    let question = Question::Import(name.to_owned());
    told(subject, &at, question, "the cluster cannot be imported", findings);
}

/// Takes what the network said, or leaves the question to whoever may ask it.
fn told(
    subject: &Subject<'_>,
    at: &Field<'_>,
    question: Question,
    why: &str,
    findings: &mut Findings,
) {
    match subject.environment.network_checks.answer(&question) {
        Some(CheckResult::Passed) => {}
        Some(CheckResult::Failed(code)) => findings.invalid(at, &format!("{why}: {code}")),
        None => findings.unasked(at, question),
    }
}
