//! Owner references to Clusters on objects that belong to them. Pure.

use objects::{Object, ObjectMeta, OwnerReference};

use crate::api::cluster::{Cluster, dialect};
use crate::api::{CLUSTER_NAME_LABEL, GROUP};

const CLUSTER_KIND: &str = "Cluster";

/// Whether an owner is a Cluster, of any version.
pub(crate) fn is_cluster(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    group == GROUP && owner.kind == CLUSTER_KIND
}

/// The owner reference to this Cluster, in the version of its dialect. It is not the controller and
/// blocks no deletion, as in Cluster API.
pub(crate) fn reference_to(cluster: &Object<Cluster>) -> OwnerReference {
    OwnerReference {
        api_version: format!("{GROUP}/{}", dialect(cluster).name()),
        kind: CLUSTER_KIND.to_owned(),
        name: cluster.metadata.name().to_owned(),
        uid: cluster.metadata.uid.to_string(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// Whether this Cluster is among the owners, in any version.
pub(crate) fn is_owned_by(metadata: &ObjectMeta, cluster: &Object<Cluster>) -> bool {
    metadata.owner_references.iter().any(|owner| owner.uid == *cluster.metadata.uid)
}

/// Name of another Cluster that owns it. One of the same name is this Cluster, perhaps before it
/// was restored from a backup with another UID (`rule:infrastructure-of-another-cluster-is-left`).
pub(crate) fn other_cluster<'a>(
    metadata: &'a ObjectMeta,
    cluster: &Object<Cluster>,
) -> Option<&'a str> {
    let mut owners = metadata.owner_references.iter().filter(|owner| is_cluster(owner));
    owners.find(|owner| owner.name != cluster.metadata.name()).map(|owner| &*owner.name)
}

/// Puts the Cluster among the owners: once, whatever version an earlier entry has, and in the place
/// of one that was left by a Cluster of this name with another UID.
pub(crate) fn add_owner(owners: &mut Vec<OwnerReference>, cluster: &Object<Cluster>) {
    let wanted = reference_to(cluster);
    let is_it = |owner: &OwnerReference| {
        owner.uid == wanted.uid || (is_cluster(owner) && owner.name == wanted.name)
    };
    match owners.iter().position(is_it) {
        Some(first) => {
            owners[first] = wanted.clone();
            let mut at = 0;
            owners.retain(|owner| {
                at += 1;
                at - 1 <= first || !is_it(owner)
            });
        }
        None => owners.push(wanted.clone()),
    }
}

/// Keys of the Clusters that an object belongs to, by its owners and its label.
pub(crate) fn clusters_of(metadata: &ObjectMeta) -> Vec<String> {
    let Some(namespace) = metadata.namespace() else { return Vec::new() };
    let owners = metadata.owner_references.iter().filter(|owner| is_cluster(owner));
    let named = owners.map(|owner| &owner.name).chain(metadata.labels.get(CLUSTER_NAME_LABEL));
    let mut keys: Vec<_> = named.map(|name| format!("{namespace}/{name}")).collect();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster() -> Object<Cluster> {
        Object::read(json!({
            "metadata": {"name": "c", "namespace": "ns", "uid": "u1", "resourceVersion": "1"},
            "spec": {"infrastructureRef": {"apiVersion": "i/v1alpha2", "kind": "K", "name": "n"}},
        }))
        .unwrap()
    }

    fn owner(api_version: &str, name: &str, uid: &str) -> OwnerReference {
        serde_json::from_value(
            json!({"apiVersion": api_version, "kind": "Cluster", "name": name, "uid": uid}),
        )
        .unwrap()
    }

    fn metadata(owners: &[OwnerReference], labels: Value) -> ObjectMeta {
        serde_json::from_value(json!({"name": "o", "namespace": "ns", "uid": "u9",
            "resourceVersion": "1", "ownerReferences": owners, "labels": labels}))
        .unwrap()
    }

    #[test]
    fn a_cluster_is_among_the_owners_once_whatever_was_there_before() {
        let ours = owner("cluster.x-k8s.io/v1alpha2", "c", "u1");
        let foreign = owner("apps/v1", "c", "u7");
        for before in [
            vec![],
            vec![ours.clone()],
            vec![owner("cluster.x-k8s.io/v1beta2", "c", "u1")],
            vec![owner("cluster.x-k8s.io/v1alpha3", "c", "u0")],
            vec![owner("cluster.x-k8s.io/v1beta1", "c", "u1"), ours.clone()],
            vec![owner("cluster.x-k8s.io/v1beta1", "c", "u0"), ours.clone(), ours.clone()],
        ] {
            let mut owners = before.clone();
            owners.insert(0, foreign.clone());
            add_owner(&mut owners, &cluster());
            assert_eq!(owners, [foreign.clone(), ours.clone()], "{before:?}");
        }
        assert_eq!((ours.controller, ours.block_owner_deletion), (None, None));
    }

    /// rule:infrastructure-of-another-cluster-is-left
    #[test]
    fn the_same_cluster_with_another_uid_is_no_other_cluster() {
        let restored = metadata(&[owner("cluster.x-k8s.io/v1beta1", "c", "u0")], json!({}));
        assert_eq!(other_cluster(&restored, &cluster()), None);
        assert!(!is_owned_by(&restored, &cluster()));
        let taken = metadata(&[owner("cluster.x-k8s.io/v1beta1", "d", "u0")], json!({}));
        assert_eq!(other_cluster(&taken, &cluster()), Some("d"));
        let unrelated = metadata(&[owner("apps/v1", "d", "u0")], json!({}));
        assert_eq!(other_cluster(&unrelated, &cluster()), None);
    }

    #[test]
    fn an_object_belongs_to_the_clusters_of_its_owners_and_its_label() {
        let both = metadata(
            &[owner("cluster.x-k8s.io/v1beta1", "c", "u1"), owner("apps/v1", "x", "u2")],
            json!({"cluster.x-k8s.io/cluster-name": "c"}),
        );
        assert_eq!(clusters_of(&both), ["ns/c"]);
        let label = metadata(&[], json!({"cluster.x-k8s.io/cluster-name": "d"}));
        assert_eq!(clusters_of(&label), ["ns/d"]);
    }
}
