//! TKEStack's clusters: which are probed, where and as whom, what is written to them, and what is
//! gathered of them beside the probes.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`Tke`]: what the engine asks |
//! | `watch.rs` | watches the objects, their ClusterCredentials and Secrets |
//! | `resolve.rs` | reads the credential of a Cluster and makes its client |
//! | `prober.rs` | how one Cluster is probed |
//! | `detail_workers.rs`, `details.rs`, `summary.rs` | what is gathered beside the probes |
//! | `summary_metrics.rs` | [`SummaryMetrics`]: what was gathered, as metrics |
//! | `node_lists.rs` | one list of Nodes at a time, for everybody who needs one |
//! | `machines.rs` | the Machines of each Cluster |
//! | `cluster_states.rs` | what is known of each Cluster |
//! | `fetch.rs` | ClusterCredentials and Secrets, read one at a time |
//! | `supervision.rs` | which Clusters are probed, and whose phase is ours |
//! | `access.rs`, `choice.rs`, `inputs.rs` | where a Cluster is asked, and as whom |
//! | `one_cluster.rs` | how one Cluster is reached, looked up once |
//! | `facts.rs`, `version.rs` | what is learnt of a Cluster beside its health |
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
