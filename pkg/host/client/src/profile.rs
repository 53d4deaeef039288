//! What one client is for. Filled in by whoever needs a client, read by the factory.

use resilience::Fence;

use crate::throttle::Throttle;

/// Who a client is to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The identity of the kubeconfig. Always the one of informers, leases and the process's own
    /// events.
    Root,
    /// A service account, whose token the root identity requests, and which it creates when absent.
    /// Requests of such a client never carry the root identity's certificate or token.
    ServiceAccount {
        /// Its namespace, in a normal cluster `kube-system`.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What one client is for.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Suffix of the user agent and the `client` label of its metrics.
    pub agent: String,
    /// Token bucket; `None` is unlimited.
    pub throttle: Option<Throttle>,
    /// Stops writes when leadership ends; `None` never does.
    pub fence: Option<Fence>,
    /// Who it is.
    pub identity: Identity,
    /// A connection of its own, opened anew after every failure, and nothing that other clients or
    /// the server's 429s cause delays it: for the lease (`rule:the-lease-waits-for-nothing`).
    pub own_connection: bool,
    /// The server judges its writes and stores none of them (`rule:dry-run-stores-nothing`).
    pub dry_run: bool,
}

impl Profile {
    /// The root identity under the name `agent`, without limits, on the shared connection.
    pub fn root(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            throttle: None,
            fence: None,
            identity: Identity::Root,
            own_connection: false,
            dry_run: false,
        }
    }
}
