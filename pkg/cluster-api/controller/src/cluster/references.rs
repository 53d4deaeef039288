//! [`References`]: which Clusters wait for which object, so that an object that does not carry the
//! mark of its Cluster yet wakes it all the same.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::api::Reference;

/// Group, kind and key of an object that a Cluster names.
type Referent = (String, String, String);

/// All that Clusters refer to; clones are the same.
#[derive(Clone, Default)]
pub(super) struct References(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Keys of Clusters.
    by_referent: HashMap<Referent, BTreeSet<Arc<str>>>,
    by_cluster: HashMap<Arc<str>, Referent>,
}

impl References {
    /// A Cluster refers to this, and to nothing else any more.
    pub(super) fn set(&self, cluster: &Arc<str>, reference: &Reference) {
        let key = key(cluster, reference);
        let referent = (reference.group().to_owned(), reference.kind.clone(), key);
        let mut known = self.0.lock();
        if known.by_cluster.get(cluster) == Some(&referent) {
            return;
        }
        known.forget(cluster);
        known.by_referent.entry(referent.clone()).or_default().insert(Arc::clone(cluster));
        known.by_cluster.insert(Arc::clone(cluster), referent);
    }

    pub(super) fn forget(&self, cluster: &Arc<str>) {
        self.0.lock().forget(cluster);
    }

    /// The Clusters that refer to an object.
    pub(super) fn of(&self, group: &str, kind: &str, key: &str) -> Vec<Arc<str>> {
        let referent = (group.to_owned(), kind.to_owned(), key.to_owned());
        self.0.lock().by_referent.get(&referent).into_iter().flatten().cloned().collect()
    }
}

impl Known {
    fn forget(&mut self, cluster: &Arc<str>) {
        let Some(referent) = self.by_cluster.remove(cluster) else { return };
        if let Some(clusters) = self.by_referent.get_mut(&referent) {
            clusters.remove(cluster);
            if clusters.is_empty() {
                self.by_referent.remove(&referent);
            }
        }
    }
}

/// Key of what a Cluster refers to: it is in the namespace of the Cluster, whatever the reference
/// says.
pub(super) fn key(cluster: &str, reference: &Reference) -> String {
    let namespace = cluster.split_once('/').map_or("", |(namespace, _)| namespace);
    format!("{namespace}/{}", reference.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_wakes_the_clusters_that_refer_to_it_now() {
        let references = References::default();
        let [one, two] = ["ns/one", "ns/two"].map(Arc::<str>::from);
        let to = |name: &str| Reference {
            api_group: Some("g".to_owned()),
            kind: "K".to_owned(),
            name: name.to_owned(),
            ..Reference::default()
        };
        references.set(&one, &to("x"));
        references.set(&two, &to("x"));
        assert_eq!(references.of("g", "K", "ns/x"), [Arc::clone(&one), Arc::clone(&two)]);
        references.set(&one, &to("y"));
        assert_eq!(references.of("g", "K", "ns/x"), [Arc::clone(&two)]);
        references.forget(&two);
        references.forget(&one);
        assert!(references.of("g", "K", "ns/y").is_empty());
        let known = references.0.lock();
        assert!(known.by_referent.is_empty() && known.by_cluster.is_empty(), "nothing piles up");
    }
}
