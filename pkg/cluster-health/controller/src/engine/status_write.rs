//! [`StatusWrite`]: one write of a status. [`Pending`]: an object whose status waits to be written.

use std::sync::Arc;
use std::time::Duration;

use health::Moment;
use kube_api::Resource;
use objects::{Object, Schema};
use serde_json::Value;

use super::flavour::Cluster;

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

/// One object whose status is written. What is written is its state when its turn comes.
pub trait Pending: Send + Sync + 'static {
    /// The label of metrics: the name of the flavour that it is of.
    fn flavour(&self) -> &'static str;

    /// The kind of the object: that of the flavour, or one of [`super::Flavour::further_kinds`].
    fn resource(&self) -> &'static Resource;

    /// Which object.
    fn object(&self) -> &Cluster;

    /// The UID of the cluster that it belongs to: who probes that writes this.
    fn shard(&self) -> &Arc<str> {
        &self.object().uid
    }

    /// How long it may wait at most before a write of it that failed is tried again.
    fn period(&self) -> Duration;

    /// What to write. `None` when there is nothing to write any more.
    fn write(&self, now: Moment) -> Option<StatusWrite>;
}
