//! What a subscriber that takes its time is told.

use std::collections::HashMap;

use model::Node;
use proptest::prelude::*;

use super::*;

fn node(name: &str, version: u64) -> Arc<Node> {
    Arc::new(Node {
        name: name.into(),
        uid: "u".into(),
        resource_version: version,
        deleting: false,
        pod_cidrs: model::PodCidrs::default(),
    })
}

fn told(waiting: &Waiting<Node>) -> Vec<(String, Option<u64>, Option<u64>)> {
    let version = |object: Option<Arc<Node>>| object.map(|object| object.resource_version);
    std::iter::from_fn(|| waiting.take())
        .map(|change| (change.key.to_string(), version(change.old), version(change.new)))
        .collect()
}

#[test]
fn changes_of_one_object_become_one_and_keep_its_place() {
    let waiting = Waiting::new();
    let (a, b) = ([1, 4, 5].map(|version| node("a", version)), node("b", 2));
    waiting.tell(Delta::Added(&a[0]));
    waiting.tell(Delta::Added(&b));
    waiting.tell(Delta::Updated { old: &a[0], new: &a[1] });
    waiting.tell(Delta::Updated { old: &a[1], new: &a[2] });
    assert_eq!(told(&waiting), [("a".into(), None, Some(5)), ("b".into(), None, Some(2))]);
    waiting.tell(Delta::Deleted(&a[2]));
    assert_eq!(told(&waiting), [("a".into(), Some(5), None)]);
}

#[test]
fn an_object_that_came_and_went_unseen_is_not_told() {
    let waiting = Waiting::new();
    let a = node("a", 1);
    for _ in 0..1000 {
        waiting.tell(Delta::Added(&a));
        waiting.tell(Delta::Deleted(&a));
    }
    let queue = waiting.changes.lock();
    assert_eq!((queue.by_key.len(), queue.order.len()), (0, 0));
}

#[test]
fn a_deleted_object_that_is_there_again_is_told_with_what_was_taken_last() {
    let waiting = Waiting::new();
    let (first, second) = (node("a", 1), node("a", 3));
    waiting.tell(Delta::Added(&first));
    told(&waiting);
    waiting.tell(Delta::Deleted(&first));
    waiting.tell(Delta::Added(&second));
    assert_eq!(told(&waiting), [("a".into(), Some(1), Some(3))]);
}

proptest! {
    /// Whoever applies the changes at any pace ends with what the store holds, and never more waits
    /// than there are keys.
    #[test]
    fn the_changes_add_up_to_the_store(
        steps in prop::collection::vec((0_u8..4, 0_u8..5), 1..200),
    ) {
        let waiting = Waiting::<Node>::new();
        let (mut store, mut seen) = (HashMap::<String, Arc<Node>>::new(), HashMap::new());
        for (version, (key, action)) in steps.into_iter().enumerate() {
            let (key, new) = (key.to_string(), node(&key.to_string(), version as u64 + 1));
            match (action, store.get(&key).cloned()) {
                (0, _) => {
                    if let Some(change) = waiting.take() {
                        let last = seen.get(&change.key).copied();
                        prop_assert_eq!(change.old.map(|old| old.resource_version), last);
                        match change.new {
                            Some(new) => drop(seen.insert(change.key, new.resource_version)),
                            None => drop(seen.remove(&change.key)),
                        }
                    }
                }
                (1, Some(old)) => {
                    waiting.tell(Delta::Deleted(&old));
                    store.remove(&key);
                }
                (1, None) => {}
                (_, Some(old)) => {
                    waiting.tell(Delta::Updated { old: &old, new: &new });
                    store.insert(key, new);
                }
                (_, None) => {
                    waiting.tell(Delta::Added(&new));
                    store.insert(key, new);
                }
            }
            let queue = waiting.changes.lock();
            prop_assert!(queue.by_key.len() <= 4 && queue.order.len() == queue.by_key.len());
        }
        while let Some(change) = waiting.take() {
            match change.new {
                Some(new) => drop(seen.insert(change.key, new.resource_version)),
                None => drop(seen.remove(&change.key)),
            }
        }
        let seen: HashMap<String, u64> =
            seen.into_iter().map(|(key, version)| (key.to_string(), version)).collect();
        let held: HashMap<String, u64> =
            store.into_iter().map(|(key, object)| (key, object.resource_version)).collect();
        prop_assert_eq!(seen, held);
    }
}
