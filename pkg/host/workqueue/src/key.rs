//! [`Key`]: what a queue hands out.

use std::fmt;
use std::hash::Hash;

/// What can be a key: `Arc<str>` or a small enum. Keys are cloned several times per turn, and
/// displayed as `object` in every line that is logged while they are handled.
pub trait Key: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static> Key for K {}
