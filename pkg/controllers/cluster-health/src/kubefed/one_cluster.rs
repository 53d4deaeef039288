//! How one member is reached, looked up once.

use objects::Object;
use probe::{Inputs, Problem};
use serde_json::Value;

use super::access;
use crate::api::kubefed::{KUBEFED_CLUSTERS, KubeFedCluster};
use crate::credential_policy::{Lookup, may_ask};
use crate::stored_objects::{StoredError, StoredObjects};

/// What a client of the KubeFedCluster of this name is made of.
///
/// # Errors
/// An object could not be read; or, inside, it was, and cannot be used.
pub(crate) async fn inputs_of(
    objects: &StoredObjects,
    name: &str,
    lookup: &Lookup,
) -> Result<Result<Inputs, Problem>, StoredError> {
    if let Err(refusal) = may_ask(lookup.asker) {
        return Ok(Err(refusal.problem("the Secret of the KubeFedCluster")));
    }
    let namespace = lookup.secret_namespace.as_deref().unwrap_or_default();
    let key = format!("{namespace}/{name}");
    let mut whole = objects.whole(&KUBEFED_CLUSTERS, &key).await?;
    if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let cluster = Object::<KubeFedCluster>::read(whole).map_err(|error| {
        let (kind, why) = (KUBEFED_CLUSTERS.kind.to_string(), error.to_string());
        StoredError::Form { kind, key, why }
    })?;
    let secret = match access::secret_key(&cluster) {
        Some(key) => objects.secret(&key).await?,
        None => None,
    };
    Ok(access::inputs(&cluster, secret.as_ref(), false))
}
