//! [`Suspicion`]: a Node that somebody else may have served. Workers raise it, `second_allocator.rs` looks into it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A Node that may show that there is another allocator: the last one, for one is enough.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    node: Mutex<Option<Arc<str>>>,
    news: Notify,
}

impl Suspicion {
    /// Somebody else gave this Node its pod CIDR while it waited for ours.
    pub(crate) fn raise(&self, node: Arc<str>) {
        *self.node.lock() = Some(node);
        self.news.notify_one();
    }

    /// The next such Node.
    pub(crate) async fn next(&self) -> Arc<str> {
        loop {
            self.news.notified().await;
            if let Some(node) = self.node.lock().take() {
                return node;
            }
        }
    }
}
