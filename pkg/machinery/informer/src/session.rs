//! [`Session`]: one user of informers, such as one run of a controller.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Ends when what its user has learnt is void: a handler of it panicked, the history of a
/// collection began anew, or its kind is ours no longer. The user must then drop its handles and
/// start from nothing (rule:session-ends-alone). Clones are the same session.
#[derive(Clone, Debug, Default)]
pub struct Session(Arc<State>);

#[derive(Debug, Default)]
struct State {
    ended: CancellationToken,
    cause: OnceLock<String>,
}

impl Session {
    /// A session that goes on until something ends it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends it; the first cause counts.
    pub(crate) fn end(&self, cause: impl Into<String>) {
        self.0.cause.get_or_init(|| cause.into());
        self.0.ended.cancel();
    }

    /// True from the end on.
    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Waits for the end and tells its cause.
    pub async fn ended(&self) -> &str {
        self.0.ended.cancelled().await;
        self.0.cause.get().map_or("", String::as_str)
    }
}
