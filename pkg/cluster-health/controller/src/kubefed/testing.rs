//! Objects and options of the tests of this flavour.

use std::sync::Arc;

use objects::Object;
use probe::{ConnectionLimits, Meters, Names, Prober};
use prometheus::Registry;
use serde_json::{Value, json};

use crate::api::kubefed::KubeFedCluster;
pub(crate) use crate::engine::tests::scene::policy;
use crate::kubefed::KubeFed;
use crate::options::KubeFedOptions;

/// The flavour with the defaults of the flags.
pub(crate) fn flavour(allow_plaintext: bool) -> KubeFed {
    let meters = Meters::new(&Registry::new()).unwrap();
    let prober = Prober::new(meters, ConnectionLimits::default(), Names::default());
    let options = KubeFedOptions { namespace: None, config: None, policy: policy(), zones: true };
    KubeFed::new(options, allow_plaintext, Arc::new(prober), None)
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
