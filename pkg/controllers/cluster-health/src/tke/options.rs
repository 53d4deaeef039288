//! [`TkeOptions`]: what the flags say to this flavour.

use std::time::Duration;

use health::Policy;

/// For the `tke` flavour.
#[derive(Clone, Debug, PartialEq)]
pub struct TkeOptions {
    /// How Clusters are watched over.
    pub policy: Policy,
    /// Namespace of the Secrets that ClusterCredentials refer to; `None` for all.
    pub secret_namespace: Option<String>,
    /// Between two summaries of a cluster; zero for none.
    pub summary_interval: Duration,
    /// Summaries under way at once, and lists of Nodes for Machines.
    pub summary_concurrency: usize,
    /// Objects in a page.
    pub summary_page_size: usize,
    /// The share of Nodes that has to be ready.
    pub nodes_ready_min_ratio: f64,
    /// Whether a cluster with too few ready Nodes is published as failing.
    pub ready_requires_nodes: bool,
    /// Between two looks at the Machines of a cluster; zero for none.
    pub machine_period: Duration,
    /// Whether a Machine whose Node is not ready fails.
    pub machine_require_node_ready: bool,
    /// Whether certificates of clusters without a CA are not checked.
    pub insecure_without_ca: bool,
}

impl TkeOptions {
    /// From one list of Nodes to the one that confirms what it says of a Machine.
    pub(crate) fn machine_confirm(&self) -> Duration {
        self.policy.cadence.confirm.min(self.machine_period)
    }
}
