//! Whether a Cluster is probed, and whether its phase is ours to write. Pure.

use objects::Object;

use crate::api::tke::{Cluster, Phase};
use crate::engine::Supervision;

/// The type of clusters that somebody else made.
const IMPORTED: &str = "Imported";

/// Whether a Cluster is probed (`rule:only-live-clusters`).
pub(crate) fn supervision(cluster: &Object<Cluster>) -> Supervision {
    let status = &cluster.status;
    let live = !cluster.metadata.deleting()
        && match status.phase {
            Phase::Terminating | Phase::Waiting | Phase::Idling | Phase::Confined => false,
            Phase::Initializing => is_imported(cluster),
            _ => true,
        };
    match (live, status.locked) {
        (false, _) => Supervision::LeftAlone,
        (true, Some(true)) => Supervision::Locked,
        (true, _) => Supervision::Probed,
    }
}

/// Whether a Cluster is imported: nothing sets it up, so the first probe decides about its phase.
pub(crate) fn is_imported(cluster: &Object<Cluster>) -> bool {
    cluster.body.spec.kind == IMPORTED
}

/// Whether health may change the phase: the others belong to whoever works on the cluster
/// (`rule:phases-of-others-are-kept`).
pub(crate) fn owns_phase(cluster: &Object<Cluster>) -> bool {
    match cluster.status.phase {
        Phase::Running | Phase::Failed => true,
        Phase::Initializing => is_imported(cluster),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tke::testing::cluster;

    /// rule:only-live-clusters
    #[test]
    fn clusters_that_others_set_up_take_down_or_put_aside_are_left_alone() {
        let rows = [
            ("Running", "Baremetal", Supervision::Probed, true),
            ("Failed", "Baremetal", Supervision::Probed, true),
            ("Initializing", "Baremetal", Supervision::LeftAlone, false),
            ("Initializing", "Imported", Supervision::Probed, true),
            ("", "Imported", Supervision::Probed, true),
            ("Upgrading", "Baremetal", Supervision::Probed, false),
            ("Upscaling", "Baremetal", Supervision::Probed, false),
            ("Downscaling", "Baremetal", Supervision::Probed, false),
            ("Recovering", "Baremetal", Supervision::Probed, false),
            ("SomethingNew", "Baremetal", Supervision::Probed, false),
            ("Terminating", "Imported", Supervision::LeftAlone, false),
            ("Waiting", "Imported", Supervision::LeftAlone, false),
            ("Idling", "Imported", Supervision::LeftAlone, false),
            ("Confined", "Imported", Supervision::LeftAlone, false),
        ];
        for (phase, kind, expected, phase_is_ours) in rows {
            let mut cluster = cluster(|object| {
                object["spec"]["type"] = kind.into();
                object["status"]["phase"] = phase.into();
            });
            assert_eq!(supervision(&cluster), expected, "{phase} {kind}");
            assert_eq!(owns_phase(&cluster), phase_is_ours, "{phase} {kind}");
            cluster.status.locked = Some(true);
            let locked = match expected {
                Supervision::Probed => Supervision::Locked,
                other => other,
            };
            assert_eq!(supervision(&cluster), locked, "locked {phase} {kind}");
            cluster.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
            assert_eq!(supervision(&cluster), Supervision::LeftAlone, "deleted {phase} {kind}");
        }
    }
}
