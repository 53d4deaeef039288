//! What a round of the guard sees: the answers of its targets, and the last probes of the members, counted.

use std::time::{Duration, Instant};

/// A last probe that started longer ago says nothing about the network of now.
const FRESH: Duration = Duration::from_secs(20);
/// Members that must answer, and over a new connection, to prove that the network works.
pub(super) const WITNESSES: usize = 3;

/// The answers of the targets in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// When the first target was asked.
    pub began: Instant,
    /// When the last target had answered, or had its time.
    pub ended: Instant,
    /// Whether this machine has no network: no interface is up, or there is no default route.
    pub local_down: bool,
    /// The own API server answered.
    pub api: bool,
    /// Reference endpoints that answered.
    pub references_up: usize,
    /// Reference endpoints that were asked.
    pub references: usize,
}

/// The last probe of one member, as evidence about the network.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Hash of the UID.
    pub member: u64,
    /// When the probe started.
    pub started: Instant,
    /// Whether the member answered.
    pub answers: bool,
    /// When the last probe started that opened a connection and was answered over it. Answers over a connection that was
    /// open prove nothing about new ones.
    pub connected: Option<Instant>,
    /// Since when it is published as unreachable.
    pub unreachable_since: Option<Instant>,
    /// Whether the member's failures have crossed the threshold and wait for the guard.
    pub waits: bool,
}

impl Evidence {
    /// Whether a member was not published as unreachable before the episode.
    pub(super) fn is_expected(&self, episode_began: Option<Instant>) -> bool {
        match (self.unreachable_since, episode_began) {
            (None, _) => true,
            (Some(since), Some(began)) => since >= began,
            (Some(_), None) => false,
        }
    }
}

/// The evidence of all members, counted at the end of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Census {
    /// Expected members with a fresh result, those of them that did not answer, and those that answered over a new
    /// connection.
    pub(super) fresh: usize,
    pub(super) failing: usize,
    pub(super) reached: usize,
    /// Members probed within the window of the round, and how many of them answered.
    pub(super) probed: usize,
    pub(super) answered: usize,
    pub(super) answered_newly: usize,
    /// Of these, those within the last interval.
    pub(super) answered_lately: usize,
    pub(super) waiting: usize,
}

impl Census {
    /// Counts the evidence at the end of a round, in an episode of failures that began then. Answers count for the
    /// round when they are of the `window` before it.
    pub(super) fn of(
        round: &Round,
        members: &[Evidence],
        (interval, window): (Duration, Duration),
        episode_began: Option<Instant>,
    ) -> Self {
        let mut census = Self::default();
        let (fresh_from, window_from) = (before(round.ended, FRESH), before(round.began, window));
        let lately = before(round.began, interval);
        for member in members {
            census.waiting += usize::from(member.waits);
            let answers = member.answers;
            // A member that was down before is no evidence, until it answers.
            if !answers && !member.is_expected(episode_began) {
                continue;
            }
            let newly =
                |from| usize::from(answers && member.connected.is_some_and(|at| at >= from));
            if member.started >= fresh_from {
                census.fresh += 1;
                census.failing += usize::from(!answers);
                census.reached += newly(fresh_from);
            }
            if member.started >= window_from {
                census.probed += 1;
                census.answered += usize::from(answers);
                census.answered_newly += newly(window_from);
                census.answered_lately += newly(lately);
            }
        }
        census
    }

    #[allow(clippy::cast_precision_loss, reason = "no process has 2^52 members")]
    pub(super) fn ratio(&self) -> f64 {
        if self.fresh == 0 { 0.0 } else { self.failing as f64 / self.fresh as f64 }
    }

    /// Members prove that the network works: enough of them answer, some over a new connection. Established connections
    /// outlive changes of firewalls, DNS and routes that break every new one.
    pub(super) fn is_witness(&self) -> bool {
        self.answered >= WITNESSES.max(self.probed.div_ceil(10)) && self.answered_newly >= WITNESSES
    }
}

/// The time so long before, or `at` where the clock does not reach back so far.
pub(super) fn before(at: Instant, time: Duration) -> Instant {
    at.checked_sub(time).unwrap_or(at)
}
