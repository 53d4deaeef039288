//! TKEStack's Clusters and Machines: credentials, probes, status, and the details that are read apart
//! from the probes.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`Tke`]: what the engine asks |
//! | `watch.rs` | watches the objects, their ClusterCredentials and Secrets |
//! | `resolve.rs` | reads the credential of a Cluster and makes its client |
//! | `prober.rs` | how one Cluster is probed |
//! | `detail_workers.rs`, `details.rs`, `summary.rs` | versions, summaries and other details, read apart from the probes |
//! | `summary_metrics.rs` | [`SummaryMetrics`]: what was gathered, as metrics |
//! | `node_lists.rs` | one list of Nodes at a time, shared by summaries and Machines |
//! | `machines.rs` | the Machines of each Cluster |
//! | `cluster_states.rs` | the connection and the facts of each Cluster |
//! | `fetch.rs` | ClusterCredentials and Secrets, read one at a time |
//! | `supervision.rs` | which Clusters are probed, and whose phase is ours |
//! | `access.rs`, `choice.rs`, `inputs.rs` | where a Cluster is asked, and as whom |
//! | `one_cluster.rs` | how one Cluster is reached, looked up once |
//! | `facts.rs`, `version.rs` | version, summary, Nodes and credential of a Cluster, and their conditions |
//! | `status.rs` | what is written, and what is read back after a restart |

use std::time::Duration;

use health::Policy;

mod access;
mod cluster_states;
mod credentials;
mod detail_workers;
mod details;
mod facts;
mod flavour;
mod machines;
mod node_lists;
mod one_cluster;
mod status;
mod summary;
mod summary_metrics;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use flavour::Tke;
pub(crate) use one_cluster::inputs_of;
pub(crate) use summary_metrics::SummaryMetrics;

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
