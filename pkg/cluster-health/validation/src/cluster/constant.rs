//! What stays as it was made.

use serde_json::{Value, json};

use crate::cluster::types::BAREMETAL;
use crate::findings::Findings;
use crate::formats::IMMUTABLE;
use crate::place::Place;
use crate::subject::Subject;

/// Fields of a Cluster of type Baremetal that its machines are set up with.
const OF_BAREMETAL: [&str; 8] = [
    "networkDevice",
    "clusterCIDR",
    "dnsDomain",
    "dockerExtraArgs",
    "kubeletExtraArgs",
    "apiServerExtraArgs",
    "controllerManagerExtraArgs",
    "schedulerExtraArgs",
];

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let (spec, Some(old)) = (subject.spec(), subject.old_spec()) else { return };
    let (now, before) = (spec.field("type"), old.field("type"));
    if before.word().is_some() && now.value() != before.value() {
        findings.invalid(&now, IMMUTABLE);
    }
    if before.text() != Some(BAREMETAL) {
        return;
    }
    for name in OF_BAREMETAL {
        if meant(name, &spec) != meant(name, &old) {
            findings.invalid(&spec.field(name), IMMUTABLE);
        }
    }
}

/// With the default of a field that is left out, which upstream writes into the object.
fn meant(name: &str, spec: &Place<'_>) -> Value {
    match (spec.field(name).value(), name) {
        (Value::Null, "networkDevice") => json!("eth0"),
        (Value::Null, "dnsDomain") => json!("cluster.local"),
        (Value::Null, "clusterCIDR") => json!(""),
        (Value::Null, _) => json!({}),
        (value, _) => value.clone(),
    }
}
