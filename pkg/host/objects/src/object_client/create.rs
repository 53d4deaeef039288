//! Writes of whole manifests: creation, and server-side apply, for which the server itself lays our
//! fields over the object.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::calls::{Part, Verb};
use crate::draft::Draft;
use crate::error::{Error, Outcome, Why};
use crate::object::{Object, Schema};
use crate::object_client::ObjectClient;

/// Attempts whose outcome a read could not tell.
const ATTEMPTS: u32 = 3;
/// Times the number of the attempt.
const PAUSE: Duration = Duration::from_millis(10);

/// An object that is there now.
#[derive(Debug)]
pub enum Created<S: Schema> {
    /// The object was created from the draft.
    New(Arc<Object<S>>),
    /// The object existed, or an attempt of unknown outcome created it; it may differ from the
    /// draft.
    Existing(Arc<Object<S>>),
}

impl<S: Schema> Created<S> {
    /// The object.
    pub fn into_object(self) -> Arc<Object<S>> {
        match self {
            Self::New(object) | Self::Existing(object) => object,
        }
    }
}

impl<S: Schema> ObjectClient<S> {
    /// Makes an object of this key (name, or `namespace/name`). A status in it is not taken by
    /// kinds that have the subresource.
    ///
    /// # Errors
    /// [`Why::Exists`] when there is one. [`Error::outcome`] says whether it may have been made.
    pub async fn create(&self, key: &str, draft: &Draft<S>) -> Result<Arc<Object<S>>, Error> {
        let body = self.manifest(key, draft).map_err(|why| self.calls.error("create", key, why))?;
        self.write(key, Part::Main, Verb::Create, &body).await
    }

    /// Makes an object unless there is one of this key. After an unknown outcome it looks, and
    /// tries again when it is absent: a name is given once.
    ///
    /// # Errors
    /// As [`ObjectClient::create`].
    pub async fn create_if_absent(&self, key: &str, draft: &Draft<S>) -> Result<Created<S>, Error> {
        let mut attempt = 1;
        loop {
            let error = match self.create(key, draft).await {
                Ok(object) => return Ok(Created::New(object)),
                Err(error) => error,
            };
            if error.outcome() != Outcome::Unknown && !matches!(error.why, Why::Exists) {
                return Err(error);
            }
            if let Ok(Some(object)) = self.read(key).await {
                self.note(&object);
                return Ok(Created::Existing(object));
            }
            if attempt == ATTEMPTS {
                return Err(error);
            }
            sleep(PAUSE * attempt).await;
            attempt += 1;
        }
    }

    fn manifest(&self, key: &str, draft: &Draft<S>) -> Result<Value, Why> {
        let mut manifest = serde_json::to_value(draft).map_err(|_| Why::Encode)?;
        self.identify(&mut manifest, key);
        Ok(manifest)
    }

    /// Says in a manifest which object it is.
    pub(super) fn identify(&self, manifest: &mut Value, key: &str) {
        let resource = &self.calls.resource;
        manifest["apiVersion"] = json!(resource.api_version());
        manifest["kind"] = json!(resource.kind);
        match key.split_once('/') {
            Some((namespace, name)) => {
                manifest["metadata"]["namespace"] = json!(namespace);
                manifest["metadata"]["name"] = json!(name);
            }
            None => manifest["metadata"]["name"] = json!(key),
        }
    }
}

/// Arguments of a server-side apply.
#[derive(Clone, Debug)]
pub struct Apply {
    /// The fields that this field manager owns from now on, all of them: one that it left out and
    /// owned before is removed. `apiVersion`, `kind` and the name are filled in.
    pub fields: Value,
    /// The object's UID: no other object of its name is changed, and none is made. `None` makes
    /// one where it is absent.
    pub uid: Option<String>,
    /// Takes the fields that others own. Without it such fields are a [`Why::Conflict`].
    pub force: bool,
    /// Part of the object that has the fields.
    pub part: Part,
}

impl<S: Schema> ObjectClient<S> {
    /// Applies fields once. The server makes no new version when nothing is different.
    ///
    /// The object's version is no precondition: the server lays the fields over whatever version
    /// it has. So an attempt of unknown outcome may still be carried out after a later one, up to
    /// the time limit of one attempt; apply from one place at a time.
    ///
    /// # Errors
    /// [`Error::outcome`] says whether it may have been applied.
    pub async fn apply(&self, key: &str, apply: &Apply) -> Result<Arc<Object<S>>, Error> {
        let mut manifest = apply.fields.clone();
        if !manifest.is_object() || manifest.get("metadata").is_some_and(|m| !m.is_object()) {
            return Err(self.calls.error("apply", key, Why::Encode));
        }
        self.identify(&mut manifest, key);
        if let Some(uid) = &apply.uid {
            manifest["metadata"]["uid"] = Value::from(&**uid);
        }
        self.write(key, apply.part, Verb::Apply { force: apply.force }, &manifest).await
    }
}
