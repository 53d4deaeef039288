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
//! | `options.rs` | [`TkeOptions`] |

mod access;
mod choice;
mod cluster_states;
mod detail_workers;
mod details;
mod facts;
mod fetch;
mod flavour;
mod inputs;
mod machines;
mod node_lists;
mod one_cluster;
mod options;
mod prober;
mod resolve;
mod status;
mod summary;
mod summary_metrics;
mod supervision;
#[cfg(test)]
mod testing;
mod version;
mod watch;

pub(crate) use flavour::Tke;
pub(crate) use one_cluster::inputs_of;
pub use options::TkeOptions;
pub(crate) use summary_metrics::SummaryMetrics;
