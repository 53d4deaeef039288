//! Objects and options of the tests of this flavour.

use std::time::Duration;

use health::{Cadence, Damping, Policy, Thresholds};
use objects::Object;
use serde_json::{Value, json};

use crate::api::kubefed::KubeFedCluster;

/// The defaults of the flags.
pub(crate) fn policy() -> Policy {
    let s = Duration::from_secs;
    Policy {
        cadence: Cadence { period: s(10), timeout: s(3), confirm: s(10), jitter: 0.1 },
        thresholds: Thresholds { failure: 3, success: 1 },
        damping: Damping { transitions: 6, window: s(600), min_success: 3 },
        stale_after: Duration::ZERO,
        inherited_after: Duration::ZERO,
        heartbeat: s(300),
    }
}

/// A member as `change` leaves it.
pub(crate) fn cluster(change: impl FnOnce(&mut Value)) -> Object<KubeFedCluster> {
    Object::read(sent(change)).unwrap()
}

/// A member as `change` leaves it, as JSON.
pub(crate) fn sent(change: impl FnOnce(&mut Value)) -> Value {
    let mut whole = json!({
        "apiVersion": "core.kubefed.io/v1beta1",
        "kind": "KubeFedCluster",
        "metadata": {"namespace": "fed", "name": "one", "uid": "u1", "resourceVersion": "1"},
        "spec": {"apiEndpoint": "https://10.0.0.1:6443", "secretRef": {"name": "one-secret"}},
    });
    change(&mut whole);
    whole
}
