//! Tags that are missing, wrong or retired, gathered over all resources so that few calls correct
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::Action;
use crate::identity::Tags;

/// EC2 takes so many resources in a call.
const RESOURCES_IN_A_CALL: usize = 500;

/// Tags to set and to remove, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagDrift {
    set: BTreeMap<(String, String), BTreeSet<String>>,
    remove: BTreeMap<String, BTreeSet<String>>,
}

/// What differs: tags to set, and keys to remove. Keys of others are left alone
/// (`rule:foreign-tags-stay`).
pub(crate) fn difference(
    present: &Tags,
    wanted: &Tags,
    retired: &BTreeSet<String>,
) -> (Tags, Vec<String>) {
    let is_missing = |(key, value): &(&String, &String)| present.get(*key) != Some(*value);
    let owned = |(key, value): (&String, &String)| (key.clone(), value.clone());
    let set = wanted.iter().filter(is_missing).map(owned).collect();
    let is_retired = |key: &&String| present.contains_key(*key) && !wanted.contains_key(*key);
    (set, retired.iter().filter(is_retired).cloned().collect())
}

impl TagDrift {
    /// Notes what differs on a resource.
    pub(crate) fn compare(
        &mut self,
        id: &str,
        present: &Tags,
        wanted: &Tags,
        retired: &BTreeSet<String>,
    ) {
        let (set, remove) = difference(present, wanted, retired);
        for tag in set {
            self.set.entry(tag).or_default().insert(id.to_owned());
        }
        for key in remove {
            self.remove.entry(key).or_default().insert(id.to_owned());
        }
    }

    /// The calls: one for each set of resources that lack the same tags.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let set = by_resources(&self.set);
        let remove = by_resources(&self.remove);
        let mut actions = Vec::new();
        for (resources, tags) in set {
            let tags: Tags = tags.into_iter().collect();
            for some in resources.chunks(RESOURCES_IN_A_CALL) {
                actions.push(Action::CreateTags { resources: some.to_vec(), tags: tags.clone() });
            }
        }
        for (resources, keys) in remove {
            for some in resources.chunks(RESOURCES_IN_A_CALL) {
                actions.push(Action::DeleteTags { resources: some.to_vec(), keys: keys.clone() });
            }
        }
        actions
    }
}

fn by_resources<K: Clone>(all: &BTreeMap<K, BTreeSet<String>>) -> BTreeMap<Vec<String>, Vec<K>> {
    let mut calls: BTreeMap<Vec<String>, Vec<K>> = BTreeMap::new();
    for (what, resources) in all {
        calls.entry(resources.iter().cloned().collect()).or_default().push(what.clone());
    }
    calls
}

#[cfg(test)]
mod tests;
