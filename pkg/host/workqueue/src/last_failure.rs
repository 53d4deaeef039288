//! [`LastFailure`]: for whoever asks a process how it is, without its log.

use tokio::time::Instant;

/// The latest failure of any key of a queue. A later success of the key does not take it away.
#[derive(Clone, Debug)]
pub struct LastFailure {
    /// The key.
    pub key: String,
    /// As in the log.
    pub error: String,
    /// When it was.
    pub at: Instant,
}
