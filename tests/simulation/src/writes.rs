//! Writes: create, replace, patch and delete, with preconditions and the rules of a Node's pod CIDRs.

use http::Method;
use serde_json::{Value, json};

use crate::api::{Answer, whole};
use crate::call::{Call, Refusal, Target};
use crate::store::Store;

/// Time of every creation: no clock of the simulation is the server's.
const CREATED: &str = "2026-01-01T00:00:00Z";

/// Carries out a write, or judges it alone with `dryRun`.
pub(crate) fn write(store: &mut Store, call: &Call, target: &Target) -> Result<Answer, Refusal> {
    match (call.method.clone(), target.key.name.is_empty()) {
        (Method::POST, true) => create(store, call, target),
        (Method::PUT, false) => replace(store, call, target),
        (Method::PATCH, false) => patch(store, call, target),
        (Method::DELETE, false) => delete(store, call, target),
        _ => {
            let message = "the server does not allow this method on the requested resource";
            Err(Refusal::new(405, "MethodNotAllowed", message))
        }
    }
}

fn body(call: &Call) -> Result<Value, Refusal> {
    let bad = |error| Refusal::new(400, "BadRequest", format!("cannot decode the body: {error}"));
    let body: Value = serde_json::from_slice(&call.body).map_err(bad)?;
    if !body.is_object() {
        return Err(Refusal::new(400, "BadRequest", "the body is no object"));
    }
    Ok(body)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn create(store: &mut Store, call: &Call, target: &Target) -> Result<Answer, Refusal> {
    let mut object = body(call)?;
    let mut target = target.clone();
    target.key.name = text(&object, "name").to_owned();
    let namespace = text(&object, "namespace");
    if !namespace.is_empty() && namespace != target.key.namespace {
        let why =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::new(400, "BadRequest", why));
    }
    if target.key.name.is_empty() {
        let why = "name or generateName is required".to_owned();
        return Err(Refusal::invalid(&target, vec![("metadata.name", why)]));
    }
    insert(store, call, &target, &mut object)
}

/// Stores a new object.
fn insert(
    store: &mut Store,
    call: &Call,
    target: &Target,
    object: &mut Value,
) -> Result<Answer, Refusal> {
    complete(object, target);
    let uid = format!("00000000-0000-4000-8000-{:012x}", store.revision() + 1);
    object["metadata"]["uid"] = uid.into();
    object["metadata"]["creationTimestamp"] = CREATED.into();
    let causes = validate(&Value::Null, object, target);
    if !causes.is_empty() {
        return Err(Refusal::invalid(target, causes));
    }
    if store.get(&target.key).is_some() {
        return Err(Refusal::about(target, 409, "AlreadyExists", ""));
    }
    if is_dry(call) {
        return Ok(whole(201, call, &object.take().into()));
    }
    let stored = store.write(&target.key, Some(object.take()));
    Ok(whole(201, call, &stored))
}

fn is_dry(call: &Call) -> bool {
    call.parameter("dryRun") == "All"
}

/// Fills in what the server knows.
fn complete(object: &mut Value, target: &Target) {
    object["kind"] = target.kind.kind.into();
    object["apiVersion"] = target.kind.api_version.into();
    object["metadata"]["name"] = target.key.name.as_str().into();
    if !target.key.namespace.is_empty() {
        object["metadata"]["namespace"] = target.key.namespace.as_str().into();
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| value.as_array().is_none_or(|all| !all.is_empty()));
    }
    if target.kind.resource == "nodes" {
        complete_cidrs(object);
    }
}

