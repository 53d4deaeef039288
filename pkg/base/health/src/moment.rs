//! [`Moment`]: a time on both clocks.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// One point in time on the monotonic clock, by which everything is decided, and on the wall clock,
/// which is only ever shown (`rule:decisions-use-the-monotonic-clock`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// For intervals and deadlines.
    pub monotonic: Instant,
    /// For conditions, messages and metrics.
    pub wall: Timestamp,
}

impl Moment {
    /// The moment at which the monotonic clock will show `later`, if nobody sets the wall clock.
    #[must_use]
    pub fn wall_at(&self, later: Instant) -> Timestamp {
        let ahead = later.saturating_duration_since(self.monotonic);
        let ahead = ahead.min(Duration::from_secs(10 * 365 * 86_400));
        self.wall.checked_add(ahead).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_time_of_a_later_instant_is_as_far_ahead() {
        let now = Moment { monotonic: Instant::now(), wall: Timestamp::UNIX_EPOCH };
        let later = now.monotonic + Duration::from_secs(90);
        assert_eq!(now.wall_at(later), Timestamp::from_second(90).unwrap());
        assert_eq!(Moment { monotonic: later, ..now }.wall_at(now.monotonic), now.wall);
        let end_of_time = Moment { wall: Timestamp::MAX, ..now };
        assert_eq!(end_of_time.wall_at(later), Timestamp::MAX);
    }
}
