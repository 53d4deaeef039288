//! The Cluster that owns an AWSCluster, and which of several AWSClusters with one owner id keeps it
//! (`rule:one-awscluster-for-an-owner-id`).

use std::sync::Arc;

use objects::{Object, ObjectMeta};

use super::aws_clusters::AwsClusters;
use crate::api::Dialect;
use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::Cluster;
use crate::api::{CLUSTER_NAME_LABEL, GROUP, OWNER_ID_ANNOTATION};
use crate::kind_caches::Known;
use crate::ownership;

/// The Cluster that an AWSCluster belongs to.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// Name of the Cluster, which tags on AWS contain.
    pub(super) name: String,
    /// In which words it was written.
    pub(super) dialect: Dialect,
    /// The Cluster; `None` when it is gone.
    pub(super) cluster: Option<Arc<Object<Cluster>>>,
}

/// The result of looking up the owner.
#[derive(Clone, Debug)]
pub(super) enum Found {
    None,
    Owner(Owner),
    /// The owner cannot be read yet, for this reason.
    Unknown(String),
}

impl AwsClusters {
    /// Looks up the owner of an AWSCluster.
    pub(super) async fn owner(&self, object: &Object<AwsCluster>) -> Found {
        let Some((name, dialect)) = named_owner(&object.metadata) else { return Found::None };
        let (kind_cache, known) = self.clusters.known(GROUP, "Cluster").await;
        let namespace = object.metadata.namespace().unwrap_or_default();
        let cluster = match known {
            Known::Listed => kind_cache.objects.get(&format!("{namespace}/{name}")),
            Known::NotServed => None,
            Known::Nothing(why) => return Found::Unknown(why),
        };
        Found::Owner(Owner { name, dialect, cluster })
    }
}

/// Name and dialect of the owner. One that is being deleted still knows it by its label when its
/// references were lost.
fn named_owner(metadata: &ObjectMeta) -> Option<(String, Dialect)> {
    let mut owners = metadata.owner_references.iter();
    if let Some(owner) = owners.find(|owner| ownership::is_cluster(owner)) {
        return Some((owner.name.clone(), Dialect::of_version(&owner.api_version)));
    }
    let label = metadata.labels.get(CLUSTER_NAME_LABEL).filter(|_| metadata.deleting());
    label.map(|name| (name.clone(), Dialect::V1Beta2))
}

/// Whoever else has the owner id of this one, and keeps it.
pub(super) fn holder_of_its_owner_id<'a>(
    metadata: &ObjectMeta,
    all: impl Iterator<Item = &'a ObjectMeta>,
) -> Option<String> {
    let id = metadata.annotations.get(OWNER_ID_ANNOTATION)?;
    let has_it = |other: &&ObjectMeta| other.annotations.get(OWNER_ID_ANNOTATION) == Some(id);
    let rank = |other: &ObjectMeta| {
        (*other.uid != **id, other.creation_timestamp.clone(), other.key.to_string())
    };
    let first = all.filter(has_it).min_by_key(|other| rank(other))?;
    (rank(first) < rank(metadata)).then(|| first.key.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn owner_of(metadata: &Value) -> Option<(String, Dialect)> {
        let mut whole = json!({"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1"});
        let fields = metadata.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(fields);
        named_owner(&serde_json::from_value(whole).unwrap())
    }

    #[test]
    fn the_reference_to_a_cluster_of_any_version_shows_the_owner_and_its_dialect() {
        let reference = |version: &str| {
            json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Cluster", "name": "x", "uid": "1"},
                {"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster", "name": "c", "uid": "2"}]})
        };
        let owner = |dialect| Some(("c".to_owned(), dialect));
        assert_eq!(owner_of(&reference("v1alpha2")), owner(Dialect::V1Alpha2));
        assert_eq!(owner_of(&reference("v1beta1")), owner(Dialect::V1Beta2));
        assert_eq!(owner_of(&reference("v1beta2")), owner(Dialect::V1Beta2));
    }

    #[test]
    fn a_label_shows_the_owner_of_what_is_being_deleted_and_of_nothing_else() {
        let labels = json!({"cluster.x-k8s.io/cluster-name": "c"});
        assert_eq!(owner_of(&json!({"labels": labels})), None);
        let deleted = json!({"labels": labels, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(owner_of(&deleted), Some(("c".to_owned(), Dialect::V1Beta2)));
        assert_eq!(owner_of(&json!({})), None);
    }
}

#[cfg(test)]
mod owner_ids_tests {
    use serde_json::json;

    use super::*;

    fn one(name: &str, uid: &str, created: &str, id: &str) -> ObjectMeta {
        serde_json::from_value(json!({"name": name, "namespace": "ns", "uid": uid,
            "resourceVersion": "1", "creationTimestamp": created,
            "annotations": {OWNER_ID_ANNOTATION: id}}))
        .unwrap()
    }

    /// rule:one-awscluster-for-an-owner-id
    #[test]
    fn the_one_with_that_uid_keeps_an_owner_id_and_else_the_older() {
        let first = one("first", "u1", "2026-01-01T00:00:00Z", "u1");
        let copy = one("copy", "u2", "2025-01-01T00:00:00Z", "u1");
        let other = one("other", "u3", "2024-01-01T00:00:00Z", "u3");
        let all = [first.clone(), copy.clone(), other.clone()];
        let holder = |of: &ObjectMeta| holder_of_its_owner_id(of, all.iter());
        assert_eq!(holder(&first), None);
        assert_eq!(holder(&copy).as_deref(), Some("ns/first"));
        assert_eq!(holder(&other), None);
        // Both were restored, and have other UIDs than at first.
        let older = one("older", "u8", "2026-01-01T00:00:00Z", "u1");
        let newer = one("newer", "u9", "2026-01-02T00:00:00Z", "u1");
        let all = [newer.clone(), older.clone()];
        assert_eq!(holder_of_its_owner_id(&older, all.iter()), None);
        assert_eq!(holder_of_its_owner_id(&newer, all.iter()).as_deref(), Some("ns/older"));
    }
}
