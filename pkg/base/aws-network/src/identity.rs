//! Whose a resource is. Every write and every delete asks here first.

use std::collections::BTreeMap;

/// The tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// The prefix of the tags that upstream's AWS provider sets, and we with it.
const PROVIDER: &str = "sigs.k8s.io/cluster-api-provider-aws/";

/// The key of the tag that tells what a resource is for.
pub const ROLE_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/role";

/// The key of our own tag, unless `--owner-tag-key` names another.
pub const DEFAULT_OWNER_TAG: &str = "aws.cluster.x-k8s.io/owner-id";

/// Who a cluster is, on AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the Cluster.
    pub cluster: String,
    /// The identity of the AWSCluster, set once and never changed: it survives a restored backup.
    pub owner_id: String,
    /// Key of the tag that holds the owner id.
    pub owner_tag: String,
    /// Resources that carry the cluster's tag and nobody's owner id are taken over.
    pub adopt: bool,
}

/// What the tags of a resource say about us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It carries the cluster's tag and our owner id, or may be adopted.
    Ours,
    /// Anything else: it may be used, and is never changed or deleted.
    Foreign,
}

impl Identity {
    /// Key of the tag that marks what belongs to the cluster, with the value `owned`.
    pub fn cluster_tag(&self) -> String {
        format!("{PROVIDER}cluster/{}", self.cluster)
    }

    /// Key of the tag by which Kubernetes' cloud provider knows what it may use.
    pub fn kubernetes_tag(&self) -> String {
        format!("kubernetes.io/cluster/{}", self.cluster)
    }

    /// Whose a resource is (`rule:ours-by-two-tags`).
    ///
    /// `recorded` says that its id stands in the status or the spec of our own object.
    pub fn ownership(&self, tags: &Tags, recorded: bool) -> Ownership {
        let clusters = tags.get(&self.cluster_tag()).is_some_and(|value| value == "owned");
        match tags.get(&self.owner_tag) {
            Some(owner) if *owner == self.owner_id && clusters => Ownership::Ours,
            None if clusters && (recorded || self.adopt) => Ownership::Ours,
            _ => Ownership::Foreign,
        }
    }

    /// Whether a resource is ours by its tags alone.
    pub fn owns(&self, tags: &Tags) -> bool {
        self.ownership(tags, false) == Ownership::Ours
    }

    /// The tags that every resource of the cluster carries, but its name.
    pub fn base_tags(&self, role: &str) -> Tags {
        Tags::from([
            (self.cluster_tag(), "owned".to_owned()),
            (self.owner_tag.clone(), self.owner_id.clone()),
            (ROLE_TAG.to_owned(), role.to_owned()),
        ])
    }
}