/// `podCIDR` is the first of `podCIDRs`, and wins where both are given.
fn complete_cidrs(node: &mut Value) {
    let spec = &mut node["spec"];
    let one = spec["podCIDR"].as_str().unwrap_or_default().to_owned();
    let first = spec["podCIDRs"][0].as_str().unwrap_or_default().to_owned();
    match (one.is_empty(), first.is_empty()) {
        (true, true) => {
            if let Some(spec) = spec.as_object_mut() {
                spec.remove("podCIDR");
                spec.remove("podCIDRs");
            }
        }
        (true, false) => spec["podCIDR"] = first.into(),
        (false, _) if one != first => spec["podCIDRs"] = json!([one]),
        (false, _) => {}
    }
    if spec.is_null() {
        *spec = json!({});
    }
}

fn replace(store: &mut Store, call: &Call, target: &Target) -> Result<Answer, Refusal> {
    let mut object = body(call)?;
    if text(&object, "name") != target.key.name {
        let why = "the name of the object does not match the name on the URL";
        return Err(Refusal::new(400, "BadRequest", why));
    }
    let Some(before) = store.get(&target.key).cloned() else {
        // Leases alone may be created by a replacement.
        if target.kind.resource == "leases" {
            if !text(&object, "uid").is_empty() {
                let why = "Precondition failed: UID in precondition";
                return Err(Refusal::about(target, 409, "Conflict", why));
            }
            return insert(store, call, target, &mut object);
        }
        return Err(Refusal::about(target, 404, "NotFound", ""));
    };
    let uid = text(&object, "uid");
    if !uid.is_empty() && uid != text(&before, "uid") {
        let why = format!("Precondition failed: UID in precondition: {uid}");
        return Err(Refusal::about(target, 409, "Conflict", &why));
    }
    update(store, call, target, &before, object)
}

fn patch(store: &mut Store, call: &Call, target: &Target) -> Result<Answer, Refusal> {
    let is_strategic = match call.content_type.split(';').next().unwrap_or_default() {
        "application/strategic-merge-patch+json" => true,
        "application/merge-patch+json" => false,
        other => {
            let message = format!("the body of the request was in an unknown format: {other}");
            return Err(Refusal::new(415, "UnsupportedMediaType", message));
        }
    };
    let patch = body(call)?;
    let Some(before) = store.get(&target.key).cloned() else {
        return Err(Refusal::about(target, 404, "NotFound", ""));
    };
    let mut object = Value::clone(&before);
    merge(&mut object, patch, is_strategic);
    update(store, call, target, &before, object)
}

/// Lists that a strategic merge joins.
const JOINED: [&str; 2] = ["podCIDRs", "finalizers"];

/// Merges a patch.
fn merge(object: &mut Value, patch: Value, strategic: bool) {
    let Value::Object(fields) = patch else {
        *object = patch;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => {
                object.as_object_mut().and_then(|object| object.remove(&name));
            }
            Value::Array(mut given) if strategic && JOINED.contains(&&*name) => {
                let known = object[&name].as_array().cloned().unwrap_or_default();
                given
                    .extend(known.into_iter().filter(|it| !given.contains(it)).collect::<Vec<_>>());
                object[&name] = given.into();
            }
            value => merge(&mut object[&name], value, strategic),
        }
    }
}

/// Stores `object` in place of `before`, when the rules allow it.
fn update(
    store: &mut Store,
    call: &Call,
    target: &Target,
    before: &Value,
    mut object: Value,
) -> Result<Answer, Refusal> {
    let version = text(&object, "resourceVersion");
    if version.is_empty() && target.kind.resource == "leases" {
        let why = "must be specified for an update".to_owned();
        return Err(Refusal::invalid(target, vec![("metadata.resourceVersion", why)]));
    }
    if !version.is_empty() && version != text(before, "resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        return Err(Refusal::about(target, 409, "Conflict", why));
    }
    if text(&object, "name") != target.key.name {
        let why = "the name of the object does not match the name on the URL";
        return Err(Refusal::new(400, "BadRequest", why));
    }
    for field in ["creationTimestamp", "deletionTimestamp", "resourceVersion"] {
        object["metadata"][field] = before["metadata"][field].clone();
    }
    if text(&object, "uid").is_empty() {
        object["metadata"]["uid"] = before["metadata"]["uid"].clone();
    }
    if target.subresource == "status" {
        object["spec"] = before["spec"].clone();
    } else if target.kind.resource == "nodes" {
        object["status"] = before["status"].clone();
    }
    complete(&mut object, target);
    remove_nulls(&mut object);
    let causes = validate(before, &object, target);
    if !causes.is_empty() {
        return Err(Refusal::invalid(target, causes));
    }
    if is_dry(call) || object == *before {
        return Ok(whole(200, call, &object.into()));
    }
    let is_released = !text(&object, "deletionTimestamp").is_empty() && !has_finalizers(&object);
    if is_released {
        // The object goes without the change that released it.
        store.write(&target.key, None);
        return Ok(whole(200, call, &object.into()));
    }
    let stored = store.write(&target.key, Some(object));
    Ok(whole(200, call, &stored))
}

