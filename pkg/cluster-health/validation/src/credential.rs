//! Rules of TKEStack's ClusterCredential. What its keys are is not looked at.

use crate::findings::Findings;
use crate::place::Place;

pub(crate) fn check(credential: &Place<'_>, findings: &mut Findings) {
    for (name, what) in [
        ("tenantID", "the tenant that the cluster is of"),
        ("clusterName", "the Cluster that it leads into"),
    ] {
        let at = credential.field(name);
        if at.is_absent() {
            findings.required(&at, what);
        }
    }
    let reference = credential.field("secretRef");
    for field in ["namespace", "name"].map(|name| reference.field(name)) {
        if !reference.is_absent() && field.is_absent() {
            findings.required(&field, "a Secret is named by its namespace and its name");
        }
    }
    if let Some(half) = missing_half(credential) {
        let why = "clientCert and clientKey go together";
        findings.required(&credential.field(half), why);
    }
}

/// The half of the client pair that is missing while the other one is there.
pub(crate) fn missing_half(credential: &Place<'_>) -> Option<&'static str> {
    let has = |name: &str| credential.field(name).word().is_some();
    match (has("clientCert"), has("clientKey")) {
        (true, false) => Some("clientKey"),
        (false, true) => Some("clientCert"),
        _ => None,
    }
}
