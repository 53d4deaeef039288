//! [`Host`]: what can be known of the Machines of a Cluster. Pure.

use health::Status;
use objects::Object;

use crate::api::tke::Cluster;
use crate::tke::supervision::Supervision;

/// A Cluster, as its Machines depend on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Its Nodes can be listed.
    Healthy,
    /// Nobody can say how its Machines are; with the reason for people.
    Unhealthy(String),
    /// The same, and no process probes it: whoever sees that says so, once.
    Unwatched(String),
    /// It is not probed by this process, or nothing is published of it yet: others speak, or it is
    /// too early to.
    Silent,
}

impl Host {
    /// `cluster` is the object named `name`, and `readiness` what this process publishes of it;
    /// `None` when it does not know it, or has nothing to publish yet.
    pub(crate) fn of(
        name: &str,
        cluster: Option<&Object<Cluster>>,
        readiness: Option<Status>,
    ) -> Self {
        let Some(cluster) = cluster else {
            return Self::Unwatched(format!("there is no cluster {name}"));
        };
        match (Supervision::of(cluster), readiness) {
            (Supervision::LeftAlone, _) => {
                let phase = &cluster.status.phase;
                Self::Unwatched(format!("cluster {name} is not watched, its phase is {phase}"))
            }
            (_, None) => Self::Silent,
            (Supervision::Locked, Some(_)) => Self::Unhealthy(format!("cluster {name} is locked")),
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
        // (phase, locked, what is published, what comes of it)
        let rows = [
            ("Running", false, Some(Status::True), "healthy"),
            ("Running", false, Some(Status::False), "unhealthy"),
            ("Running", false, Some(Status::Unknown), "unhealthy"),
            ("Running", false, None, "silent"),
            ("Running", true, Some(Status::True), "unhealthy"),
            ("Running", true, None, "silent"),
            ("Upgrading", false, Some(Status::True), "healthy"),
            ("Terminating", false, Some(Status::True), "unwatched"),
            ("Idling", false, None, "unwatched"),
        ];
        for (phase, locked, readiness, expected) in rows {
            let mut cluster = cluster(|object| object["status"]["phase"] = phase.into());
            cluster.status.locked = Some(locked);
            let word = match Host::of("cls-1", Some(&cluster), readiness) {
                Host::Healthy => "healthy",
                Host::Unhealthy(_) => "unhealthy",
                Host::Unwatched(_) => "unwatched",
                Host::Silent => "silent",
            };
            assert_eq!(word, expected, "{phase} {locked} {readiness:?}");
        }
        let gone = Host::of("cls-1", None, None);
        assert_eq!(gone, Host::Unwatched("there is no cluster cls-1".to_owned()));
    }
}
