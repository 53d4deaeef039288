//! The kinds of Cluster API as this crate reads and writes them, and the names by which all of its
//! programs know each other's marks. Types know the fields that somebody reads; the others survive
//! every write.

pub mod aws_cluster;
pub mod cluster;
pub mod condition;
pub mod endpoint;
pub mod machine;
pub mod reference;
pub mod secret;

use model::Resource;

/// Group of Clusters and Machines.
pub const GROUP: &str = "cluster.x-k8s.io";
/// Group of what makes infrastructure.
pub const INFRASTRUCTURE_GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// Clusters, in the version that they are stored in; the other one has the same fields.
pub const CLUSTERS: Resource = Resource::namespaced(GROUP, "v1alpha2", "Cluster", "clusters");
/// AWSClusters, in the version that they are stored in.
pub const AWS_CLUSTERS: Resource =
    Resource::namespaced(INFRASTRUCTURE_GROUP, "v1beta2", "AWSCluster", "awsclusters");
/// Secrets.
pub const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");

/// Holds a Cluster until what it owns is gone.
pub const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";
/// Holds an AWSCluster until nothing of it is left on AWS.
pub const AWS_CLUSTER_FINALIZER: &str = "awscluster.infrastructure.cluster.x-k8s.io";

/// Label with the name of the Cluster, on everything of it.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label of the Machines of a control plane, whatever its value.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label that `--watch-filter` selects by.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Annotation of what nobody is to touch for now.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Annotation of infrastructure that is made by somebody else, whatever its value.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
