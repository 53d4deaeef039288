//! How SSH gets to a machine: a master of a Cluster, or a Machine.

use crate::findings::Findings;
use crate::formats::{self, host_and_port};
use crate::network_checks::CheckResult;
use crate::place::Place;
use crate::question::Question;
use crate::subject::Subject;

/// The fields that a connection is made with.
const CONNECTION: [&str; 7] =
    ["ip", "port", "username", "password", "privateKey", "passPhrase", "proxy"];

/// `at` has the fields of a connection (`rule:machines-can-be-logged-into`).
pub(crate) fn check(at: &Place<'_>, findings: &mut Findings) {
    let ip = at.field("ip");
    match ip.word() {
        None => findings.required(&ip, ""),
        Some(text) if formats::ip(text).is_none() => findings.invalid(&ip, formats::IP),
        Some(_) => {}
    }
    port(&at.field("port"), findings);
    let username = at.field("username");
    if username.word().is_none() {
        findings.required(&username, "the user of SSH");
    }
    let password = at.field("password");
    // What it is, is not looked at.
    let is_missing = |name: &str| at.field(name).word().is_none();
    if ["password", "privateKey"].into_iter().all(is_missing) {
        findings.required(&password, "password or privateKey, in base64");
    }
}

/// A port that must be there.
pub(crate) fn port(at: &Place<'_>, findings: &mut Findings) {
    match at.number() {
        None => findings.required(at, ""),
        Some(number) if formats::port(number).is_none() => findings.invalid(at, formats::PORT),
        Some(_) => {}
    }
}

/// Where SSH is to answer.
pub(crate) fn target(at: &Place<'_>) -> Option<String> {
    let port = formats::port(at.field("port").number()?)?;
    Some(host_and_port(at.field("ip").word()?, port))
}

/// Whether SSH gets to both in the same way.
pub(crate) fn is_same(one: &Place<'_>, other: &Place<'_>) -> bool {
    CONNECTION.iter().all(|name| one.field(name).value() == other.field(name).value())
}

/// What the network said of a machine (`rule:machines-answer-ssh`).
pub(crate) fn answers(subject: &Subject<'_>, at: &Place<'_>, findings: &mut Findings) {
    let Some(target) = target(at) else { return };
    match subject.environment.network_checks.ssh.get(&target) {
        Some(CheckResult::Passed) => {}
        Some(CheckResult::Failed(code)) => {
            findings.forbidden(at, &format!("SSH to {target} does not work: {code}"));
        }
        None => findings.unasked(at, Question::Ssh(target)),
    }
}
