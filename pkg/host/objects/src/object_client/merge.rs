//! Fields laid over an object whose schema is not ours, by a JSON merge patch
//! (`rule:foreign-schemas-get-merge-patches`).

use serde_json::{Value, json};

use super::ObjectClient;
use crate::calls::{Part, Verb};
use crate::merge_patch::between;
use crate::overlay::lay;
use crate::{Error, Schema, Why};

/// Fields for an object of a kind whose schema is not ours.
#[derive(Clone, Debug)]
pub struct Merge {
    /// What the object is to say; all other fields stay. An empty text takes a text away.
    pub fields: Value,
    /// The whole object on which the fields rest ([`crate::Object::whole`]).
    pub over: Value,
    /// What of the object the fields belong to.
    pub part: Part,
}

impl<S: Schema> ObjectClient<S> {
    /// Sends what the fields change, once, for this version of this object only
    /// (`rule:writes-are-guarded`). Fields that change nothing send nothing.
    ///
    /// # Errors
    /// [`Why::Conflict`]: the object was changed since. [`Error::outcome`] says whether it may have
    /// been written.
    pub async fn merge(&self, key: &str, merge: &Merge) -> Result<(), Error> {
        let Merge { fields, over, part } = merge;
        let (uid, version) = (&over["metadata"]["uid"], &over["metadata"]["resourceVersion"]);
        if !fields.is_object() || !uid.is_string() || !version.is_string() {
            return Err(self.calls.error("patch", key, Why::Encode));
        }
        let Some(mut patch) = between(over, &lay(over, fields)) else { return Ok(()) };
        patch["metadata"]["uid"] = json!(uid);
        patch["metadata"]["resourceVersion"] = json!(version);
        self.write(key, *part, Verb::MergePatch, &patch).await.map(drop)
    }
}
