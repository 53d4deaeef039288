//! The wire form of changes: [`overlay`] lays the changes of a typed view over the whole object that it
//! was read from, so that fields the type does not know survive (`rule:unknown-fields-survive`);
//! [`between`] makes a JSON merge patch (RFC 7386). Pure.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// By which field an element of a list is known again after it changed; the first that it has
/// decides. Owners have UIDs, conditions types, containers and the like names, taints keys.
const IDENTITY: [&str; 4] = ["uid", "type", "name", "key"];

/// The whole value `raw` with what changed from `before` to `after`. `before` is what the type made
/// of `raw`; `None` means absent.
pub(crate) fn overlay(raw: Option<&Value>, before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return raw.cloned();
    }
    Some(match (raw, before, after) {
        (Some(Value::Object(raw)), Value::Object(before), Value::Object(after)) => {
            Value::Object(overlay_fields(raw, before, after))
        }
        (Some(Value::Array(raw)), Value::Array(before), Value::Array(after))
            if raw.len() == before.len() =>
        {
            Value::Array(overlay_elements(raw, before, after))
        }
        _ => after.clone(),
    })
}

fn overlay_fields(
    raw: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut whole = raw.clone();
    whole.retain(|field, _| after.contains_key(field) || !before.contains_key(field));
    for (field, new) in after {
        let old = before.get(field).unwrap_or(&Value::Null);
        if let Some(value) = overlay(raw.get(field), old, new) {
            whole.insert(field.clone(), value);
        }
    }
    whole
}

/// Elements that did not change keep their whole form wherever they stand now; a changed one is
/// laid over the element of the same identity.
fn overlay_elements(raw: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let mut free = vec![true; before.len()];
    let mut origin: Vec<Option<usize>> =
        after.iter().map(|new| take(&mut free, |at| before[at] == *new)).collect();
    for (new, origin) in after.iter().zip(&mut origin) {
        if let (None, Some(identity)) = (&origin, identity(new)) {
            *origin = take(&mut free, |at| before[at].get(identity) == new.get(identity));
        }
    }
    after
        .iter()
        .zip(origin)
        .map(|(new, origin)| {
            let kept = origin.and_then(|at| overlay(Some(&raw[at]), &before[at], new));
            kept.unwrap_or_else(|| new.clone())
        })
        .collect()
}

/// The first free place that matches; it is free no longer.
fn take(free: &mut [bool], matches: impl Fn(usize) -> bool) -> Option<usize> {
    let at = (0..free.len()).find(|at| free[*at] && matches(*at))?;
    free[at] = false;
    Some(at)
}

/// `raw` with these `fields`; all other fields stay. In a list whose elements all have an identity
/// the other elements stay as well, unless `fields` has them with `"$patch": "delete"`; any other list is replaced.
pub(crate) fn lay(raw: &Value, fields: &Value) -> Value {
    match (raw, fields) {
        (Value::Object(raw), Value::Object(fields)) => {
            let mut whole = raw.clone();
            for (field, new) in fields {
                let laid = raw.get(field).map_or_else(|| new.clone(), |old| lay(old, new));
                whole.insert(field.clone(), laid);
            }
            Value::Object(whole)
        }
        (Value::Array(raw), Value::Array(fields)) => {
            let replaced = || fields.iter().filter(|it| !is_deleted(it)).cloned().collect();
            Value::Array(lay_elements(raw, fields).unwrap_or_else(replaced))
        }
        _ => fields.clone(),
    }
}

/// `None` when an element has no identity, or shares it with another one.
fn lay_elements(raw: &[Value], fields: &[Value]) -> Option<Vec<Value>> {
    let (held, new) = (by_identity(raw)?, by_identity(fields)?);
    let laid = held.iter().zip(raw).filter_map(|(identity, raw)| {
        let field = new.iter().position(|new| new == identity).map(|at| &fields[at]);
        match field {
            Some(field) if is_deleted(field) => None,
            Some(field) => Some(lay(raw, field)),
            None => Some(raw.clone()),
        }
    });
    let added = new.iter().zip(fields).filter(|(identity, _)| !held.contains(identity));
    let added = added.map(|(_, field)| field).filter(|field| !is_deleted(field)).cloned();
    Some(laid.chain(added).collect())
}

fn is_deleted(field: &Value) -> bool {
    field["$patch"] == "delete"
}

fn by_identity(elements: &[Value]) -> Option<Vec<(&'static str, &str)>> {
    let named = elements.iter().map(|element| {
        let field = identity(element)?;
        Some((field, element[field].as_str()?))
    });
    let named: Vec<_> = named.collect::<Option<_>>()?;
    let unique: HashSet<_> = named.iter().collect();
    (unique.len() == named.len()).then_some(named)
}

fn identity(element: &Value) -> Option<&'static str> {
    IDENTITY.into_iter().find(|field| element.get(field).is_some_and(Value::is_string))
}

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
