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

const JUMP_SERVER: &str = "SSHJumpServer";
/// Ways of SSH to a machine that is not reached itself.
pub(crate) const PROXIES: [&str; 2] = [JUMP_SERVER, "SOCKS5"];

/// `at` has the fields of a connection.
pub(crate) fn check(at: &Place<'_>, findings: &mut Findings) {
    let ip = at.field("ip");
    match ip.word() {
        None => findings.required(&ip, "the IP address of the machine"),
        Some(text) if formats::ip(text).is_none() => findings.invalid(&ip, formats::IP),
        Some(_) => {}
    }
    let port = at.field("port");
    if port.is_absent() {
        findings.required(&port, "the port of SSH, such as 22");
    }
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

/// Where SSH is to answer, and who: the machine itself, or the jump server before it, behind which nothing can be seen
/// without logging in. Through another proxy nothing is asked.
fn asked(at: &Place<'_>) -> Option<(String, &'static str)> {
    let proxy = at.field("proxy");
    match proxy.field("type").word() {
        None => Some((target(at)?, "SSH")),
        Some(JUMP_SERVER) => Some((target(&proxy)?, "the jump server")),
        Some(_) => None,
    }
}

fn target(at: &Place<'_>) -> Option<String> {
    let port = formats::port(at.field("port").number()?)?;
    let ip = at.field("ip").word().filter(|text| formats::ip(text).is_some())?;
    Some(host_and_port(ip, port))
}

/// Whether SSH gets to both in the same way.
pub(crate) fn is_same(one: &Place<'_>, other: &Place<'_>) -> bool {
    CONNECTION.iter().all(|name| one.field(name).value() == other.field(name).value())
}

/// What the network said of a machine.
pub(crate) fn answers(subject: &Subject<'_>, at: &Place<'_>, findings: &mut Findings) {
    let Some((target, who)) = asked(at) else { return };
    let question = Question::Ssh(target.clone());
    match subject.environment.network_checks.answer(&question) {
        Some(CheckResult::Passed) => {}
        Some(CheckResult::Failed(code)) => {
            findings.forbidden(at, &format!("{who} does not answer at {target}: {code}"));
        }
        None => findings.unasked(at, question),
    }
}
