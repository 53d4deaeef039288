//! [`References`]: which members refer to which Secret.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

/// Which members refer to which Secret.
#[derive(Default)]
pub(super) struct References(Mutex<Known>);

#[derive(Default)]
struct Known {
    of_cluster: HashMap<Arc<str>, Box<str>>,
    of_secret: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

impl References {
    /// The member refers to this Secret, and to no other.
    pub(super) fn set(&self, cluster: &Arc<str>, secret: Option<&str>) {
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
            known.of_cluster.insert(Arc::clone(cluster), secret.into());
            known.of_secret.entry(secret.into()).or_default().insert(Arc::clone(cluster));
        }
    }

    /// The members that refer to this Secret.
    pub(super) fn of(&self, secret: &str) -> Vec<Arc<str>> {
        self.0.lock().of_secret.get(secret).into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_leads_to_the_members_that_refer_to_it_now() {
        let references = References::default();
        let (one, two): (Arc<str>, Arc<str>) = ("ns/one".into(), "ns/two".into());
        references.set(&one, Some("ns/a"));
        references.set(&two, Some("ns/a"));
        assert_eq!(references.of("ns/a"), [Arc::clone(&one), Arc::clone(&two)]);
        references.set(&two, Some("ns/b"));
        references.set(&two, Some("ns/b"));
        assert_eq!(references.of("ns/a"), [Arc::clone(&one)]);
        assert_eq!(references.of("ns/b"), [Arc::clone(&two)]);
        references.set(&one, None);
        references.set(&two, None);
        let known = references.0.lock();
        assert!(known.of_cluster.is_empty() && known.of_secret.is_empty());
    }
}
