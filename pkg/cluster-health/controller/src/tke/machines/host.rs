//! [`ParentCluster`]: whether the Machines of a Cluster can be observed. Pure.

use health::Status;
use objects::Object;

use super::state::UnknownReason;
use crate::api::tke::Cluster;
use crate::engine::Supervision;
use crate::tke::supervision::supervision;

/// The state of a Cluster as far as its Machines depend on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParentCluster {
    /// Its Nodes can be listed.
    Healthy,
    /// Its Machines are unknown, with this message.
    Unhealthy(String),
    /// Its Machines are unknown, and no replica probes it or it does not exist: the replica that owns
    /// its name writes that once.
    Unsupervised(UnknownReason, String),
    /// It is not probed by this process, or nothing is published of it yet.
    Undecided,
}

impl ParentCluster {
    /// `cluster` is the object named `name`, `known` whether this process has it, and `readiness`
    /// what it publishes of it; `None` when that is nothing, or nothing yet.
    pub(crate) fn of(
        name: &str,
        cluster: Option<&Object<Cluster>>,
        known: bool,
        readiness: Option<Status>,
    ) -> Self {
        let Some(cluster) = cluster else {
            return Self::Unsupervised(
                UnknownReason::ClusterNotFound,
                format!("there is no cluster {name}"),
            );
        };
        match (supervision(cluster), readiness) {
            (Supervision::LeftAlone, _) => {
                let phase = &cluster.status.phase;
                let why = format!("cluster {name} is not watched, its phase is {phase}");
                Self::Unsupervised(UnknownReason::ClusterUnhealthy, why)
            }
            (Supervision::Locked, _) if known => {
                Self::Unhealthy(format!("cluster {name} is locked"))
            }
            (Supervision::Locked, _) | (_, None) => Self::Undecided,
            (Supervision::Probed, Some(Status::True)) => Self::Healthy,
            (Supervision::Probed, Some(Status::False)) => {
                Self::Unhealthy(format!("cluster {name} is not healthy"))
            }
            (Supervision::Probed, Some(Status::Unknown)) => {
                Self::Unhealthy(format!("nobody knows how cluster {name} is"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tke::testing::cluster;

    #[test]
    fn machines_are_looked_at_while_their_cluster_is_probed_and_healthy() {
        // (phase, locked, known, what is published, what comes of it)
        let rows = [
            ("Running", false, true, Some(Status::True), "healthy"),
            ("Running", false, true, Some(Status::False), "unhealthy"),
            ("Running", false, true, Some(Status::Unknown), "unhealthy"),
            ("Running", false, true, None, "silent"),
            ("Running", false, false, None, "silent"),
            ("Running", true, true, None, "unhealthy"),
            ("Running", true, false, None, "silent"),
            ("Upgrading", false, true, Some(Status::True), "healthy"),
            ("Terminating", false, true, Some(Status::True), "unwatched"),
            ("Idling", false, false, None, "unwatched"),
        ];
        for (phase, locked, known, readiness, expected) in rows {
            let mut cluster = cluster(|object| object["status"]["phase"] = phase.into());
            cluster.status.locked = Some(locked);
            let word = match ParentCluster::of("cls-1", Some(&cluster), known, readiness) {
                ParentCluster::Healthy => "healthy",
                ParentCluster::Unhealthy(_) => "unhealthy",
                ParentCluster::Unsupervised(..) => "unwatched",
                ParentCluster::Undecided => "silent",
            };
            assert_eq!(word, expected, "{phase} {locked} {known} {readiness:?}");
        }
        let gone = ParentCluster::of("cls-1", None, false, None);
        let why = "there is no cluster cls-1".to_owned();
        assert_eq!(gone, ParentCluster::Unsupervised(UnknownReason::ClusterNotFound, why));
    }
}
