//! The audit: beside another controller that still publishes, this one says where it would publish
//! something else, and writes nothing.

use std::time::Instant;

use tracing::{info, warn};

use super::difference::Difference;
use super::member_cluster::MemberCluster;

/// Compares one cluster with its object; a difference that has come to last, or has ended, is told.
pub(crate) fn look_at(member: &MemberCluster, now: Instant) {
    let stored = member.flavour.stored(&member.cluster);
    let (before, after) = member.compare(stored, now);
    let (flavour, cluster) = (member.flavour.name(), &*member.cluster.key);
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
