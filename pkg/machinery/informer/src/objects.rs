//! [`Objects`]: the objects of a collection, as the store and a list under way hold them.

use std::collections::HashMap;
use std::sync::Arc;

use model::Cached;

/// Objects by key.
pub(crate) type Objects<T> = HashMap<Arc<str>, Arc<T>>;

/// In the order of keys, as the API server lists: what a controller does with a list is then the
/// same after every restart.
pub(crate) fn in_order<T: Cached>(objects: &Objects<T>) -> Vec<&Arc<T>> {
    let mut objects: Vec<_> = objects.values().collect();
    objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    objects
}
