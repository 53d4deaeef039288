//! [`Checked`]: kubeconfigs that were found in order, so that a pass over a Cluster where nothing
//! changed reads no Secret.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

/// By Cluster.
#[derive(Default)]
pub(super) struct Checked(Mutex<HashMap<Arc<str>, Order>>);

struct Order {
    basis: Basis,
    until: SystemTime,
}

/// What the order of a kubeconfig rests on.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Basis {
    /// Version of the authority's Secret.
    pub(super) authority: u64,
    /// Version of the kubeconfig's Secret.
    pub(super) kubeconfig: u64,
    /// URL of the API server.
    pub(super) server: String,
}

impl Checked {
    /// It is in order until then, as long as the basis is the same.
    pub(super) fn note(&self, cluster: &Arc<str>, basis: Basis, until: SystemTime) {
        self.0.lock().insert(Arc::clone(cluster), Order { basis, until });
    }

    pub(super) fn holds(&self, cluster: &str, basis: &Basis, now: SystemTime) -> bool {
        let known = self.0.lock();
        known.get(cluster).is_some_and(|order| order.basis == *basis && now < order.until)
    }

    pub(super) fn forget(&self, cluster: &str) {
        self.0.lock().remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_kubeconfig_is_looked_at_again_when_a_secret_or_the_url_changed_or_its_time_has_come() {
        let (checked, cluster, now) = (Checked::default(), Arc::from("ns/c"), SystemTime::now());
        let basis = |authority, kubeconfig, server: &str| Basis {
            authority,
            kubeconfig,
            server: server.to_owned(),
        };
        checked.note(&cluster, basis(1, 2, "s"), now + Duration::from_secs(10));
        assert!(checked.holds(&cluster, &basis(1, 2, "s"), now));
        for other in [basis(9, 2, "s"), basis(1, 9, "s"), basis(1, 2, "t")] {
            assert!(!checked.holds(&cluster, &other, now));
        }
        assert!(!checked.holds(&cluster, &basis(1, 2, "s"), now + Duration::from_secs(10)));
        checked.forget(&cluster);
        assert!(!checked.holds(&cluster, &basis(1, 2, "s"), now));
    }
}
