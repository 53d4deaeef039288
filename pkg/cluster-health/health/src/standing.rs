//! [`Standing`]: what is published about a cluster, and the statuses and reasons that say so.

use crate::Verdict;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Unknown.
    Unknown,
}

impl Status {
    /// Spelling in the object.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Published verdict of a cluster: one that passed its threshold, or `Unknown`.
/// Everything in the object that is not a time or a message follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The cluster answers that it is ready.
    Ready,
    /// The cluster gives another answer.
    NotReady,
    /// The cluster does not answer.
    Offline,
    /// The cluster cannot be probed.
    Malformed,
    /// The last completed probe is too long ago.
    Unknown,
}

impl Standing {
    /// All of them, for whoever counts by standing.
    pub const ALL: [Self; 5] =
        [Self::Ready, Self::NotReady, Self::Offline, Self::Malformed, Self::Unknown];

    /// Status of the condition `Ready`.
    pub const fn ready(self) -> Status {
        match self {
            Self::Ready => Status::True,
            Self::NotReady | Self::Offline | Self::Malformed => Status::False,
            Self::Unknown => Status::Unknown,
        }
    }

    /// Status of the condition `Offline`.
    pub const fn offline(self) -> Status {
        match self {
            Self::Ready | Self::NotReady => Status::False,
            Self::Offline => Status::True,
            Self::Malformed | Self::Unknown => Status::Unknown,
        }
    }

    /// Reason of the condition `Ready`.
    pub const fn ready_reason(self) -> &'static str {
        match self {
            Self::Ready => "ClusterReady",
            Self::NotReady => "ClusterNotReady",
            Self::Offline => "ClusterNotReachable",
            Self::Malformed => "MalformedClusterConfig",
            Self::Unknown => "ClusterStatusUnknown",
        }
    }

    /// Reason of the condition `Offline`.
    pub const fn offline_reason(self) -> &'static str {
        match self {
            Self::Ready | Self::NotReady => "ClusterReachable",
            Self::Offline | Self::Malformed | Self::Unknown => self.ready_reason(),
        }
    }

    /// Reads a standing back from the reason of the condition `Ready`.
    pub fn from_ready_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.ready_reason() == reason)
    }

    /// The standing that this status of `Ready` means when no reason tells more.
    pub const fn from_ready(status: Status) -> Self {
        match status {
            Status::True => Self::Ready,
            Status::False => Self::NotReady,
            Status::Unknown => Self::Unknown,
        }
    }

    /// The label of metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "notready",
            Self::Offline => "offline",
            Self::Malformed => "config",
            Self::Unknown => "unknown",
        }
    }
}

impl From<Verdict> for Standing {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Ok => Self::Ready,
            Verdict::Unhealthy => Self::NotReady,
            Verdict::Unreachable => Self::Offline,
            Verdict::Config => Self::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_is_read_back_from_what_it_publishes() {
        for standing in Standing::ALL {
            assert_eq!(Standing::from_ready_reason(standing.ready_reason()), Some(standing));
            assert_eq!(Standing::from_ready(standing.ready()).ready(), standing.ready());
        }
        assert_eq!(Standing::from_ready_reason("KubeletReady"), None);
    }

    #[test]
    fn every_standing_has_both_conditions() {
        // (standing, Ready, its reason, Offline, its reason)
        let rows = [
            (Standing::Ready, "True", "ClusterReady", "False", "ClusterReachable"),
            (Standing::NotReady, "False", "ClusterNotReady", "False", "ClusterReachable"),
            (Standing::Offline, "False", "ClusterNotReachable", "True", "ClusterNotReachable"),
            (
                Standing::Malformed,
                "False",
                "MalformedClusterConfig",
                "Unknown",
                "MalformedClusterConfig",
            ),
            (
                Standing::Unknown,
                "Unknown",
                "ClusterStatusUnknown",
                "Unknown",
                "ClusterStatusUnknown",
            ),
        ];
        for (standing, ready, ready_reason, offline, offline_reason) in rows {
            assert_eq!((standing.ready().as_str(), standing.ready_reason()), (ready, ready_reason));
            let told = (standing.offline().as_str(), standing.offline_reason());
            assert_eq!(told, (offline, offline_reason));
        }
    }
}
