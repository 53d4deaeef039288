//! [`Seen`]: since when a read of the cloud counts for a Node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// When each Node last changed in what counts, by name. What was read of its VM before says nothing
/// about it: a VM may have been made anew under the same name.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<HashMap<Arc<str>, Instant>>);

impl Seen {
    /// A Node has changed, or its VM was changed by us.
    pub(super) fn note(&self, name: &Arc<str>, now: Instant) {
        self.0.lock().insert(Arc::clone(name), now);
    }

    /// A Node is gone.
    pub(super) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// The earliest moment of a read that counts, if it may be no older than `age`.
    pub(super) fn not_before(&self, name: &str, age: Duration, now: Instant) -> Instant {
        let oldest = now.checked_sub(age).unwrap_or(now);
        self.0.lock().get(name).copied().unwrap_or(now).max(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_counts_when_it_was_begun_after_the_last_change_and_is_not_too_old() {
        const S: fn(u64) -> Duration = Duration::from_secs;
        tokio::time::advance(S(1000)).await;
        let (seen, start, a) = (Seen::default(), Instant::now(), Arc::from("a"));
        assert_eq!(seen.not_before("a", S(30), start), start, "nothing is known of it");
        seen.note(&a, start);
        assert_eq!(seen.not_before("a", S(30), start + S(10)), start);
        assert_eq!(seen.not_before("a", S(30), start + S(40)), start + S(10));
        seen.note(&a, start + S(35));
        assert_eq!(seen.not_before("a", S(30), start + S(40)), start + S(35));
        seen.forget("a");
        assert_eq!(seen.not_before("a", S(30), start + S(40)), start + S(40));
    }
}
