//! Rules of KubeFed's KubeFedCluster.

use kube_api::go::GoDuration;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use super::address::{Address, AddressError, is_proxy};
use super::field::Field;
use super::findings::Findings;
use super::formats::{decoded, subdomain_problem};
use super::subject::{Subject, name_of};

const ALL_CHECKS: &str = "*";

pub(crate) fn check(object: &Field<'_>, findings: &mut Findings) {
    let spec = object.field("spec");
    endpoint(&spec.field("apiEndpoint"), findings);
    let secret = spec.at(&["secretRef", "name"]);
    if let Some(problem) = secret.word().and_then(subdomain_problem) {
        findings.invalid(&secret, problem);
    }
    waived_checks(&spec.field("disabledTLSValidations"), findings);
    let proxy = spec.field("proxyURL");
    if proxy.word().is_some_and(|text| !is_proxy(text)) {
        findings.invalid(&proxy, "must be an absolute URL with the scheme http, https or socks5");
    }
    authorities(&spec.field("caBundle"), findings);
}

fn endpoint(at: &Field<'_>, findings: &mut Findings) {
    let Some(text) = at.word() else { return };
    match Address::parse(text) {
        Ok(address) if address.is_plaintext() => {
            findings.warn(at, "over plain http the token can be read on the way");
        }
        Ok(_) => {}
        Err(AddressError::Scheme) => {
            findings.not_supported(at, &at.shown(), ["http", "https"]);
        }
        Err(AddressError::Other(why)) => findings.invalid(at, why),
    }
}

fn waived_checks(at: &Field<'_>, findings: &mut Findings) {
    let (all, count) =
        (at.items().any(|check| check.text() == Some(ALL_CHECKS)), at.items().count());
    if all && count > 1 {
        findings.invalid(at, "* waives every check and stands alone");
    }
}

fn authorities(at: &Field<'_>, findings: &mut Findings) {
    let Some(bundle) = at.word().and_then(decoded) else { return };
    if CertificateDer::pem_slice_iter(&bundle).find_map(Result::ok).is_none() {
        findings.warn(at, "holds no certificate in PEM");
    }
}

/// Rules about other members: none of them refuses.
pub(crate) fn about_others(subject: &Subject<'_>, findings: &mut Findings) {
    let at = subject.spec().field("apiEndpoint");
    let Some(address) = at.word().and_then(|text| Address::parse(text).ok()) else { return };
    let Some(members) = &subject.environment.kube_fed_clusters else {
        let question = "whether another KubeFedCluster is the same cluster";
        return findings.unchecked(&at, question, "kubeFedClusters");
    };
    let own = location_of(subject.object());
    let uids = &subject.environment.network_checks.kube_system_uids;
    let uid = uids.get(&own);
    for other in members.iter().map(|other| (location_of(other), other)).filter(|it| it.0 != own) {
        let text = Field::root(other.1).at(&["spec", "apiEndpoint"]).word();
        if text.and_then(|text| Address::parse(text).ok()).as_ref() == Some(&address) {
            findings.warn(&at, &format!("the KubeFedCluster {} has the same endpoint", other.0));
        } else if uid.is_some() && uids.get(&other.0) == uid {
            findings.warn(&at, &format!("the KubeFedCluster {} is the same cluster", other.0));
        }
    }
}

/// `namespace/name`
fn location_of(object: &Value) -> String {
    let namespace = Field::root(object).at(&["metadata", "namespace"]);
    format!("{}/{}", namespace.text().unwrap_or("default"), name_of(object).unwrap_or_default())
}

pub(crate) fn check_kubefed_config(object: &Field<'_>, findings: &mut Findings) {
    let health = object.at(&["spec", "clusterHealthCheck"]);
    let is_positive =
        |text: &str| text.parse::<GoDuration>().is_ok_and(|duration| !duration.to_std().is_zero());
    for at in ["period", "timeout"].map(|name| health.field(name)) {
        if at.word().is_some_and(|text| !is_positive(text)) {
            findings.invalid(&at, "must be a duration above 0, such as 10s");
        }
    }
    for at in ["failureThreshold", "successThreshold"].map(|name| health.field(name)) {
        if at.number().is_some_and(|number| number < 1) {
            findings.invalid(&at, "must be greater than 0");
        }
    }
}
