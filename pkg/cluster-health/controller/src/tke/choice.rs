//! Which ClusterCredential a Cluster uses when it names none. Pure.

use crate::api::tke::ClusterCredential;
use crate::credential_policy::{Refusal, Target, is_for};

/// What was found for a Cluster.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The one to use, and how many others there are, which is a mistake.
    Credential { credential: Box<ClusterCredential>, others: usize },
    /// No ClusterCredential names the Cluster.
    None,
    /// All ClusterCredentials that name the Cluster belong to other tenants.
    OfOthers,
}

impl Choice {
    /// What is said where there is no credential to use.
    pub(crate) fn nothing_for(&self, cluster: &str) -> String {
        let none = format!("there is no ClusterCredential whose clusterName is {cluster}");
        match self {
            Self::OfOthers => format!("{none} and whose tenantID is spec.tenantID of the Cluster"),
            Self::Credential { .. } | Self::None => none,
        }
    }
}

/// The newest of those that are for `target`: whoever replaced a credential made another one. Of
/// two that were made in the same second the one whose name comes last, so that all replicas choose
/// alike. One of another tenant does not count, however new it is.
pub(crate) fn choose(found: Vec<ClusterCredential>, target: Target<'_>) -> Choice {
    let mut refused = false;
    let mut fitting = found;
    fitting.retain(|credential| {
        let why = is_for(credential, target).err();
        refused |= why == Some(Refusal::Tenant);
        why.is_none()
    });
    let age = |credential: &ClusterCredential| {
        let metadata = &credential.metadata;
        (metadata.creation_timestamp.clone(), metadata.name.clone())
    };
    fitting.sort_by_cached_key(age);
    match fitting.pop() {
        Some(credential) => {
            Choice::Credential { credential: Box::new(credential), others: fitting.len() }
        }
        None if refused => Choice::OfOthers,
        None => Choice::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::tke::CredentialPage;

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-01-02T00:00:00Z";

    /// Of (name, made, cluster, tenant).
    fn choice(found: &[(&str, &str, &str, &str)]) -> Choice {
        let items: Vec<_> = found
            .iter()
            .map(|(name, made, cluster, tenant)| {
                json!({"metadata": {"name": name, "creationTimestamp": made},
                    "clusterName": cluster, "tenantID": tenant})
            })
            .collect();
        let list = json!({ "items": items }).to_string();
        let page = CredentialPage::read(list.as_bytes()).unwrap();
        choose(page.items, Target { name: "cls-1", tenant: "t" })
    }

    fn chosen(found: &[(&str, &str, &str, &str)]) -> Option<(String, usize)> {
        match choice(found) {
            Choice::Credential { credential, others } => {
                Some((credential.metadata.name.to_string(), others))
            }
            Choice::None | Choice::OfOthers => None,
        }
    }

    #[test]
    fn the_newest_credential_of_the_cluster_is_used_and_the_others_are_counted() {
        assert!(matches!(choice(&[]), Choice::None));
        assert!(matches!(choice(&[("a", OLD, "cls-2", "t")]), Choice::None));
        let one = [("a", OLD, "cls-1", "t"), ("b", NEW, "cls-2", "t")];
        assert_eq!(chosen(&one), Some(("a".into(), 0)));
        let two = [("b", NEW, "cls-1", "t"), ("c", OLD, "cls-1", "t")];
        assert_eq!(chosen(&two), Some(("b".into(), 1)));
        let same_second =
            [("b", OLD, "cls-1", "t"), ("c", OLD, "cls-1", "t"), ("a", OLD, "cls-1", "t")];
        assert_eq!(chosen(&same_second), Some(("c".into(), 2)));
    }

    /// rule:a-credential-goes-where-its-owner-sent-it
    #[test]
    fn a_newer_credential_of_another_tenant_is_never_chosen() {
        let of_both = [("own", OLD, "cls-1", "t"), ("theirs", NEW, "cls-1", "other")];
        assert_eq!(chosen(&of_both), Some(("own".into(), 0)));
        let of_others = [("theirs", NEW, "cls-1", "other"), ("x", OLD, "cls-2", "t")];
        assert!(matches!(choice(&of_others), Choice::OfOthers));
    }
}
