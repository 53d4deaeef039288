//! What deserves a warning although the program starts.

use delegated_auth::OpenPaths;
use flags::{Flag, Spec, Values, Verdict, controllers};

use super::gates;
use super::rates::tls_choice;
use super::table::generic::CONTROLLERS;
use super::table::serving::{
    AUTHORIZATION_ALWAYS_ALLOW_PATHS, CLIENT_CA_FILE, REQUESTHEADER_ALLOWED_NAMES,
    REQUESTHEADER_CLIENT_CA_FILE,
};

/// The warnings of a command line, in the order to log them. Flags without effect make exactly one
/// line however many they are; defaults never warn.
pub fn warnings(values: &Values) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(without_effect(values));
    for spec in values.explicit() {
        if let Verdict::Deprecated(why) = spec.verdict {
            lines.push(format!("--{} is deprecated: {why}", spec.name));
        }
    }
    let tls = tls_choice(values).warned;
    lines.extend(tls.into_iter().map(|found| format!("--{}: {}", found.flag, found.message)));
    lines.extend(closed_health(values));
    lines.extend(shared_ca(values));
    lines.extend(feature_gates(values));
    if gates::setting(values, gates::COORDINATED_ELECTION) == Some(true) {
        lines.push(format!(
            "feature gate {} is ignored: coordinated leader election is not built; the lease is \
             campaigned for directly",
            gates::COORDINATED_ELECTION
        ));
    }
    lines
}

/// The one line about flags and controllers that change nothing.
fn without_effect(values: &Values) -> Option<String> {
    let of = |wanted: Verdict| {
        let names = values.explicit().filter(|spec| spec.verdict == wanted).map(dashed);
        names.collect::<Vec<String>>().join(", ")
    };
    let not_hosted = controllers::not_hosted(&values.get(&CONTROLLERS)).join(", ");
    let parts = [
        ("flags accepted without effect", of(Verdict::Accepted)),
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
        "{FLAG} leaves out {}: probes of the kubelet, which bring no credentials, are refused there",
        closed.join(", ")
    );
    (!closed.is_empty()).then_some(line)
}

/// Then every client may speak for anybody, as a proxy does.
fn shared_ca(values: &Values) -> Option<String> {
    let proxies = values.get(&REQUESTHEADER_CLIENT_CA_FILE);
    let shared = !proxies.is_empty() && proxies == values.get(&CLIENT_CA_FILE);
    let anybody = shared && values.get(&REQUESTHEADER_ALLOWED_NAMES).is_empty();
    anybody.then(|| {
        format!(
            "{REQUESTHEADER_CLIENT_CA_FILE} is {CLIENT_CA_FILE}, and {REQUESTHEADER_ALLOWED_NAMES} \
             is empty: whoever has a client certificate may claim to be anybody"
        )
    })
}

fn dashed(spec: &Spec) -> String {
    format!("--{}", spec.name)
}

fn feature_gates(values: &Values) -> Option<String> {
    let ignored = gates::without_effect(values);
    let line = format!("feature gates without effect in this program: {}", ignored.join(", "));
    (!ignored.is_empty()).then_some(line)
}
