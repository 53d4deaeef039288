//! The audit: beside another controller that still publishes, this one says where it would publish
//! something else, and writes nothing.

use std::time::Instant;

use tracing::{info, warn};

use super::difference::Difference;
use super::watched::Watched;

/// Compares one cluster with its object; a difference that has come to last, or has ended, is told.
pub(crate) fn look_at(watched: &Watched, now: Instant) {
    let stored = watched.flavour.stored(&watched.cluster);
    let (before, after) = watched.compare(stored, now);
    let (flavour, cluster) = (watched.flavour.name(), &*watched.cluster.key);
    let lasting = |difference: Option<Difference>| difference.filter(Difference::is_lasting);
    match (lasting(before), lasting(after)) {
        (None, Some(it)) => {
            let (ours, stored) = (it.ours.label(), it.stored_label());
            warn!(
                flavour,
                cluster, ours, stored, "Audit: the object says another thing than we would publish"
            );
        }
        (Some(_), None) => {
            info!(flavour, cluster, "Audit: the object and what we would publish no longer differ");
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}
