//! Validation of flag values: [`validate`] refuses what would be unsafe to ignore, all problems
//! together and before any API call; [`warnings`] names what has no effect or is risky.

use std::net::IpAddr;

use delegated_auth::OpenPaths;
use flags::{Flag, FlagSupport, Problem, Spec, Values, controllers};

use super::rates;
use super::rates::{LOGGING_ALPHA, LOGGING_BETA, election_config, label_values, tls_choice};
use super::table::generic::{
    ALLOW_STOCK_LEASE_NAME, CONTROLLER_SHUTDOWN_TIMEOUT, CONTROLLER_START_INTERVAL, CONTROLLERS,
    DRY_RUN, ENABLE_LEADER_MIGRATION, EVENT_BURST, EVENT_QPS, INSTALL_CRDS, KUBE_API_BURST,
    KUBE_API_CONTENT_TYPE, KUBE_API_QPS, LEADER_ELECT, LEADER_ELECT_RESOURCE_LOCK,
    LEADER_ELECT_RESOURCE_NAME, LEADER_ELECT_RESOURCE_NAMESPACE, LEADER_MIGRATION_CONFIG, MASTER,
    MIN_RESYNC_PERIOD,
};
use super::table::serving::{
    ADDITIONAL_BIND_ADDRESSES, ALLOW_METRIC_LABELS, AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL,
    AUTHORIZATION_ALWAYS_ALLOW_PATHS, AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL,
    AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL, AUTHZ_OUTAGE_GRACE, BIND_ADDRESS, CLIENT_CA_FILE,
    HTTP2_MAX_STREAMS_PER_CONNECTION, LOG_FLUSH_FREQUENCY, LOG_JSON_INFO_BUFFER_SIZE,
    LOG_JSON_SPLIT_STREAM, LOG_TEXT_INFO_BUFFER_SIZE, LOG_TEXT_SPLIT_STREAM, LOGGING_FORMAT,
    REQUESTHEADER_ALLOWED_NAMES, REQUESTHEADER_CLIENT_CA_FILE, SECURE_PORT, TLS_CERT_FILE,
    TLS_PRIVATE_KEY_FILE, VMODULE,
};

/// Every broken rule, none twice; empty means the program may start. Controllers judge the values
/// of their own flags themselves, and the registry those of `--controllers`.
pub fn validate(values: &Values) -> Vec<Problem> {
    let mut problems = Vec::new();
    migration(values, &mut problems);
    lease(values, &mut problems);
    rates(values, &mut problems);
    durations(values, &mut problems);
    master(values, &mut problems);
    content_type(values, &mut problems);
    serving(values, &mut problems);
    if values.get(&DRY_RUN) && values.get(&INSTALL_CRDS) {
        problems.push(
            INSTALL_CRDS.problem("cannot be combined with --dry-run; remove one of the two flags"),
        );
    }
    check(values, &mut problems);
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
        let rule = format!("{port} is not between 0 and 65535; 0 disables serving");
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

/// Refuses addresses that are invalid, repeated or covered by `--bind-address`.
fn additional_addresses(values: &Values, problems: &mut Vec<Problem>) {
    let first = values.get(&BIND_ADDRESS);
    let mut taken = vec![first];
    for text in values.get(&ADDITIONAL_BIND_ADDRESSES) {
        let rule = match text.parse::<IpAddr>() {
            Err(_) => "is not an IP address",
            Ok(_) if first.is_unspecified() => {
                "is not needed: --bind-address already listens on all addresses"
            }
            Ok(address) if address.is_unspecified() => {
                "means all addresses; set --bind-address instead"
            }
            Ok(address) if taken.contains(&address) => {
                "is given more than once, or is --bind-address"
            }
            Ok(address) => {
                taken.push(address);
                continue;
            }
        };
        problems.push(ADDITIONAL_BIND_ADDRESSES.problem(format!("{text:?} {rule}")));
    }
}

/// Namespace and name of the lease of kube-controller-manager.
const STOCK_LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

fn migration(values: &Values, problems: &mut Vec<Problem>) {
    const WHY: &str = "leader migration cannot move controllers to this program; disable \
        node-ipam in kube-controller-manager with \
        --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller, then start this \
        program";
    if values.get(&ENABLE_LEADER_MIGRATION) {
        problems.push(ENABLE_LEADER_MIGRATION.problem(WHY));
    }
    if !values.get(&LEADER_MIGRATION_CONFIG).is_empty() {
        problems.push(LEADER_MIGRATION_CONFIG.problem(WHY));
    }
}

/// Without election none of the lease flags does anything, so none is judged.
fn lease(values: &Values, problems: &mut Vec<Problem>) {
    if !values.get(&LEADER_ELECT) {
        return;
    }
    let lock = values.get(&LEADER_ELECT_RESOURCE_LOCK);
    if lock != "leases" {
        problems.push(
            LEADER_ELECT_RESOURCE_LOCK.problem(format!("{lock:?} is not supported; use leases")),
        );
    }
    names(values, problems);
    // Who the candidate is called breaks no rule.
    let found = election_config(values, String::new()).validate();
    problems.extend(found.into_iter().map(|found| Problem::new(found.flag, found.rule)));
}

/// The elector refuses empty names, and this refuses the lease of kube-controller-manager (rule:stock-lease-is-refused).
fn names(values: &Values, problems: &mut Vec<Problem>) {
    let namespace = values.get(&LEADER_ELECT_RESOURCE_NAMESPACE);
    let name = values.get(&LEADER_ELECT_RESOURCE_NAME);
    if !name.is_empty() && !is_dns_name(&name, 253, true) {
        problems.push(
            LEADER_ELECT_RESOURCE_NAME.problem(format!("{name:?} is not a valid object name")),
        );
    }
    if !namespace.is_empty() && !is_dns_name(&namespace, 63, false) {
        problems.push(
            LEADER_ELECT_RESOURCE_NAMESPACE
                .problem(format!("{namespace:?} is not a valid namespace")),
        );
    }
    if (namespace.as_str(), name.as_str()) == STOCK_LEASE && !values.get(&ALLOW_STOCK_LEASE_NAME) {
        problems.push(LEADER_ELECT_RESOURCE_NAME.problem(
            "kube-system/kube-controller-manager is the lease of kube-controller-manager; sharing \
             it would silently stop the controllers of one of the two programs. Choose another \
             name, or set --allow-stock-lease-name if kube-controller-manager never runs",
        ));
    }
}

/// Lower-case letters, digits and `-`, ends alphanumeric; with `dotted`, several such joined by
/// dots.
fn is_dns_name(text: &str, longest: usize, dotted: bool) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= longest && if dotted { text.split('.').all(label) } else { label(text) }
}

