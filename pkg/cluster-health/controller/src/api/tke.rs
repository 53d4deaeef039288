//! Group `platform.tkestack.io/v1`.

mod cluster;
mod credential;
mod machine;

use kube_api::Resource;

pub use cluster::Phase;
pub use cluster::{AddressType, ClusterAddress};
pub use cluster::{
    Cluster, ClusterSpec, ClusterStatus, CredentialRef, NodeCounts, ResourceSummary,
};
pub(crate) use credential::CredentialPage;
pub use credential::{ClusterCredential, CredentialError, SecretRef};
pub(crate) use machine::cut;
pub use machine::{Machine, MachineAddress, MachineInfo, MachineSpec, MachineStatus};

const GROUP: &str = "platform.tkestack.io";

/// Where Clusters are served.
pub const CLUSTERS: Resource = Resource::cluster(GROUP, "v1", "Cluster", "clusters");
/// Where ClusterCredentials are served.
pub const CLUSTER_CREDENTIALS: Resource =
    Resource::cluster(GROUP, "v1", "ClusterCredential", "clustercredentials");
/// Where Machines are served.
pub const MACHINES: Resource = Resource::cluster(GROUP, "v1", "Machine", "machines");

#[cfg(test)]
mod tests;
