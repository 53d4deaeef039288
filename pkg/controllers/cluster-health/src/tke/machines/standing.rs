//! [`Standing`]: what is said of a Machine. [`Found`]: what a list of Nodes says of it. Pure.

use health::Status;

use crate::api::tke::MachineInfo;
use crate::tke::summary::Roster;

/// What is said of a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is a Node, and a ready one if that is asked for.
    Well,
    /// It is a Node that is not ready.
    NodeNotReady,
    /// It is no Node.
    Missing,
    /// Nobody can say.
    Unknown(Cause),
}

/// Why nobody can say how a Machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its Cluster is not healthy, or nobody watches over it.
    ClusterUnhealthy,
    /// There is no such Cluster.
    ClusterNotFound,
    /// Its Cluster does not let us see its Nodes.
    NodesNotListed,
    /// It is not to be touched.
    Locked,
}

/// What a list of Nodes says of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) standing: Standing,
    /// For people.
    pub(crate) message: String,
    /// What its Node says of itself.
    pub(crate) info: Option<MachineInfo>,
}

impl Found {
    /// Looks for the Machine with this address (`rule:machines-follow-one-list`).
    pub(crate) fn by(roster: &Roster, ip: &str, require_ready: bool) -> Self {
        let Some(node) = roster.find(ip) else {
            let message = format!("no node has the name, the InternalIP or the label of {ip}");
            return Self { standing: Standing::Missing, message, info: None };
        };
        let (name, info) = (&node.name, node.info.clone());
        let (standing, message) = match (node.ready, &*node.reason) {
            (true, _) => (Standing::Well, format!("node {name} is ready")),
            (false, _) if !require_ready => (Standing::Well, format!("node {name} is there")),
            (false, "") => (Standing::NodeNotReady, format!("node {name} is not ready")),
            (false, reason) => {
                (Standing::NodeNotReady, format!("node {name} is not ready: {reason}"))
            }
        };
        Self { standing, message: health::one_line(&message), info }
    }
}

impl Standing {
    /// The status of the condition.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Well => Status::True,
            Self::NodeNotReady | Self::Missing => Status::False,
            Self::Unknown(_) => Status::Unknown,
        }
    }

    /// The reason of the condition.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Well => "",
            Self::NodeNotReady => "NodeNotReady",
            Self::Missing => "HealthCheckFail",
            Self::Unknown(cause) => cause.reason(),
        }
    }
}

impl Cause {
    const ALL: [Self; 4] =
        [Self::ClusterUnhealthy, Self::ClusterNotFound, Self::NodesNotListed, Self::Locked];

    fn reason(self) -> &'static str {
        match self {
            Self::ClusterUnhealthy => "ClusterUnhealthy",
            Self::ClusterNotFound => "ClusterNotFound",
            Self::NodesNotListed => "NodesNotListed",
            Self::Locked => "MachineLocked",
        }
    }

    /// The one with this reason of the condition; `None` when somebody else gave it.
    pub(crate) fn of(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.reason() == reason)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tke::summary::{NodeList, list_of};

    fn nodes() -> NodeList {
        let node = |name: &str, status: &str| {
            json!({
                "metadata": {"name": name},
                "status": {
                    "conditions": [{"type": "Ready", "status": status, "reason": "KubeletSays"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.3"},
                },
            })
        };
        list_of(vec![node("10.0.0.1", "True"), node("10.0.0.2", "False")])
    }

    #[test]
    fn each_outcome_of_a_list_has_its_standing_status_and_reason() {
        let NodeList { roster, .. } = nodes();
        // (address, whether it has to be ready, standing, status, reason, told of its Node)
        let rows = [
            ("10.0.0.1", true, Standing::Well, Status::True, "", true),
            ("10.0.0.1", false, Standing::Well, Status::True, "", true),
            ("10.0.0.2", true, Standing::NodeNotReady, Status::False, "NodeNotReady", true),
            ("10.0.0.2", false, Standing::Well, Status::True, "", true),
            ("10.0.0.3", true, Standing::Missing, Status::False, "HealthCheckFail", false),
            ("10.0.0.3", false, Standing::Missing, Status::False, "HealthCheckFail", false),
        ];
        for (ip, require_ready, standing, status, reason, told) in rows {
            let found = Found::by(&roster, ip, require_ready);
            assert_eq!(found.standing, standing, "{ip} {require_ready}");
            assert_eq!((found.standing.status(), found.standing.reason()), (status, reason));
            assert_eq!(found.info.is_some(), told, "{ip}");
        }
        let message = Found::by(&roster, "10.0.0.2", true).message;
        assert_eq!(message, "node 10.0.0.2 is not ready: KubeletSays");
    }
}