fn rates(values: &Values, problems: &mut Vec<Problem>) {
    let qps = values.get(&KUBE_API_QPS);
    finite(&KUBE_API_QPS, qps, problems);
    if qps == 0.0 {
        let advice = "0 would stop all requests; use -1 for no limit, or a positive number";
        problems.push(KUBE_API_QPS.problem(advice));
    }
    let burst = values.get(&KUBE_API_BURST);
    if qps > 0.0 && burst <= 0 {
        problems.push(KUBE_API_BURST.problem(too_small(burst, &KUBE_API_QPS)));
    }
    let event_qps = values.get(&EVENT_QPS);
    finite(&EVENT_QPS, event_qps, problems);
    let event_burst = values.get(&EVENT_BURST);
    if event_burst < 0 {
        let rule = format!("{event_burst} is negative; use 0 to follow {KUBE_API_BURST}");
        problems.push(EVENT_BURST.problem(rule));
    } else if event_burst == 0 && burst <= 0 && qps < 0.0 && event_qps > 0.0 {
        problems.push(EVENT_BURST.problem(too_small(burst, &EVENT_QPS)));
    }
}

fn too_small(burst: i64, rate: &Flag<f64>) -> String {
    format!("{burst} allows no request although {rate} is positive; use 1 or more")
}

fn finite(flag: &Flag<f64>, value: f64, problems: &mut Vec<Problem>) {
    if !value.is_finite() {
        let advice = format!("{value} is not a rate; use -1 for no limit");
        problems.push(flag.problem(advice));
    }
}

/// Durations for which a negative value has no meaning.
fn durations(values: &Values, problems: &mut Vec<Problem>) {
    let not_negative = [
        CONTROLLER_SHUTDOWN_TIMEOUT,
        CONTROLLER_START_INTERVAL,
        MIN_RESYNC_PERIOD,
        AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL,
        AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL,
        AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL,
        AUTHZ_OUTAGE_GRACE,
    ];
    for flag in not_negative {
        let given = values.get(&flag);
        if given.nanos() < 0 {
            problems.push(flag.problem(format!("{given} is negative")));
        }
    }
    let flush = values.get(&LOG_FLUSH_FREQUENCY);
    if flush.nanos() <= 0 {
        problems.push(LOG_FLUSH_FREQUENCY.problem(format!("{flush} is not greater than zero")));
    }
}

