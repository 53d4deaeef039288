//! The label by which Cluster API's core finds the version of a kind that keeps its contract.

use cluster_api::contract::Contract;
use serde_json::{Value, json};

/// Has a manifest that is labelled for a contract be labelled for this one. Whether it is one.
pub(super) fn put(fields: &mut Value, contract: Contract) -> bool {
    let labels = fields.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    let Some(labels) = labels else { return false };
    let (key, version) = contract.label();
    let is_labelled = labels.contains_key(&key) || labels.contains_key(&contract.other_label());
    if is_labelled {
        labels.remove(&contract.other_label());
        labels.insert(key, json!(version));
    }
    is_labelled
}
