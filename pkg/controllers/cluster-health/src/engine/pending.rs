//! [`Pending`]: something whose status waits to be written.

use std::sync::Arc;
use std::time::Duration;

use health::Moment;
use model::Resource;

use super::flavour::Cluster;
use super::status_write::StatusWrite;

/// One object whose status is written. What is written is its state when its turn comes.
pub trait Pending: Send + Sync + 'static {
    /// The label of metrics: the name of the flavour that it is of.
    fn flavour(&self) -> &'static str;

    /// Its kind: that of the flavour, or one of [`super::Flavour::further_kinds`].
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
