//! Which of several AWSClusters with one owner id may use it: a copied manifest must not share the
//! network of the one that it was copied from (`rule:one-awscluster-for-an-owner-id`). Pure.

use objects::ObjectMeta;

use crate::api::OWNER_ID_ANNOTATION;

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
