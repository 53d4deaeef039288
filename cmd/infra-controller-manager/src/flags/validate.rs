//! Rules between and beyond the syntaxes: everything that is refused at start, all of it reported
//! together and before any API call (rule:command-line-as-kube-controller-manager).

mod leader;
mod limits;
mod logs;

use std::net::IpAddr;

use flags::{Problem, Values};

use super::metric_labels::label_values;
use super::table::generic::{DRY_RUN, INSTALL_CRDS, KUBE_API_CONTENT_TYPE};
use super::table::observing::ALLOW_METRIC_LABELS;
use super::table::program::MASTER;
use super::table::serving::{
    ADDITIONAL_BIND_ADDRESSES, BIND_ADDRESS, HTTP2_MAX_STREAMS_PER_CONNECTION, SECURE_PORT,
    TLS_CERT_FILE, TLS_PRIVATE_KEY_FILE,
};
use super::tls::tls_choice;

/// Every broken rule, none twice; empty means the program may start. Controllers judge the values
/// of their own flags themselves, and the registry those of `--controllers`.
pub fn validate(values: &Values) -> Vec<Problem> {
    let mut problems = Vec::new();
    leader::migration(values, &mut problems);
    leader::lease(values, &mut problems);
    limits::rates(values, &mut problems);
    limits::durations(values, &mut problems);
    master(values, &mut problems);
    content_type(values, &mut problems);
    serving(values, &mut problems);
    if values.get(&DRY_RUN) && values.get(&INSTALL_CRDS) {
        problems.push(INSTALL_CRDS.problem("has no dry run; leave one of the two out"));
    }
    logs::check(values, &mut problems);
    if let Err(message) = label_values(values.get(&ALLOW_METRIC_LABELS)) {
        problems.push(ALLOW_METRIC_LABELS.problem(message));
    }
    problems
}

/// Before any log: an address with a password in it is shown nowhere.
fn master(values: &Values, problems: &mut Vec<Problem>) {
    let given = values.get(&MASTER);
    if !given.is_empty()
        && let Err(error) = client::check_address(&given)
    {
        problems.push(MASTER.problem(error.to_string()));
    }
}

fn content_type(values: &Values, problems: &mut Vec<Problem>) {
    const ALLOWED: [&str; 2] = ["application/vnd.kubernetes.protobuf", "application/json"];
    let given = values.get(&KUBE_API_CONTENT_TYPE);
    if !ALLOWED.contains(&given.as_str()) {
        let allowed = ALLOWED.join(" or ");
        let rule = format!("{given:?} is not supported; use {allowed}");
        problems.push(KUBE_API_CONTENT_TYPE.problem(rule));
    }
}

fn serving(values: &Values, problems: &mut Vec<Problem>) {
    let port = values.get(&SECURE_PORT);
    if !(0..=65535).contains(&port) {
        let rule = format!("{port} is not between 1 and 65535, nor 0 to serve nothing");
        problems.push(SECURE_PORT.problem(rule));
    }
    additional_addresses(values, problems);
    let streams = values.get(&HTTP2_MAX_STREAMS_PER_CONNECTION);
    if u32::try_from(streams).is_err() {
        let rule = format!("{streams} is not between 0 (the server's own limit) and {}", u32::MAX);
        problems.push(HTTP2_MAX_STREAMS_PER_CONNECTION.problem(rule));
    }
    let pair = [&TLS_CERT_FILE, &TLS_PRIVATE_KEY_FILE];
    for (flag, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
        if values.get(flag).is_empty() && !values.get(other).is_empty() {
            problems.push(flag.problem(format!("must be set together with {other}")));
        }
    }
    let refused = tls_choice(values).refused;
    problems.extend(refused.into_iter().map(|found| Problem::new(found.flag, found.message)));
}

/// Each is an address of its own that nothing listens on already.
fn additional_addresses(values: &Values, problems: &mut Vec<Problem>) {
    let first = values.get(&BIND_ADDRESS);
    let mut taken = vec![first];
    for text in values.get(&ADDITIONAL_BIND_ADDRESSES) {
        let rule = match text.parse::<IpAddr>() {
            Err(_) => "is not an IP address",
            Ok(_) if first.is_unspecified() => {
                "is listened on already: --bind-address stands for all addresses"
            }
            Ok(address) if address.is_unspecified() => {
                "stands for all addresses; give it as --bind-address"
            }
            Ok(address) if taken.contains(&address) => "is listened on already",
            Ok(address) => {
                taken.push(address);
                continue;
            }
        };
        problems.push(ADDITIONAL_BIND_ADDRESSES.problem(format!("{text:?} {rule}")));
    }
}
