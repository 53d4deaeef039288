//! [`StatusWrite`]: what is written to a status, in the way that its schema takes.

use std::sync::Arc;

use objects::{Object, Schema};
use serde_json::Value;

/// Whether the schema of a kind is ours at this moment.
pub type SchemaIsOurs = Arc<dyn Fn() -> bool + Send + Sync>;

/// What is written to a status, and how.
#[derive(Debug)]
pub enum StatusWrite {
    /// All fields that are ours, by server-side apply.
    Apply(Value),
    /// Fields for an object whose schema is not ours, laid over this copy of it
    /// (`rule:foreign-schemas-get-merge-patches`).
    Merge {
        /// What is written.
        fields: Value,
        /// The whole object that they rest on.
        over: Value,
    },
}

impl StatusWrite {
    /// Writes `fields`, as `{"status": {…}}`, to `object` in the way that its schema takes.
    pub fn of<S: Schema>(object: &Object<S>, fields: Value, schema_is_ours: bool) -> Self {
        if schema_is_ours {
            Self::Apply(fields)
        } else {
            Self::Merge { fields, over: object.whole() }
        }
    }
}
