//! [`Fault`]: what can go wrong with a list or a watch, and how long the reflector waits then
//!.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use resilience::{Backoff, Jitter, Series};
use thiserror::Error;
use transport::ErrorChain;

use crate::request::Encoding;

/// A failed list or watch.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// The request did not get through, or the connection broke.
    #[error("cannot reach the API server: {}", ErrorChain(.0))]
    Transport(#[from] kube::Error),
    #[error("cannot make the request: {0}")]
    Request(#[from] http::Error),
    #[error("cannot wait longer for the API server: no answer for {0:?}")]
    Silent(Duration),
    /// An HTTP answer, or an event of type ERROR inside a stream.
    #[error("cannot list or watch: the API server answers {code} {reason}: {message}")]
    Status { code: u16, reason: String, message: String, retry_after: Duration },
    #[error("cannot read {object}: {cause}; the list is repeated until the object can be read")]
    Undecodable { object: String, encoding: Encoding, cause: Box<dyn Error + Send + Sync> },
    #[error("cannot take a message of more than {0} bytes")]
    MessageTooLong(usize),
    #[error("cannot take a page of a list of more than {0} bytes")]
    PageTooLong(usize),
    /// A streamed list broke off before its last bookmark.
    #[error("cannot complete the list: the stream ended early")]
    Incomplete,
    #[error("cannot keep the watch: the server closed it within a second")]
    ShortWatch,
    /// Applied, it would look like the deletion of everything created since.
    #[error(
        "cannot apply the list: its resource version {listed} is older than the version already \
         seen ({known}); after a restore of etcd it is accepted when three lists agree"
    )]
    Past { listed: u64, known: u64 },
    #[error(
        "cannot apply the list: {object} has a version that the watch did not show, as after a \
         restore of etcd; listing again before all controllers that use the cache are restarted"
    )]
    Contradiction { object: String },
    /// The watch broke its contract: what it showed is not what happened.
    #[error("cannot trust the watch of {resource}: {breach}; listing again")]
    Untrusted { resource: Arc<str>, breach: String },
}

impl Fault {
    /// The version to watch from, or a page's snapshot, has been compacted away.
    pub(crate) fn is_expired(&self) -> bool {
        matches!(self, Self::Status { code: 410, .. })
            || matches!(self, Self::Status { reason, .. } if reason == "Expired" || reason == "Gone")
    }

    /// The server does not know the collection.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { code: 404, .. })
    }

    /// Whether another encoding may be readable.
    pub(crate) fn is_unreadable_protobuf(&self) -> bool {
        matches!(self, Self::Undecodable { encoding: Encoding::Protobuf, .. })
    }

    pub(crate) fn is_throttled(&self) -> bool {
        matches!(self, Self::Status { code: 429, .. })
    }

    /// The message of the server about a missing right, which names it.
    pub(crate) fn denied(&self) -> Option<&str> {
        match self {
            Self::Status { code: 403, message, .. } => Some(message),
            _ => None,
        }
    }

    /// The server is down, overloaded or unreachable. That says nothing about what we know.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Transport(_) | Self::Silent(_) => true,
            _ => self.is_throttled() || self.is_server_error(),
        }
    }

    /// The server answers, and is in trouble.
    pub(crate) fn is_server_error(&self) -> bool {
        matches!(self, Self::Status { code: 500.., .. }) && !self.is_expired()
    }

    /// How long the server asked us to stay away.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => Duration::ZERO,
        }
    }

    /// Label of `icm_informer_watch_errors_total`; a closed set.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Transport(_) | Self::Request(_) => "transport",
            Self::Silent(_) => "silent",
            Self::Status { .. } if self.is_expired() => "expired",
            Self::Status { code: 401 | 403, .. } => "denied",
            Self::Status { code: 429, .. } => "throttled",
            Self::Status { code: 500.., .. } => "server_error",
            Self::Status { .. } => "refused",
            Self::Undecodable { .. } | Self::MessageTooLong(_) => "undecodable",
            Self::PageTooLong(_) => "page_too_long",
            Self::Incomplete => "incomplete",
            Self::ShortWatch => "short_watch",
            Self::Past { .. } => "past",
            Self::Contradiction { .. } => "contradiction",
            Self::Untrusted { .. } => "untrusted",
        }
    }
}

const FIRST: Duration = Duration::from_millis(100);
/// Half of the longest wait, since jitter can double it.
const LAST: Duration = Duration::from_secs(15);
/// The longest wait after an outage while there is no list yet: until then a leader does nothing.
pub(crate) const FIRST_LIST: Duration = Duration::from_secs(2);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

pub(crate) fn after_failures() -> Series {
    let doubling = Backoff::doubling(FIRST, LAST, Jitter::Above(1.0));
    Series::new(doubling).forget_after(FORGOTTEN_AFTER)
}

#[cfg(test)]
mod tests;
