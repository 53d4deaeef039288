//! Reads manifests, and gives them to the API server as `kubectl apply --server-side` does.

use std::fs;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _, discovery};
use serde_json::Value;
use tests::programs::workspace;

/// The objects of a manifest; `path` is relative to the repository.
pub(crate) fn manifest(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(workspace().join(path)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Creates or changes the object. A field that its type does not have is an error.
pub(crate) async fn apply(client: &Client, object: &Value) -> kube::Result<DynamicObject> {
    send(client, object, PatchParams::apply("test")).await
}

/// Like [`apply`], with `dryRun=All`.
pub(crate) async fn dry_run(client: &Client, object: &Value) -> kube::Result<DynamicObject> {
    send(client, object, PatchParams::apply("test").dry_run()).await
}

async fn send(client: &Client, object: &Value, params: PatchParams) -> kube::Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let types = object.types.as_ref().expect("apiVersion and kind");
    let kind = GroupVersionKind::try_from(types).unwrap();
    let (resource, _) = discovery::pinned_kind(client, &kind).await?;
    let api = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&object.name_any(), &params.validation_strict(), &Patch::Apply(&object)).await
}
