//! [`Identity::ownership`]: who a resource on AWS belongs to. Planning, deletion and reports ask
//! here, and nowhere else.

use std::collections::BTreeMap;

/// The tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// The prefix of the tags that upstream's AWS provider sets, and we with it.
const PROVIDER: &str = "sigs.k8s.io/cluster-api-provider-aws/";

/// The key of the tag with the role of a resource.
pub const ROLE_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/role";

/// The key of our own tag, unless `--owner-tag-key` names another.
pub const DEFAULT_OWNER_TAG: &str = "aws.cluster.x-k8s.io/owner-id";

/// The value of a tag that says that a resource lives and ends with its cluster.
const OWNED: &str = "owned";

/// The key of the tag that Kubernetes' cloud provider sets on load balancers of Services.
const SERVICE_TAG: &str = "kubernetes.io/service-name";

/// How the names of the security groups begin that Kubernetes' cloud provider makes.
const SERVICE_GROUP: &str = "k8s-elb-";

/// How the keys of the tags begin that EKS sets; users cannot set them.
const EKS_TAGS: &str = "aws:eks:";

/// The role of the group that upstream makes for the nodes of an EKS cluster.
const EKS_ROLE: &str = "node-eks-additional";

/// Whether EKS made a resource.
fn is_of_eks(tags: &Tags) -> bool {
    tags.keys().any(|key| key.starts_with(EKS_TAGS))
}

/// Whether a security group shows that its VPC belongs to an EKS cluster.
pub(crate) fn shows_eks(tags: &Tags) -> bool {
    is_of_eks(tags) || tags.get(ROLE_TAG).is_some_and(|role| role == EKS_ROLE)
}

/// The identity of a cluster on AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the Cluster.
    pub cluster: String,
    /// The identity of the AWSCluster, set once and never changed: it survives a restored backup.
    pub owner_id: String,
    /// Key of the tag that holds the owner id.
    pub owner_tag: String,
    /// Resources that carry the cluster's tag and no owner id are adopted.
    pub adopt: bool,
}

/// The owner of a resource, by its tags and by our records. What Kubernetes' cloud provider
/// made for Services is judged by [`Identity::is_service_balancer`] and
/// [`Identity::is_service_group`], since that needs to know the VPC as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Ours: the cluster's tag with our owner id, or without an owner id when we recorded its
    /// creation or may adopt it. It may be written and deleted. A recorded VPC that has lost its
    /// tags is judged in `vpc.rs`.
    Ours,
    /// Upstream's: the cluster's tag and no owner id. Nothing may be done to it before its user
    /// sets the adopt annotation.
    Upstreams,
    /// Owned by another cluster: the owner id is not ours. Adoption does not apply.
    Anothers,
    /// The user's: everything else. It may be used where the spec names it, and is never written.
    Users,
}

/// The [tags](Identity::cluster_tag) of all clusters, as a pattern of a filter.
pub const ANY_CLUSTER_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/cluster/*";

impl Identity {
    /// Key of the tag that marks what belongs to the cluster, with the value `owned`.
    pub fn cluster_tag(&self) -> String {
        format!("{PROVIDER}cluster/{}", self.cluster)
    }

    /// Key of the tag by which Kubernetes' cloud provider knows what it may use.
    pub fn kubernetes_tag(&self) -> String {
        format!("kubernetes.io/cluster/{}", self.cluster)
    }

    /// The owner of a resource (`rule:ours-by-two-tags`).
    ///
    /// `recorded` says that our own object records it as created by us. An id in a spec is no
    /// record.
    pub fn ownership(&self, tags: &Tags, recorded: bool) -> Ownership {
        match tags.get(&self.owner_tag) {
            _ if is_of_eks(tags) => Ownership::Users,
            Some(owner) if *owner != self.owner_id => Ownership::Anothers,
            _ if !self.is_of_cluster(tags) => Ownership::Users,
            None if !recorded && !self.adopt => Ownership::Upstreams,
            _ => Ownership::Ours,
        }
    }

    /// Whether a resource is ours by its tags alone.
    pub fn owns(&self, tags: &Tags) -> bool {
        self.ownership(tags, false) == Ownership::Ours
    }

    /// Whether a resource carries the tag of the cluster with the value `owned`.
    pub fn is_of_cluster(&self, tags: &Tags) -> bool {
        tags.get(&self.cluster_tag()).is_some_and(|value| value == OWNED)
    }

    /// Whether a resource carries the tag of the cluster and our owner id: it is ours, and adoption
    /// is not needed, or complete.
    pub fn marks(&self, tags: &Tags) -> bool {
        tags.get(&self.owner_tag) == Some(&self.owner_id) && self.is_of_cluster(tags)
    }

    /// Whether a load balancer or a target group was made by Kubernetes' cloud provider for a
    /// Service of the cluster.
    pub fn is_service_balancer(&self, tags: &Tags) -> bool {
        self.is_kubernetes_own(tags) && tags.contains_key(SERVICE_TAG)
    }

    /// Whether a security group was made by Kubernetes' cloud provider for a load balancer of a
    /// Service of the cluster.
    pub fn is_service_group(&self, tags: &Tags, name: &str) -> bool {
        self.is_kubernetes_own(tags) && name.starts_with(SERVICE_GROUP)
    }

    fn is_kubernetes_own(&self, tags: &Tags) -> bool {
        tags.get(&self.kubernetes_tag()).is_some_and(|value| value == OWNED) && !is_of_eks(tags)
    }

    /// The tags that every resource of the cluster carries, but its name.
    pub fn base_tags(&self, role: &str) -> Tags {
        Tags::from([
            (self.cluster_tag(), OWNED.to_owned()),
            (self.owner_tag.clone(), self.owner_id.clone()),
            (ROLE_TAG.to_owned(), role.to_owned()),
        ])
    }
}
