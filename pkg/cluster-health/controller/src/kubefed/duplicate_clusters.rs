//! [`DuplicateClusters`]: finds members that are the same cluster, by the UID of its namespace
//! kube-system (`rule:one-cluster-twice-is-told`). Pure.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::engine::Cluster;
use crate::paging::{Abort, Collect};

/// Where it is read: every cluster has this namespace, and none has it twice.
pub(super) const PATH: &str = "/api/v1/namespaces";
pub(super) const QUERY: [(&str, &str); 1] = [("fieldSelector", "metadata.name=kube-system")];
/// A UID has 36 bytes.
const UID_MAX: usize = 64;

/// Which cluster a member is, once it could be read.
#[derive(Default)]
pub(super) struct Identity(Option<Box<str>>);

/// What is read of the namespace.
#[derive(Deserialize)]
pub(super) struct Namespace {
    metadata: NamespaceMeta,
}

#[derive(Deserialize)]
struct NamespaceMeta {
    uid: Box<str>,
}

impl Collect for Identity {
    type Item = Namespace;

    fn add(&mut self, namespace: Namespace) -> Result<(), Abort> {
        let uid = Some(namespace.metadata.uid);
        self.0 = uid.filter(|uid| !uid.is_empty() && uid.len() <= UID_MAX);
        Ok(())
    }
}

/// Which cluster each member is, by the UID of its object.
#[derive(Default)]
pub(super) struct DuplicateClusters(HashMap<Arc<str>, Known>);

struct Known {
    key: Arc<str>,
    identity: Box<str>,
}

impl DuplicateClusters {
    /// Takes in which cluster a member is; the other members that are the same one, in order, when it was not known yet.
    pub(super) fn found(&mut self, member: &Cluster, identity: Identity) -> Vec<Arc<str>> {
        let Some(identity) = identity.0 else { return Vec::new() };
        let known = Known { key: Arc::clone(&member.key), identity: identity.clone() };
        let before = self.0.insert(Arc::clone(&member.uid), known);
        if before.is_some_and(|before| before.identity == identity) {
            return Vec::new();
        }
        let others =
            self.0.iter().filter(|(uid, it)| **uid != member.uid && it.identity == identity);
        let mut others: Vec<_> = others.map(|(_, known)| Arc::clone(&known.key)).collect();
        others.sort_unstable();
        others
    }

    /// Nothing is known of it any more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Cluster {
        Cluster { uid: format!("uid-{name}").into(), key: format!("fed/{name}").into() }
    }

    /// rule:lists-of-members-are-bounded
    #[test]
    fn what_is_no_uid_is_not_kept() {
        assert!(identity(&"x".repeat(1 << 20)).0.is_none());
    }

    fn identity(uid: &str) -> Identity {
        let mut identity = Identity::default();
        identity
            .add(serde_json::from_value(serde_json::json!({"metadata": {"uid": uid}})).unwrap())
            .unwrap();
        identity
    }

    /// rule:one-cluster-twice-is-told
    #[test]
    fn who_comes_to_be_known_as_a_cluster_that_is_there_already_is_told_once() {
        let mut duplicates = DuplicateClusters::default();
        let mut found = |name: &str, uid: &str| {
            let others = duplicates.found(&member(name), identity(uid));
            others.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found("b", "one"), [""; 0]);
        assert_eq!(found("c", "other"), [""; 0]);
        assert_eq!(found("a", "one"), ["fed/b"]);
        assert_eq!(found("a", "one"), [""; 0], "it was told");
        assert_eq!(found("b", "one"), [""; 0], "the later one was told");
        assert_eq!(found("c", "one"), ["fed/a", "fed/b"], "it is another cluster now");
        assert_eq!(found("d", ""), [""; 0], "nothing is known");
        assert_eq!(found("e", ""), [""; 0], "nothing is known");
        assert!(duplicates.found(&member("f"), Identity::default()).is_empty());
    }

    #[test]
    fn who_is_gone_is_nobodys_double() {
        let mut duplicates = DuplicateClusters::default();
        duplicates.found(&member("a"), identity("one"));
        duplicates.forget("uid-a");
        assert!(duplicates.found(&member("b"), identity("one")).is_empty());
        duplicates.forget("uid-b");
        assert!(
            duplicates.found(&member("b"), identity("one")).is_empty(),
            "and it may come again"
        );
    }
}
