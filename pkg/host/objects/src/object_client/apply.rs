//! Server-side apply: the server itself lays our fields over the object, whoever else writes.

use std::sync::Arc;

use serde_json::Value;

use super::ObjectClient;
use crate::calls::{Part, Verb};
use crate::{Error, Object, Schema, Why};

/// What is applied, and over whose head.
#[derive(Clone, Debug)]
pub struct Apply {
    /// The fields that this field manager owns from now on, all of them: one that it left out and
    /// owned before is removed. `apiVersion`, `kind` and the name are filled in.
    pub fields: Value,
    /// The object's UID: no other object of its name is changed, and none is made. `None` makes
    /// one where there is none.
    pub uid: Option<String>,
    /// Takes the fields that others own. Without it such fields are a [`Why::Conflict`].
    pub force: bool,
    /// What of the object the fields belong to.
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
