//! [`StoredObjects`]: objects that are read once, from manifests or from the management API, for the
//! command `probe` and the checks of the network.

use std::fmt::Display;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kube_api::Resource;
use objects::{Object, Schema};
use serde_json::{Map, Value};
use transport::wipe;

use crate::api::secret::{json_text, wipe_json};
use crate::secret_data::{ReadError, SECRETS, SecretData, find, not_base64};

const LIMIT: Duration = Duration::from_secs(10);

/// Documents of manifests go before what the management API has. They may hold secrets, so all their
/// texts are overwritten at the end; the file they were read from, and copies that the parser of YAML
/// made of it, are not.
pub(crate) struct StoredObjects {
    documents: Vec<Value>,
    api: Option<kube::Client>,
}

impl Drop for StoredObjects {
    fn drop(&mut self) {
        self.documents.iter_mut().for_each(wipe_json);
    }
}

impl StoredObjects {
    /// Reads the documents first, then the management API, if given.
    pub(crate) fn new(documents: Vec<Value>, api: Option<kube::Client>) -> Self {
        Self { documents, api }
    }

    /// Adds a document that is read before all others.
    pub(crate) fn with(&self, document: Value) -> Self {
        let documents = std::iter::once(document).chain(self.documents.iter().cloned()).collect();
        Self { documents, api: self.api.clone() }
    }

    pub(crate) fn api(&self) -> Option<&kube::Client> {
        self.api.as_ref()
    }

    /// The documents of a kind.
    pub(crate) fn documents<'a>(
        &'a self,
        resource: &Resource,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let (version, kind) = (resource.api_version(), resource.kind.to_string());
        let fits = move |it: &&Value| it["apiVersion"] == *version && it["kind"] == *kind;
        self.documents.iter().filter(fits)
    }

    /// One object as JSON, if it exists. A caller that reads a secret of it wipes it.
    pub(crate) async fn find(
        &self,
        resource: &Resource,
        key: &str,
    ) -> Result<Option<Bytes>, ReadError> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let is_it = |it: &&Value| {
            let metadata = &it["metadata"];
            // One without a namespace goes wherever it is applied.
            let elsewhere = metadata["namespace"].as_str().is_some_and(|it| it != namespace);
            metadata["name"] == name && !elsewhere
        };
        if let Some(document) = self.documents(resource).find(is_it) {
            return Ok(Some(json_text(document)));
        }
        match &self.api {
            Some(api) => find(api, resource, key, LIMIT).await,
            None => Ok(None),
        }
    }

    /// One object that has to be there.
    pub(crate) async fn whole<S: Schema>(
        &self,
        resource: &Resource,
        key: &str,
    ) -> Result<Object<S>, ReadError> {
        let kind = &resource.kind;
        let unusable =
            |why: &dyn Display| ReadError::Unusable(format!("cannot use {kind} {key}: {why}"));
        let Some(text) = self.find(resource, key).await? else {
            let looked = self.looked();
            return Err(ReadError::Unusable(format!("cannot find {kind} {key}: {looked}")));
        };
        let mut whole: Value = serde_json::from_slice(&text).map_err(|error| unusable(&error))?;
        // What was never stored has neither.
        if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("uid").or_insert_with(|| "none".into());
            metadata.entry("resourceVersion").or_insert_with(|| "0".into());
            if let Some((namespace, _)) = key.split_once('/') {
                metadata.insert("namespace".to_owned(), namespace.into());
            }
        }
        Object::read(whole).map_err(|error| unusable(&error))
    }

    fn looked(&self) -> &'static str {
        match (self.documents.is_empty(), &self.api) {
            (true, Some(_)) => "the management API does not have it",
            (false, Some(_)) => "neither the file nor the management API has it",
            (_, None) => {
                "it is not in the file; set --kubeconfig to read it from the management API"
            }
        }
    }

    /// A Secret, if there is one, with the value of the key `entry`.
    pub(crate) async fn secret(
        &self,
        key: &str,
        entry: Option<&str>,
    ) -> Result<Option<SecretData>, ReadError> {
        let Some(stored) = self.find(&SECRETS, key).await? else { return Ok(None) };
        let parsed = serde_json::from_slice::<Value>(&stored);
        wipe(stored);
        let mut secret = parsed.map_err(|_| not_base64(key))?;
        encode(&mut secret);
        let encoded = json_text(&secret);
        wipe_json(&mut secret);
        let read = SecretData::decode_with(&encoded, entry);
        wipe(encoded);
        read.map(Some).ok_or_else(|| not_base64(key))
    }
}

/// Moves `stringData` of a manifest into `data`, as the API server does.
fn encode(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let Some(mut plain) = secret.remove("stringData") else { return };
    let data = secret.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let (Some(data), Some(plain)) = (data.as_object_mut(), plain.as_object()) {
        for (key, text) in plain {
            let Some(text) = text.as_str() else { continue };
            let before = data.insert(key.clone(), STANDARD.encode(text).into());
            if let Some(mut before) = before {
                wipe_json(&mut before);
            }
        }
    }
    wipe_json(&mut plain);
}

#[cfg(test)]
mod tests {
    use memory_search::Mark;
    use objects::Dynamic;
    use secrecy::ExposeSecret as _;
    use serde_json::json;
    use zeroize::Zeroizing;

    use super::*;

    #[tokio::test]
    async fn an_object_that_is_not_in_the_file_is_not_found_without_a_management_api() {
        let document = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}});
        let objects = StoredObjects::new(vec![document], None);
        let error = objects.whole::<Dynamic>(&SECRETS, "a/two").await.unwrap_err();
        let told = "cannot find Secret a/two: it is not in the file; set --kubeconfig to read it from the management API";
        assert_eq!(error.to_string(), told);
    }

    /// rule:secrets-are-never-shown
    #[tokio::test]
    async fn a_secret_of_a_document_that_was_read_and_dropped_is_nowhere_in_memory() {
        let mark = Mark::random();
        let encoded = Mark::of(&Zeroizing::new(STANDARD.encode(mark.secret().as_bytes())));
        let mut document = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {},
            "data": {"token": encoded.secret().as_str()}, "metadata": {"name": "one"}});
        document["stringData"]["token"] = mark.secret().as_str().into();
        let objects = StoredObjects::new(vec![document], None);
        let more = objects.with(json!({"kind": "ConfigMap"}));
        let read = more.secret("a/one", None).await.unwrap().unwrap();
        assert!(read.token().is_some() && mark.is_in_memory(), "it was read");
        drop((objects, more, read));
        assert!(!mark.is_in_memory() && !encoded.is_in_memory());
    }

    #[tokio::test]
    async fn a_document_is_found_by_kind_name_and_namespace_and_plain_text_is_taken() {
        let secret = |namespace: &str, text: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": text},
                "metadata": {"namespace": namespace, "name": "one"}})
        };
        let mut anywhere = secret("", "anywhere");
        anywhere["metadata"] = json!({"name": "two"});
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}});
        let documents = vec![other, secret("a", "of-a"), secret("b", "of-b"), anywhere];
        let objects = StoredObjects::new(documents, None);
        let token = async |key: &str| {
            let secret = objects.secret(key, None).await.unwrap()?;
            Some(secret.token().unwrap().expose_secret().to_owned())
        };
        assert_eq!(token("a/one").await.as_deref(), Some("of-a"));
        assert_eq!(token("b/one").await.as_deref(), Some("of-b"));
        assert_eq!(token("b/two").await.as_deref(), Some("anywhere"));
        assert_eq!((token("c/one").await, token("a/three").await), (None, None));
    }
}
