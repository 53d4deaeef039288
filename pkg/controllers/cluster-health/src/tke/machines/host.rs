//! [`Host`]: what can be known of the Machines of a Cluster. Pure.

use health::Status;
use objects::Object;

use super::standing::Cause;
use crate::api::tke::Cluster;
use crate::tke::supervision::Supervision;

/// A Cluster, as its Machines depend on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Its Nodes can be listed.
    Healthy,
    /// Nobody can say how its Machines are; with the reason for people.
    Unhealthy(String),
    /// The same, and no process probes it, or it is not there: whoever sees that says so, once.
    Unwatched(Cause, String),
    /// It is not probed by this process, or nothing is published of it yet: others speak, or it is
    /// too early to.
    Silent,
}

impl Host {
    /// `cluster` is the object named `name`, `known` whether this process has it, and `readiness`
    /// what it publishes of it; `None` when that is nothing, or nothing yet.
    pub(crate) fn of(
        name: &str,
        cluster: Option<&Object<Cluster>>,
        known: bool,
        readiness: Option<Status>,
    ) -> Self {
        let Some(cluster) = cluster else {
            return Self::Unwatched(Cause::ClusterNotFound, format!("there is no cluster {name}"));
        };
        match (Supervision::of(cluster), readiness) {
            (Supervision::LeftAlone, _) => {
                let phase = &cluster.status.phase;
                let why = format!("cluster {name} is not watched, its phase is {phase}");
                Self::Unwatched(Cause::ClusterUnhealthy, why)
            }
            (Supervision::Locked, _) if known => {
                Self::Unhealthy(format!("cluster {name} is locked"))
            }
            (Supervision::Locked, _) | (_, None) => Self::Silent,
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
            let word = match Host::of("cls-1", Some(&cluster), known, readiness) {
                Host::Healthy => "healthy",
                Host::Unhealthy(_) => "unhealthy",
                Host::Unwatched(..) => "unwatched",
                Host::Silent => "silent",
            };
            assert_eq!(word, expected, "{phase} {locked} {known} {readiness:?}");
        }
        let gone = Host::of("cls-1", None, false, None);
        let why = "there is no cluster cls-1".to_owned();
        assert_eq!(gone, Host::Unwatched(Cause::ClusterNotFound, why));
    }
}
