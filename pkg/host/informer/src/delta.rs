//! [`Delta`]: one change of the store, as handlers see it.

use std::sync::Arc;

/// A change that the store already holds when the handler sees it.
#[derive(Debug)]
pub enum Delta<'a, T> {
    /// An object is new, or new to this handler.
    Added(&'a Arc<T>),
    /// An object has another resource version than before; or it is told of once more
    /// ([`crate::Informer::redeliver`]), and both are the same.
    Updated {
        /// What the store held.
        old: &'a Arc<T>,
        /// What it holds now, under the same name and UID.
        new: &'a Arc<T>,
    },
    /// An object is gone, by itself or with its CRD, or has left the source's selection; this is
    /// its last known state. The store may hold its successor of the same name already, whose
    /// `Added` follows. A kind that is ours no longer ends sessions instead.
    Deleted(&'a Arc<T>),
    /// What follows, up to [`Delta::ListEnds`], are the differences between what was known and a
    /// list. Deletions come first, so until the end the changes seen show no moment that ever was.
    ListStarts,
    /// The changes seen show the list.
    ListEnds,
}
