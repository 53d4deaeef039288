//! Which ClusterCredential a Cluster uses when it names none. Pure.

use crate::api::tke::ClusterCredential;

/// What was found for a Cluster.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The one to use.
    pub(crate) credential: ClusterCredential,
    /// How many others there are, which is a mistake.
    pub(crate) others: usize,
}

/// The newest of those that are for `cluster`: whoever replaced a credential made another one. Of
/// two that were made in the same second the one whose name comes last, so that all replicas choose
/// alike.
pub(crate) fn choose(found: Vec<ClusterCredential>, cluster: &str) -> Option<Choice> {
    let mut fitting: Vec<_> =
        found.into_iter().filter(|credential| &*credential.cluster_name == cluster).collect();
    let age = |credential: &ClusterCredential| {
        let metadata = &credential.metadata;
        (metadata.creation_timestamp.clone(), metadata.name.clone())
    };
    fitting.sort_by_cached_key(age);
    let credential = fitting.pop()?;
    Some(Choice { credential, others: fitting.len() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::tke::CredentialPage;

    fn choice(found: &[(&str, &str, &str)]) -> Option<(String, usize)> {
        let items: Vec<_> = found
            .iter()
            .map(|(name, made, cluster)| {
                json!({"metadata": {"name": name, "creationTimestamp": made}, "clusterName": cluster})
            })
            .collect();
        let list = json!({ "items": items }).to_string();
        let page = CredentialPage::read(list.as_bytes()).unwrap();
        let choice = choose(page.items, "cls-1")?;
        Some((choice.credential.metadata.name.to_string(), choice.others))
    }

    #[test]
    fn the_newest_credential_of_the_cluster_is_used_and_the_others_are_counted() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        assert_eq!(choice(&[]), None);
        assert_eq!(choice(&[("a", old, "cls-2")]), None);
        let one = [("a", old, "cls-1"), ("b", new, "cls-2")];
        assert_eq!(choice(&one), Some(("a".into(), 0)));
        let two = [("b", new, "cls-1"), ("c", old, "cls-1")];
        assert_eq!(choice(&two), Some(("b".into(), 1)));
        let same_second = [("b", old, "cls-1"), ("c", old, "cls-1"), ("a", old, "cls-1")];
        assert_eq!(choice(&same_second), Some(("c".into(), 2)));
    }
}
