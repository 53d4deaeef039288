//! Rules between and beyond the syntaxes: everything that is refused at start, all of it reported
//! together and before any API call (`host.md` 1.2).

mod leader;
mod limits;
mod logs;

use pflag::{Problem, Values};

use crate::plan::tls_choice;

/// Every broken rule, none twice; empty means the program may start. Controllers judge the values
/// of their own flags themselves, and the registry those of `--controllers`.
pub fn validate(values: &Values) -> Vec<Problem> {
    let mut problems = Vec::new();
    leader::migration(values, &mut problems);
    leader::lease(values, &mut problems);
    limits::rates(values, &mut problems);
    limits::durations(values, &mut problems);
    content_type(values, &mut problems);
    cloud_provider(values, &mut problems);
    serving(values, &mut problems);
    logs::check(values, &mut problems);
    problems
}

fn content_type(values: &Values, problems: &mut Vec<Problem>) {
    const FLAG: &str = "kube-api-content-type";
    const ALLOWED: [&str; 2] = ["application/vnd.kubernetes.protobuf", "application/json"];
    let given = values.string(FLAG);
    if !ALLOWED.contains(&given) {
        let allowed = ALLOWED.join(" or ");
        problems.push(Problem::new(FLAG, format!("{given:?} is not supported; use {allowed}")));
    }
}

fn cloud_provider(values: &Values, problems: &mut Vec<Problem>) {
    const FLAG: &str = "cloud-provider";
    let allocates =
        values.get("allocate-node-cidrs").is_some() && values.bool("allocate-node-cidrs");
    match values.string(FLAG) {
        "gce" if allocates => problems.push(Problem::new(
            FLAG,
            "gce is not built yet; leave the flag out, or set --allocate-node-cidrs=false",
        )),
        "" | "external" | "gce" => {}
        other => problems.push(Problem::new(
            FLAG,
            format!("{other:?} is not a cloud provider; use \"\", external or gce"),
        )),
    }
}

fn serving(values: &Values, problems: &mut Vec<Problem>) {
    let port = values.int("secure-port");
    if !(0..=65535).contains(&port) {
        let rule = format!("{port} is not between 1 and 65535, nor 0 to serve nothing");
        problems.push(Problem::new("secure-port", rule));
    }
    let streams = values.int("http2-max-streams-per-connection");
    if u32::try_from(streams).is_err() {
        let rule = format!("{streams} is not between 0 (the server's own limit) and {}", u32::MAX);
        problems.push(Problem::new("http2-max-streams-per-connection", rule));
    }
    let pair = ["tls-cert-file", "tls-private-key-file"];
    for (flag, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
        if values.string(flag).is_empty() && !values.string(other).is_empty() {
            problems.push(Problem::new(flag, format!("must be set together with --{other}")));
        }
    }
    let refused = tls_choice(values).refused;
    problems.extend(refused.into_iter().map(|found| Problem::new(found.flag, found.message)));
}
