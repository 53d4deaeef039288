//! [`Suspicion`]: a Node that somebody else may have served. Workers raise it, `second_allocator.rs` looks into it.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Surveyed;

/// The field manager of the other program.
pub(crate) const STOCK: &str = "kube-controller-manager";

/// A Node that may show that there is another allocator: the last one, for one is enough.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    node: Mutex<Option<Arc<str>>>,
    news: Notify,
}

impl Suspicion {
    /// Somebody else may have given this Node its pod CIDR.
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

/// Whether the answer to a PATCH, which is the Node or its metadata, says that stock had set the same CIDRs
/// before: then the PATCH has changed nothing.
pub(crate) fn is_stocks(answer: &[u8]) -> bool {
    // One that does not name it need not be decoded.
    str::from_utf8(answer).is_ok_and(|text| text.contains(STOCK))
        && serde_json::from_slice(answer)
            .is_ok_and(|node: Surveyed| is_set_by_stock(&node, Timestamp::MIN))
}

/// Whether it gave the Node its CIDRs at that moment or later.
pub(crate) fn is_set_by_stock(node: &Surveyed, since: Timestamp) -> bool {
    node.setters.iter().any(|(at, manager)| *at >= since && manager == STOCK)
}
