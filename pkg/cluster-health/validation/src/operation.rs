//! [`Operation`]: what is to happen to an object.

use serde_json::Value;

/// The operation on an object.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// The object is created.
    Create,
    /// The object replaces the stored one.
    Update {
        /// The stored object.
        old: &'a Value,
    },
    /// The object's status replaces the stored one.
    UpdateStatus {
        /// The stored object.
        old: &'a Value,
    },
    /// The object is deleted.
    Delete,
}
