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
    end: OnceLock<End>,
}

#[derive(Debug)]
struct End {
    cause: String,
    by_panic: bool,
}

impl Session {
    /// A session that goes on until something ends it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends it; the first cause counts.
    pub(crate) fn end(&self, cause: impl Into<String>) {
        self.end_as(End { cause: cause.into(), by_panic: false });
    }

    /// Ends it because of a panic.
    pub(crate) fn end_by_panic(&self, cause: impl Into<String>) {
        self.end_as(End { cause: cause.into(), by_panic: true });
    }

    fn end_as(&self, end: End) {
        self.0.end.get_or_init(|| end);
        self.0.ended.cancel();
    }

    /// True from the end on.
    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Waits for the end and tells its cause.
    pub async fn ended(&self) -> &str {
        self.0.ended.cancelled().await;
        self.0.end.get().map_or("", |end| &end.cause)
    }

    /// True once it was ended by a panic.
    pub fn has_panicked(&self) -> bool {
        self.0.end.get().is_some_and(|end| end.by_panic)
    }
}