fn check(values: &Values, problems: &mut Vec<Problem>) {
    let format = values.get(&LOGGING_FORMAT);
    match format.as_str() {
        "text" => {}
        "json" if rates::enabled(values, LOGGING_BETA) => {}
        "json" => problems.push(gated(&LOGGING_FORMAT, LOGGING_BETA)),
        other => {
            problems.push(LOGGING_FORMAT.problem(format!("{other:?} is neither text nor json")));
        }
    }
    if format == "json" && !values.get(&VMODULE).is_empty() {
        let rule = "works with --logging-format=text only; use --v instead";
        problems.push(VMODULE.problem(rule));
    }
    if !rates::enabled(values, LOGGING_ALPHA) {
        alpha(values, problems);
    }
}

/// Options that stay closed without [`LOGGING_ALPHA`].
fn alpha(values: &Values, problems: &mut Vec<Problem>) {
    let splits = [LOG_TEXT_SPLIT_STREAM, LOG_JSON_SPLIT_STREAM];
    let set = splits.iter().filter(|flag| values.get(*flag));
    problems.extend(set.map(|flag| gated(flag, LOGGING_ALPHA)));
    let sizes = [LOG_TEXT_INFO_BUFFER_SIZE, LOG_JSON_INFO_BUFFER_SIZE];
    let set = sizes.iter().filter(|flag| values.get(*flag) != 0);
    problems.extend(set.map(|flag| gated(flag, LOGGING_ALPHA)));
}

fn gated<T>(flag: &Flag<T>, gate: &str) -> Problem {
    flag.problem(format!("needs the feature gate {gate}, which is off"))
}

/// The warnings of a command line, in the order to log them. Flags without effect make exactly one
/// line however many they are; defaults never warn.
pub fn warnings(values: &Values) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(without_effect(values));
    for spec in values.explicit() {
        if let FlagSupport::Deprecated(why) = spec.support {
            lines.push(format!("--{} is deprecated: {why}", spec.name));
        }
    }
    let tls = tls_choice(values).warned;
    lines.extend(tls.into_iter().map(|found| format!("--{}: {}", found.flag, found.message)));
    lines.extend(closed_health(values));
    lines.extend(shared_ca(values));
    lines.extend(feature_gates(values));
    if rates::setting(values, rates::COORDINATED_ELECTION) == Some(true) {
        lines.push(format!(
            "feature gate {} is ignored: coordinated leader election is not supported; the \
             program acquires the lease directly",
            rates::COORDINATED_ELECTION
        ));
    }
    lines
}

/// The one line about flags and controllers that change nothing.
fn without_effect(values: &Values) -> Option<String> {
    let of = |wanted: FlagSupport| {
        let names = values.explicit().filter(|spec| spec.support == wanted).map(dashed);
        names.collect::<Vec<String>>().join(", ")
    };
    let not_hosted = controllers::not_hosted(&values.get(&CONTROLLERS)).join(", ");
    let parts = [
        ("flags accepted without effect", of(FlagSupport::Accepted)),
        ("controllers not hosted by this program", not_hosted),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {names}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The list replaces the default, and the kubelet's probes bring no credentials.
fn closed_health(values: &Values) -> Option<String> {
    const FLAG: Flag<Vec<String>> = AUTHORIZATION_ALWAYS_ALLOW_PATHS;
    let open = OpenPaths::new(&values.get(&FLAG));
    let closed = ["/livez", "/readyz", "/healthz"].into_iter().filter(|path| !open.cover(path));
    let closed: Vec<&str> = closed.collect();
    let line = format!(
        "{FLAG} does not contain {}: probes of the kubelet, which send no credentials, are \
         refused there",
        closed.join(", ")
    );
    (!closed.is_empty()).then_some(line)
}

/// Every client may claim any identity, as a proxy does.
fn shared_ca(values: &Values) -> Option<String> {
    let proxies = values.get(&REQUESTHEADER_CLIENT_CA_FILE);
    let shared = !proxies.is_empty() && proxies == values.get(&CLIENT_CA_FILE);
    let anybody = shared && values.get(&REQUESTHEADER_ALLOWED_NAMES).is_empty();
    anybody.then(|| {
        format!(
            "{REQUESTHEADER_CLIENT_CA_FILE} is {CLIENT_CA_FILE}, and \
             {REQUESTHEADER_ALLOWED_NAMES} is empty: every client with a certificate of this CA \
             can impersonate any user"
        )
    })
}

fn dashed(spec: &Spec) -> String {
    format!("--{}", spec.name)
}

fn feature_gates(values: &Values) -> Option<String> {
    let ignored = rates::without_effect(values);
    let line = format!("feature gates without effect in this program: {}", ignored.join(", "));
    (!ignored.is_empty()).then_some(line)
}
