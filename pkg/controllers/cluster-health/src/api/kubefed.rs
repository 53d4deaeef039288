//! Group `core.kubefed.io/v1beta1`.

mod cluster;
mod config;

use model::Resource;

pub use cluster::{KubeFedCluster, KubeFedClusterSpec, KubeFedClusterStatus, LocalSecretRef};
pub use config::{ClusterHealthCheck, KubeFedConfig, KubeFedConfigSpec};

const GROUP: &str = "core.kubefed.io";

/// Where KubeFedClusters are served.
pub const KUBEFED_CLUSTERS: Resource =
    Resource::namespaced(GROUP, "v1beta1", "KubeFedCluster", "kubefedclusters");
/// Where KubeFedConfigs are served.
pub const KUBEFED_CONFIGS: Resource =
    Resource::namespaced(GROUP, "v1beta1", "KubeFedConfig", "kubefedconfigs");

#[cfg(test)]
mod tests;
