//! [`Causes`]: whether a failure that continues has another cause, which gets an event.

use std::time::{Duration, Instant};

/// Between two causes that are told while the trouble goes on.
const AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// The cause that was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Causes {
    told: Option<u64>,
    /// When one took the place of another.
    changed_at: Option<Instant>,
}

impl Causes {
    /// A new state was published with this cause, and its event names the cause.
    pub(crate) fn begin(&mut self, cause: Option<u64>) {
        self.told = cause;
    }

    /// The published state was found again: whether it has another cause that gets an event now.
    pub(crate) fn note(&mut self, cause: Option<u64>, now: Instant) -> bool {
        if cause == self.told {
            return false;
        }
        // What the object of a cluster that was taken over tells is not known.
        if self.told.is_none() || cause.is_none() {
            self.told = cause;
            return false;
        }
        let recent = |at| now.saturating_duration_since(at) < AT_MOST_EVERY;
        if self.changed_at.is_some_and(recent) {
            return false;
        }
        *self = Self { told: cause, changed_at: Some(now) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_alternate_are_told_once_a_minute_at_most() {
        let (start, mut causes) = (Instant::now(), Causes::default());
        causes.begin(Some(1));
        let mut told =
            |second: u64, cause| causes.note(Some(cause), start + Duration::from_secs(second));
        let rows = [
            (10, 1, false),
            (20, 2, true),
            (30, 2, false),
            (40, 1, false),
            (79, 3, false),
            (80, 3, true),
            (90, 3, false),
            (140, 1, true),
        ];
        for (second, cause, expected) in rows {
            assert_eq!(told(second, cause), expected, "{second}");
        }
    }

    /// rule:a-restart-changes-nothing
    #[test]
    fn the_first_cause_after_a_takeover_is_no_other_one() {
        let (now, mut causes) = (Instant::now(), Causes::default());
        assert!(!causes.note(Some(1), now));
        assert!(causes.note(Some(2), now));
    }
}
