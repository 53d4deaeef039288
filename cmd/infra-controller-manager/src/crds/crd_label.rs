//! Labels of CRDs that flags decide, such as the one by which Cluster API's core finds the version of a
//! kind that keeps its contract.

use manager::CrdLabel;
use serde_json::{Value, json};

/// Puts the wanted label on a manifest that has it or the one that it excludes. The label that was put.
pub(super) fn put<'a>(fields: &mut Value, wanted: &'a [CrdLabel]) -> Option<&'a CrdLabel> {
    let labels = fields.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)?;
    let is_on =
        |label: &&CrdLabel| [&label.key, &label.other].iter().any(|it| labels.contains_key(*it));
    let label = wanted.iter().find(is_on)?;
    labels.remove(&label.other);
    labels.insert(label.key.clone(), json!(label.value));
    Some(label)
}
