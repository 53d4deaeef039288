//! The API of objects of whatever kind.

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::{Api, Client, discovery};
use serde_json::Value;

/// The API of an object, and the object as it is sent there.
pub async fn api(client: &Client, object: &Value) -> (Api<DynamicObject>, DynamicObject) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let (resource, _) = discovery::pinned_kind(client, &kind).await.unwrap();
    let api = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    (api, object)
}
