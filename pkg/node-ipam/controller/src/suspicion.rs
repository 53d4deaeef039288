//! [`Suspicion`]: a Node that somebody else may have served. The watch and the workers raise it,
//! `second_allocator.rs` looks into it.

use std::sync::Arc;

use jiff::Timestamp;
use kube_api::Node;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Surveyed;

/// The field manager of the other program.
pub(crate) const STOCK: &str = "kube-controller-manager";

/// Why the pod CIDRs of a Node were not there before this program began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// We have seen the Node without them.
    SawEmpty,
    /// We have first seen the Node when all that there was at the start was known.
    SeenLate,
}

/// A Node whose pod CIDRs no PATCH of ours can have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its UID.
    pub(crate) uid: Arc<str>,
    /// What speaks for it.
    pub(crate) evidence: Evidence,
}

impl Suspect {
    /// This Node.
    pub(crate) fn new(node: &Node, evidence: Evidence) -> Self {
        Self { name: Arc::clone(&node.name), uid: Arc::clone(&node.uid), evidence }
    }

    /// Whether a read of the Node says that stock gave it its pod CIDRs after `begun`, by the API
    /// server's clock. The time of a managed field is no evidence: it moves with every field of the
    /// same manager, such as a taint.
    pub(crate) fn is_confirmed(&self, read: &Surveyed, begun: Timestamp) -> bool {
        let is_after = match self.evidence {
            Evidence::SawEmpty => true,
            Evidence::SeenLate => read.created.is_some_and(|created| created >= begun),
        };
        is_after && *read.uid == *self.uid && is_set_by_stock(read)
    }
}

/// A Node that may show that there is another allocator: the last one, for one is enough.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    suspect: Mutex<Option<Suspect>>,
    news: Notify,
}

impl Suspicion {
    /// Somebody else may have given this Node its pod CIDR.
    pub(crate) fn raise(&self, suspect: Suspect) {
        *self.suspect.lock() = Some(suspect);
        self.news.notify_one();
    }

    /// The look at this Node failed: it is looked at again, unless another one was raised.
    pub(crate) fn keep(&self, suspect: Suspect) {
        self.suspect.lock().get_or_insert(suspect);
        self.news.notify_one();
    }

    /// The next such Node.
    pub(crate) async fn next(&self) -> Suspect {
        loop {
            self.news.notified().await;
            if let Some(suspect) = self.suspect.lock().take() {
                return suspect;
            }
        }
    }
}

/// Whether the answer to a PATCH, which is the Node or its metadata, says that stock had set the same CIDRs
/// before: then the PATCH has changed nothing.
pub(crate) fn is_stocks(answer: &[u8]) -> bool {
    // One that does not name it need not be decoded.
    str::from_utf8(answer).is_ok_and(|text| text.contains(STOCK))
        && serde_json::from_slice(answer).is_ok_and(|node: Surveyed| is_set_by_stock(&node))
}

/// Whether it gave the Node its CIDRs.
fn is_set_by_stock(node: &Surveyed) -> bool {
    node.setters.iter().any(|(_, manager)| manager == STOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10,000 taints that stock writes are no alarm, however late they are.
    #[test]
    fn a_taint_that_stock_writes_does_not_make_its_old_pod_cidr_a_new_one() {
        let begun: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let suspect = Suspect { name: "a".into(), uid: "u".into(), evidence: Evidence::SeenLate };
        let read = |created: &str, manager: &str, taint: Timestamp| Surveyed {
            uid: "u".to_owned(),
            created: created.parse().ok(),
            setters: vec![(taint, manager.to_owned())],
            ..Surveyed::default()
        };
        for second in 0..10_000 {
            let taint = begun + jiff::SignedDuration::from_secs(second);
            assert!(!suspect.is_confirmed(&read("2026-01-01T00:00:00Z", STOCK, taint), begun));
        }
        let new = "2026-01-02T00:00:00Z";
        assert!(suspect.is_confirmed(&read(new, STOCK, begun), begun), "made after we began");
        assert!(!suspect.is_confirmed(&read(new, "kubectl", begun), begun));
        assert!(!suspect.is_confirmed(&read("", STOCK, begun), begun), "nobody knows since when");
        let saw_empty = Suspect { evidence: Evidence::SawEmpty, ..suspect };
        let old = read("2026-01-01T00:00:00Z", STOCK, Timestamp::MIN);
        assert!(saw_empty.is_confirmed(&old, begun));
        let next = Suspect { uid: "of the next".into(), ..saw_empty };
        assert!(!next.is_confirmed(&old, begun), "it is another Node by now");
    }
}
