//! [`Rests`]: until when the blocks of Nodes that are gone are given to nobody.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::owner::Uid;

/// The Nodes whose blocks rest.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// How long a rest is; zero for none.
    delay: Duration,
    /// In the order in which they went.
    gone: VecDeque<(Instant, Uid)>,
}

impl Rests {
    /// Rests of this length.
    pub(super) fn of(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Whether blocks rest at all.
    pub(super) fn are_wanted(&self) -> bool {
        !self.delay.is_zero()
    }

    /// How many Nodes there are.
    pub(super) fn len(&self) -> usize {
        self.gone.len()
    }

    /// The blocks of this Node rest from now on.
    pub(super) fn begin(&mut self, uid: Uid, now: Instant) {
        self.gone.push_back((now + self.delay, uid));
    }

    /// A Node whose blocks have rested for long enough, the first one that went.
    pub(super) fn end(&mut self, now: Instant) -> Option<Uid> {
        let (until, _) = self.gone.front()?;
        if *until > now {
            return None;
        }
        self.gone.pop_front().map(|(_, uid)| uid)
    }

    /// When to look for such a Node next; `None` for never.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        // What goes from now on rests for longer than that.
        let first = self.gone.front().map_or(now + self.delay, |(until, _)| *until);
        self.are_wanted().then_some(first)
    }
}
