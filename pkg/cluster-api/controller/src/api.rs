//! The kinds of Cluster API as this crate reads and writes them, and the names by which all of its
//! programs know each other's marks. Types know the fields that somebody reads; the others survive
//! every write.

pub mod aws_cluster;
pub mod cluster;
pub mod condition;
pub mod reference;
pub mod secret;

use kube_api::Resource;

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
/// On a Cluster: the dialect in which it was written, `v1alpha2` or `v1beta2`; it never changes.
pub const DIALECT_ANNOTATION: &str = "infra-controller-manager/dialect";
/// Annotation with the identity of an AWSCluster on AWS, set once: the UID that it had first.
pub const OWNER_ID_ANNOTATION: &str = "aws.cluster.x-k8s.io/owner-id";
/// Annotation with the AWS account that the cluster is in, set before anything is made there.
pub const ACCOUNT_ANNOTATION: &str = "aws.cluster.x-k8s.io/account-id";
/// Annotation with the keys of `additionalTags` that were set on AWS, separated by newlines.
pub const APPLIED_TAGS_ANNOTATION: &str = "aws.cluster.x-k8s.io/last-applied-tags";
/// Annotation: with `true`, resources that carry the Cluster's tag and nobody's identity are taken
/// over.
pub const ADOPT_ANNOTATION: &str = "aws.cluster.x-k8s.io/adopt";
/// Annotation: with `true`, a lost load balancer is made anew although clients know the name of the
/// old one.
pub const RECREATE_ANNOTATION: &str = "aws.cluster.x-k8s.io/allow-lb-recreate";
/// Annotation: with `true`, network interfaces that nothing uses are deleted with the VPC that they
/// are in.
pub const FREE_INTERFACES_ANNOTATION: &str = "aws.cluster.x-k8s.io/force-delete-enis";
/// Annotation: with `false`, load balancers and groups that Kubernetes made for Services outlive
/// the cluster.
pub const EXTERNAL_RESOURCES_ANNOTATION: &str = "aws.cluster.x-k8s.io/external-resource-gc";
/// Annotation: with `true`, one that is deleted goes although AWS is not accessible, if nothing is
/// known to have been made for it.
pub const ABANDON_ANNOTATION: &str = "aws.cluster.x-k8s.io/allow-abandon";
/// Annotation of a Cluster with the network of its Pods.
pub const CNI_ANNOTATION: &str = "cluster.k8s.io/network-cni";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_may_say_by_annotation_stands_in_the_description_of_the_kind() {
        let crd =
            include_str!("../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclusters.yaml");
        for annotation in [
            PAUSED_ANNOTATION,
            MANAGED_BY_ANNOTATION,
            ADOPT_ANNOTATION,
            RECREATE_ANNOTATION,
            EXTERNAL_RESOURCES_ANNOTATION,
            FREE_INTERFACES_ANNOTATION,
            ABANDON_ANNOTATION,
        ] {
            assert!(crd.contains(&format!("- {annotation}")), "{annotation}");
        }
    }
}
