//! [`Key`]: what a queue hands out; [`Item`], the right to work on one; [`Next`] and [`Retry`], what it
//! needs afterwards.

use std::error::Error;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// A key of a queue: `Arc<str>` or a small enum. Keys are cloned several times per turn, and
/// displayed as `object` in every line that is logged while they are handled.
pub trait Key: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static> Key for K {}

/// Gets the key of an item when the work on it is done.
pub(crate) trait DoneListener<K>: Send + Sync {
    fn done(&self, key: &K);
}

/// A key in hand. While it lives no other worker gets this key; dropping it, also by a panic,
/// says that the work is done.
#[must_use = "dropping the item says that the work is done"]
pub struct Item<K: Key> {
    listener: Arc<dyn DoneListener<K>>,
    key: K,
}

impl<K: Key> Item<K> {
    pub(crate) fn new(listener: Arc<dyn DoneListener<K>>, key: K) -> Self {
        Self { listener, key }
    }
}

impl<K: Key> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.listener.done(&self.key);
    }
}

/// When the server asks to come back later and does not say when.
const THROTTLED: Duration = Duration::from_secs(1);

/// Result of a handled key. Ends its row of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until it is added again.
    Done,
    /// The key is handled again after this time.
    After(Duration),
}

/// Why a key could not be handled, and how it is tried again. Every error becomes one with `?`:
/// tried again after the key's backoff, and logged.
#[derive(Debug)]
pub struct Retry {
    pub(crate) error: Box<dyn Error + Send + Sync>,
    pub(crate) at_least: Duration,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Failure,
    Expected,
    Throttled,
}

impl Retry {
    /// A failure of this key, which waits longer after each.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), at_least: Duration::ZERO, kind: Kind::Failure }
    }

    /// An expected event such as a conflict, not a failure: waits like one, but is counted
    /// apart and logged at `-v=4` only.
    pub fn expected(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Expected, ..Self::new(reason) }
    }

    /// The server asked to wait. That says nothing about the key: its row of failures neither grows
    /// nor ends, and after `retry_after` it is taken before every younger key. A server that does
    /// not say how long, or says not at all, gets a second: it has too much to do.
    pub fn throttled(
        reason: impl Into<Box<dyn Error + Send + Sync>>,
        retry_after: Option<Duration>,
    ) -> Self {
        let pause = retry_after.filter(|pause| !pause.is_zero()).unwrap_or(THROTTLED);
        Self { kind: Kind::Throttled, at_least: pause, ..Self::new(reason) }
    }

    /// Sets the shortest wait, such as a server's `Retry-After`.
    #[must_use]
    pub fn at_least(mut self, pause: Duration) -> Self {
        self.at_least = pause;
        self
    }

    /// The reason.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.error.as_ref()
    }

    /// The shortest wait.
    pub fn pause(&self) -> Duration {
        self.at_least
    }

    /// Whether the server asked for it.
    pub fn is_throttled(&self) -> bool {
        self.kind == Kind::Throttled
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Retry {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// The latest failure of any key of a queue. A later success of the key does not take it away.
#[derive(Clone, Debug)]
pub struct LastFailure {
    /// The key.
    pub key: String,
    /// The error as in the log.
    pub error: String,
    /// When it was.
    pub at: Instant,
}
