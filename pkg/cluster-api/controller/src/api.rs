//! The kinds of Cluster API as this crate reads and writes them, and the names by which all of its
//! programs know each other's marks. Types know the fields that somebody reads; the others survive
//! every write.

pub(crate) mod aws_cluster;
pub(crate) mod aws_identity;
pub(crate) mod cluster;
pub(crate) mod secret;

pub(crate) use aws_network::Dialect;
use jiff::Timestamp;
pub(crate) use kube_api::Condition;
use kube_api::{Resource, set_status_condition};
use serde::{Deserialize, Serialize};

/// Group of Clusters and Machines.
pub(crate) const GROUP: &str = "cluster.x-k8s.io";
/// Group of what makes infrastructure.
pub(crate) const INFRASTRUCTURE_GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// Clusters, in the version that they are stored in; the others have the same fields.
pub(crate) const CLUSTERS: Resource = Resource::namespaced(GROUP, "v1beta2", "Cluster", "clusters");
/// AWSClusters, in the version that they are stored in.
pub(crate) const AWS_CLUSTERS: Resource =
    Resource::namespaced(INFRASTRUCTURE_GROUP, "v1beta2", "AWSCluster", "awsclusters");
pub(crate) const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");
pub(crate) const NAMESPACES: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");

/// Holds a Cluster until what it owns is gone.
pub(crate) const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";
/// Holds an AWSCluster until nothing of it is left on AWS.
pub(crate) const AWS_CLUSTER_FINALIZER: &str = "awscluster.infrastructure.cluster.x-k8s.io";

/// Label with the name of the Cluster, on everything of it.
pub(crate) const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label of the Machines of a control plane, whatever its value.
pub(crate) const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label that `--watch-filter` selects by.
pub(crate) const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Label of an object that the core makes of a template of a ClusterClass, and keeps by server-side apply.
pub(crate) const TOPOLOGY_OWNED_LABEL: &str = "topology.cluster.x-k8s.io/owned";
/// Annotation that `clusterctl move` puts in place of all others before it deletes an object at the source, whatever its
/// value.
pub(crate) const MOVED_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Annotation of objects that must not be changed for now.
pub(crate) const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Annotation of infrastructure that is made by somebody else, whatever its value. The text of the contract calls it
/// a label, and the core's code reads the annotation, so a label of this name means the same.
pub(crate) const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// On a Cluster: the dialect in which it was written, `v1alpha2` or `v1beta2`; it never changes.
pub(crate) const DIALECT_ANNOTATION: &str = "infra-controller-manager/dialect";
/// Annotation with the identity of an AWSCluster on AWS, set once: the UID that it had first.
pub(crate) const OWNER_ID_ANNOTATION: &str = "aws.cluster.x-k8s.io/owner-id";
/// Annotation with the AWS account that the cluster is in, set before anything is made there.
pub(crate) const ACCOUNT_ANNOTATION: &str = "aws.cluster.x-k8s.io/account-id";
/// Annotation with the keys of `additionalTags` that were set on AWS, separated by newlines.
pub(crate) const APPLIED_TAGS_ANNOTATION: &str = "aws.cluster.x-k8s.io/last-applied-tags";
/// Annotation with the owner id and the code by which AWS refused a regional NAT gateway, while the spec
/// asks for one.
pub(crate) const REGIONAL_NAT_ANNOTATION: &str = "aws.cluster.x-k8s.io/regional-nat-refused";
/// Annotation: with `true`, resources that carry the Cluster's tag and no owner id are adopted.
pub(crate) const ADOPT_ANNOTATION: &str = "aws.cluster.x-k8s.io/adopt";
/// Annotation: with `true`, a lost load balancer is created again although clients know the old
/// DNS name.
pub(crate) const RECREATE_ANNOTATION: &str = "aws.cluster.x-k8s.io/allow-lb-recreate";
/// Annotation: with `true`, network interfaces that nothing uses are deleted with the VPC that they
/// are in.
pub(crate) const FREE_INTERFACES_ANNOTATION: &str = "aws.cluster.x-k8s.io/force-delete-enis";
/// Annotation: with `false`, load balancers and groups that Kubernetes made for Services outlive
/// the cluster.
pub(crate) const EXTERNAL_RESOURCES_ANNOTATION: &str = "aws.cluster.x-k8s.io/external-resource-gc";
/// Annotation: with `true`, one that is deleted goes although AWS is not accessible, if nothing is
/// known to have been made for it.
pub(crate) const ABANDON_ANNOTATION: &str = "aws.cluster.x-k8s.io/allow-abandon";
/// Annotation of a Cluster with the network of its Pods.
pub(crate) const CNI_ANNOTATION: &str = "cluster.k8s.io/network-cni";

/// An object in the namespace of the Cluster: v1alpha2 names its `apiVersion`, v1beta2 its
/// `apiGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    /// `group/version`; the version is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_group: Option<String>,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Reference {
    /// The group; empty for core.
    pub(crate) fn group(&self) -> &str {
        if let Some(group) = &self.api_group {
            return group;
        }
        let version = self.api_version.as_deref().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The dialect that earlier releases took from the form of a reference.
    pub(crate) fn dialect_by_form(&self) -> Dialect {
        if self.api_group.is_some() { Dialect::V1Beta2 } else { Dialect::V1Alpha2 }
    }
}

/// Changes to the conditions of an object.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) stated: Vec<Condition>,
    pub(crate) gone: Vec<&'static str>,
}

impl Conditions {
    /// Adds a condition that holds.
    pub(crate) fn mark_true(&mut self, kind: &str, reason: &str, message: impl Into<String>) {
        self.state(kind, true, reason, message);
    }

    /// Adds a condition that does not hold.
    pub(crate) fn mark_false(&mut self, kind: &str, reason: &str, message: impl Into<String>) {
        self.state(kind, false, reason, message);
    }

    /// Adds a condition that holds or does not, with its reason.
    pub(crate) fn state(
        &mut self,
        kind: &str,
        holds: bool,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.stated.push(Condition::new(kind, holds, reason, message));
    }

    /// Has a list of conditions say it about this generation.
    pub(crate) fn publish(&self, conditions: &mut Vec<Condition>, generation: i64, now: Timestamp) {
        for kind in &self.gone {
            conditions.retain(|held| held.kind != *kind);
        }
        for fact in &self.stated {
            let observed_generation = Some(generation);
            let condition = Condition { observed_generation, ..fact.clone() };
            set_status_condition(conditions, condition, now);
        }
    }
}

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

    fn read(json: serde_json::Value) -> Reference {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_reference_of_either_dialect_names_a_group_and_shows_its_dialect() {
        let older =
            read(serde_json::json!({"apiVersion": "g.io/v1alpha2", "kind": "K", "name": "n",
            "namespace": "elsewhere", "uid": "u"}));
        assert_eq!((older.group(), older.dialect_by_form()), ("g.io", Dialect::V1Alpha2));
        let newer = read(serde_json::json!({"apiGroup": "g.io", "kind": "K", "name": "n"}));
        assert_eq!((newer.group(), newer.dialect_by_form()), ("g.io", Dialect::V1Beta2));
        let core = read(serde_json::json!({"apiVersion": "v1", "kind": "K", "name": "n"}));
        assert_eq!(core.group(), "");
    }
}
