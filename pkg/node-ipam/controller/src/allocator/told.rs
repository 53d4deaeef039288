//! What was told of a Node and when, so that a state that lasts is not told at every look at it.

use std::time::Duration;

use tokio::time::Instant;

/// When each reason was last told. A Node has a handful of reasons at most.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<(&'static str, Instant)>);

impl Told {
    /// True at most once per `every` for each reason, the first time at once.
    pub(super) fn due(&mut self, reason: &'static str, every: Duration, now: Instant) -> bool {
        match self.0.iter_mut().find(|(told, _)| *told == reason) {
            Some((_, at)) if now.saturating_duration_since(*at) < every => false,
            Some((_, at)) => {
                *at = now;
                true
            }
            None => {
                self.0.push((reason, now));
                true
            }
        }
    }

    /// The state has ended: the next one of this reason is told at once.
    pub(super) fn forget(&mut self, reason: &'static str) {
        self.0.retain(|(told, _)| *told != reason);
    }
}