fn remove_nulls(object: &mut Value) {
    for part in ["", "/metadata"] {
        if let Some(Value::Object(fields)) = object.pointer_mut(part) {
            fields.retain(|_, value| !value.is_null());
        }
    }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}

/// Invalid fields of an object that takes the place of `before`, which is null for a new one.
fn validate(before: &Value, object: &Value, target: &Target) -> Vec<(&'static str, String)> {
    let mut causes = Vec::new();
    if !before.is_null() && text(before, "uid") != text(object, "uid") {
        causes.push(("metadata.uid", "field is immutable".to_owned()));
    }
    if target.kind.resource != "nodes" {
        return causes;
    }
    let cidrs = object["spec"]["podCIDRs"].as_array().cloned().unwrap_or_default();
    let read: Vec<_> =
        cidrs.iter().map(|it| it.as_str().and_then(|it| cidr::parse(it).ok())).collect();
    if read.iter().any(Option::is_none) {
        causes.push(("spec.podCIDRs[0]", "must be a valid CIDR value".to_owned()));
    }
    let families: Vec<_> = read.iter().flatten().map(|it| it.addr().is_ipv4()).collect();
    if families.len() > 2 || families.len() == 2 && families[0] == families[1] {
        let why = "may specify no more than one CIDR for each IP family";
        causes.push(("spec.podCIDRs", why.to_owned()));
    }
    let known = &before["spec"]["podCIDRs"];
    if known.as_array().is_some_and(|known| !known.is_empty())
        && *known != object["spec"]["podCIDRs"]
    {
        let why = "Forbidden: node updates may not change podCIDR except from \"\" to valid";
        causes.push(("spec.podCIDRs", why.to_owned()));
    }
    causes
}

fn delete(store: &mut Store, call: &Call, target: &Target) -> Result<Answer, Refusal> {
    let options = if call.body.is_empty() { json!({}) } else { body(call)? };
    // A body takes the place of the parameters.
    let is_dry = if call.body.is_empty() { is_dry(call) } else { options["dryRun"][0] == "All" };
    let Some(before) = store.get(&target.key).cloned() else {
        return Err(Refusal::about(target, 404, "NotFound", ""));
    };
    for (field, name) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wanted = options["preconditions"][field].as_str();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != text(&before, field)) {
            let why = format!("Precondition failed: {name} in precondition: {wanted}");
            return Err(Refusal::about(target, 409, "Conflict", &why));
        }
    }
    if has_finalizers(&before) {
        let mut object = Value::clone(&before);
        object["metadata"]["deletionTimestamp"] = CREATED.into();
        if is_dry || object == *before {
            return Ok(whole(200, call, &object.into()));
        }
        let stored = store.write(&target.key, Some(object));
        return Ok(whole(200, call, &stored));
    }
    if !is_dry {
        store.write(&target.key, None);
    }
    let done = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": target.key.name, "kind": target.kind.resource, "uid": before["metadata"]["uid"]},
    });
    Ok(Answer::Whole(200, done))
}
