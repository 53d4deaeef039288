//! What the network, and the credential that a Cluster names, say of it.

use crate::cluster::addresses;
use crate::cluster::types::IMPORTED;
use crate::credential;
use crate::findings::Findings;
use crate::formats::{self, host_and_port};
use crate::network_checks::CheckResult;
use crate::place::Place;
use crate::question::Question;
use crate::subject::{Subject, name_of};

/// Whether there is an API server where the addresses lead.
pub(super) fn addresses(subject: &Subject<'_>, findings: &mut Findings) {
    if !is_imported(subject) {
        return;
    }
    let old: Vec<Place<'_>> = subject
        .old()
        .into_iter()
        .flat_map(|old| addresses::list(&Place::root(old)).items())
        .collect();
    for address in addresses::list(&subject.root()).items() {
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
fn new_credential<'a>(subject: &Subject<'a>) -> Option<(Place<'a>, &'a str)> {
    if !is_imported(subject) {
        return None;
    }
    let of = |spec: &Place<'a>| spec.at(&["clusterCredentialRef", "name"]).word();
    // No object has such a name, and it may be anything.
    let name = of(&subject.spec()).filter(|name| !name.contains('@'))?;
    let before = subject.old_spec().and_then(|old| of(&old));
    (before != Some(name)).then(|| (subject.spec().field("clusterCredentialRef"), name))
}

pub(super) fn credential_pair(subject: &Subject<'_>, findings: &mut Findings) {
    let Some((at, name)) = new_credential(subject) else { return };
    let Some(credentials) = &subject.environment.cluster_credentials else {
        let question = format!("whether the ClusterCredential {name} is whole");
        return findings.unchecked(&at, &question, "clusterCredentials");
    };
    let found = credentials.iter().find(|credential| name_of(credential) == Some(name));
    match found.map(|credential| credential::missing_half(&Place::root(credential))) {
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
    at: &Place<'_>,
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
