//! KubeFed's members: how each is reached, how often it is probed, and what is written to it.
//!
//! | file | holds |
//! |---|---|
//! | `flavour.rs` | [`KubeFed`]: what the engine asks |
//! | `watch.rs` | watches the objects, their Secrets and the KubeFedConfig |
//! | `references.rs` | which members refer to which Secret |
//! | `resolve.rs` | reads the Secret of a member and makes its client |
//! | `access.rs` | how a member is reached, from its object and its Secret |
//! | `one_cluster.rs` | how one member is reached, looked up once |
//! | `settings.rs` | how members are probed, by flags and KubeFedConfig |
//! | `topology.rs`, `duplicate_clusters.rs`, `survey.rs` | zones and region; which cluster it is; reading them |
//! | `upstream_metrics.rs` | [`UpstreamMetrics`], under the names of KubeFed's controller |
//! | `status.rs` | what is published as conditions, and read back |

mod access;
mod flavour;
mod settings;
mod status;
mod survey;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod topology;
mod upstream_metrics;
mod watch;

pub(crate) use access::inputs_of;
pub(crate) use flavour::KubeFed;
pub(crate) use upstream_metrics::UpstreamMetrics;
