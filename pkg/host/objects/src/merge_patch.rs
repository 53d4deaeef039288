//! JSON merge patches (RFC 7386). Pure.

use serde_json::{Map, Value};

/// The merge patch that turns `before` into `after`; `None` when they are the same. A field that
/// becomes null is removed: a merge patch cannot say anything else.
pub(crate) fn between(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let removed = before.keys().filter(|field| !after.contains_key(*field));
    let mut patch: Map<_, _> = removed.map(|field| (field.clone(), Value::Null)).collect();
    for (field, new) in after {
        let change = match before.get(field) {
            Some(old) => between(old, new),
            None => Some(new.clone()).filter(|new| !new.is_null()),
        };
        if let Some(change) = change {
            patch.insert(field.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Carries out a merge patch as the API server does.
#[cfg(test)]
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (field, change) in patch {
        if change.is_null() {
            fields.remove(field);
        } else {
            apply(fields.entry(field.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests;
