//! [`Operation`]: what is to happen to an object.

use serde_json::Value;

/// What is to happen to an object.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// It is made.
    Create,
    /// It takes the place of what is stored.
    Update {
        /// What is stored.
        old: &'a Value,
    },
    /// Its status takes the place of the one that is stored.
    UpdateStatus {
        /// What is stored.
        old: &'a Value,
    },
    /// It is deleted.
    Delete,
}
