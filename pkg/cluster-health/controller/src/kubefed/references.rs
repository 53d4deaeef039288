//! [`References`]: which members refer to which Secret.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::Cluster;

/// Which members refer to which Secret.
#[derive(Default)]
pub(super) struct References(Mutex<Known>);

#[derive(Default)]
struct Known {
    of_cluster: HashMap<Cluster, Box<str>>,
    of_secret: HashMap<Box<str>, HashSet<Cluster>>,
}

impl References {
    /// The member refers to this Secret, and to no other.
    pub(super) fn set(&self, cluster: &Cluster, secret: Option<&str>) {
        let mut known = self.0.lock();
        if known.of_cluster.get(cluster).map(|known| &**known) == secret {
            return;
        }
        if let Some(old) = known.of_cluster.remove(cluster)
            && let Some(clusters) = known.of_secret.get_mut(&old)
        {
            clusters.remove(cluster);
            if clusters.is_empty() {
                known.of_secret.remove(&old);
            }
        }
        if let Some(secret) = secret {
            known.of_cluster.insert(cluster.clone(), secret.into());
            known.of_secret.entry(secret.into()).or_default().insert(cluster.clone());
        }
    }

    /// The keys of the members that refer to this Secret.
    pub(super) fn clusters(&self, secret: &str) -> Vec<Arc<str>> {
        let known = self.0.lock();
        let clusters = known.of_secret.get(secret).into_iter().flatten();
        clusters.map(|cluster| Arc::clone(&cluster.key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_leads_to_the_members_that_refer_to_it_now() {
        let references = References::default();
        let cluster = |key: &str| Cluster { uid: key.into(), key: key.into() };
        let (one, two) = (cluster("ns/one"), cluster("ns/two"));
        let users = |secret: &str| {
            let mut keys = references.clusters(secret);
            keys.sort();
            keys
        };
        references.set(&one, Some("ns/a"));
        references.set(&two, Some("ns/a"));
        assert_eq!(users("ns/a"), [Arc::clone(&one.key), Arc::clone(&two.key)]);
        references.set(&two, Some("ns/b"));
        references.set(&two, Some("ns/b"));
        assert_eq!(users("ns/a"), [Arc::clone(&one.key)]);
        assert_eq!(users("ns/b"), [Arc::clone(&two.key)]);
        // Another object takes the name: the end of the one before is not the end of its own.
        let another = Cluster { uid: "another".into(), ..two.clone() };
        references.set(&another, Some("ns/b"));
        references.set(&two, None);
        assert_eq!(users("ns/b"), [Arc::clone(&two.key)]);
        references.set(&one, None);
        references.set(&another, None);
        let known = references.0.lock();
        assert!(known.of_cluster.is_empty() && known.of_secret.is_empty());
    }
}
