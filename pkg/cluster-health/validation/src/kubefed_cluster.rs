//! Rules of KubeFed's KubeFedCluster.

use kube_api::go::GoDuration;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use super::endpoint::{Endpoint, EndpointError, is_proxy};
use super::findings::Findings;
use super::formats::{decoded, subdomain_problem};
use super::place::Place;
use super::subject::{Subject, name_of};

const ALL_CHECKS: &str = "*";
const CHECKS: [&str; 3] = [ALL_CHECKS, "SubjectName", "ValidityPeriod"];
const CONDITIONS: [&str; 2] = ["Ready", "Offline"];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

pub(crate) fn check(object: &Place<'_>, findings: &mut Findings) {
    let spec = object.field("spec");
    if spec.is_absent() {
        return findings.required(&spec, "how the member is reached");
    }
    endpoint(&spec.field("apiEndpoint"), findings);
    secret(&spec, findings);
    waived_checks(&spec.field("disabledTLSValidations"), findings);
    let proxy = spec.field("proxyURL");
    if proxy.word().is_some_and(|text| !is_proxy(text)) {
        findings.invalid(&proxy, "must be an absolute URL with the scheme http, https or socks5");
    }
    authorities(&spec.field("caBundle"), findings);
}

fn endpoint(at: &Place<'_>, findings: &mut Findings) {
    let Some(text) = at.word() else {
        return findings.required(at, "host, host:port or http(s) URL of the API server");
    };
    match Endpoint::parse(text) {
        Ok(endpoint) if endpoint.is_plaintext => {
            findings.warn(at, "over plain http the token can be read on the way");
        }
        Ok(_) => {}
        Err(EndpointError::Scheme) => {
            findings.not_supported(at, &at.shown(), ["http", "https"]);
        }
        Err(EndpointError::Other(why)) => findings.invalid(at, why),
    }
}

fn secret(spec: &Place<'_>, findings: &mut Findings) {
    let reference = spec.field("secretRef");
    if reference.is_absent() {
        return findings.required(&reference, "the Secret with the token of the member");
    }
    let name = reference.field("name");
    match name.word() {
        None => findings.required(&name, "the Secret with the token of the member"),
        Some(text) => {
            if let Some(problem) = subdomain_problem(text) {
                findings.invalid(&name, problem);
            }
        }
    }
}

fn waived_checks(at: &Place<'_>, findings: &mut Findings) {
    for check in at.items() {
        if check.text().is_some_and(|text| !CHECKS.contains(&text)) {
            findings.not_supported(&check, &check.shown(), CHECKS);
        }
    }
    let (all, count) =
        (at.items().any(|check| check.text() == Some(ALL_CHECKS)), at.items().count());
    if all && count > 1 {
        findings.invalid(at, "* waives every check and stands alone");
    }
}

fn authorities(at: &Place<'_>, findings: &mut Findings) {
    let Some(bundle) = at.word().and_then(decoded) else { return };
    if CertificateDer::pem_slice_iter(&bundle).find_map(Result::ok).is_none() {
        findings.warn(at, "holds no certificate in PEM");
    }
}

/// Rules about other members: none of them refuses.
pub(crate) fn about_others(subject: &Subject<'_>, findings: &mut Findings) {
    let at = subject.spec().field("apiEndpoint");
    let Some(endpoint) = at.word().and_then(|text| Endpoint::parse(text).ok()) else { return };
    let Some(members) = &subject.environment.kube_fed_clusters else {
        let question = "whether another KubeFedCluster is the same cluster";
        return findings.unchecked(&at, question, "kubeFedClusters");
    };
    let own = place_of(subject.object());
    let uids = &subject.environment.network_checks.kube_system_uids;
    let uid = uids.get(&own);
    for other in members.iter().map(|other| (place_of(other), other)).filter(|it| it.0 != own) {
        let text = Place::root(other.1).at(&["spec", "apiEndpoint"]).word();
        if text.and_then(|text| Endpoint::parse(text).ok()).as_ref() == Some(&endpoint) {
            findings.warn(&at, &format!("the KubeFedCluster {} has the same endpoint", other.0));
        } else if uid.is_some() && uids.get(&other.0) == uid {
            findings.warn(&at, &format!("the KubeFedCluster {} is the same cluster", other.0));
        }
    }
}

/// `namespace/name`
fn place_of(object: &Value) -> String {
    let namespace = Place::root(object).at(&["metadata", "namespace"]);
    format!("{}/{}", namespace.text().unwrap_or("default"), name_of(object).unwrap_or_default())
}

/// Rules for a status that is written.
pub(crate) fn status(object: &Value, findings: &mut Findings) {
    for condition in Place::root(object).at(&["status", "conditions"]).items() {
        for (name, known) in [("type", &CONDITIONS[..]), ("status", &STATUSES[..])] {
            let at = condition.field(name);
            match at.text() {
                None => findings.required(&at, ""),
                Some(text) if !known.contains(&text) => {
                    findings.not_supported(&at, &at.shown(), known.iter().copied());
                }
                Some(_) => {}
            }
        }
        let probed = condition.field("lastProbeTime");
        if probed.is_absent() {
            findings.required(&probed, "");
        }
    }
}

pub(crate) fn check_kubefed_config(object: &Place<'_>, findings: &mut Findings) {
    let spec = object.field("spec");
    if spec.is_absent() {
        return findings.required(&spec, "the settings of the federation");
    }
    let health = spec.field("clusterHealthCheck");
    if health.is_absent() {
        return findings.required(&health, "how members are probed");
    }
    for name in ["period", "timeout"] {
        let at = health.field(name);
        match at.word().map(str::parse::<GoDuration>) {
            None => findings.required(&at, "a duration, such as 10s"),
            Some(Ok(duration)) if !duration.to_std().is_zero() => {}
            Some(_) => findings.invalid(&at, "must be a duration above 0, such as 10s"),
        }
    }
    for name in ["failureThreshold", "successThreshold"] {
        let at = health.field(name);
        match at.number() {
            None => findings.required(&at, "a number of probes, such as 3"),
            Some(number) if number < 1 => findings.invalid(&at, "must be greater than 0"),
            Some(_) => {}
        }
    }
}
