//! [`Tally`]: how many probes in a row said the same, and whether that is enough to publish it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Status;

/// How many probes in a row it takes. Zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Failures before a ready cluster is called failing.
    pub failure: u32,
    /// Successes before a failing cluster is called ready.
    pub success: u32,
}

/// Consequence of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Change only the probe time.
    Keep,
    /// Publish the result.
    Publish,
}

/// The run of equal results. It counts consecutive probes and not how long a state has been
/// published.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    failures: u32,
    successes: u32,
    /// Start of the last failure that counted.
    counted_at: Option<Instant>,
    /// The target is another one than that of what is published.
    new_target: bool,
}

impl Tally {
    /// Takes a result in and decides. `ready` is the published status. A failure that does not count,
    /// for which `counted` is `None`, ends a run of successes and extends no run of failures.
    pub fn decide(
        &mut self,
        ready: Option<Status>,
        well: bool,
        counted: Option<Instant>,
        thresholds: Thresholds,
    ) -> Decision {
        self.count(well, counted);
        let enough = match (ready, well) {
            _ if self.new_target => true,
            (None | Some(Status::Unknown), _)
            | (Some(Status::True), true)
            | (Some(Status::False), false) => true,
            (Some(Status::True), false) => self.failures >= thresholds.failure.max(1),
            (Some(Status::False), true) => self.successes >= thresholds.success.max(1),
        };
        if !enough {
            return Decision::Keep;
        }
        self.new_target = false;
        Decision::Publish
    }

    fn count(&mut self, well: bool, counted: Option<Instant>) {
        if well {
            self.successes = self.successes.saturating_add(1);
            self.failures = 0;
            self.counted_at = None;
            return;
        }
        self.successes = 0;
        if counted.is_some() {
            self.failures = self.failures.saturating_add(1);
            self.counted_at = counted;
        }
    }

    /// Forgets the run of failures, because it says nothing about the cluster.
    pub(crate) fn forget_failures(&mut self) {
        (self.failures, self.counted_at) = (0, None);
    }

    /// Forgets the results, because they belong to a former target.
    pub(crate) fn new_target(&mut self) {
        *self = Self { new_target: true, ..Self::default() };
    }

    /// True while a run contradicts what is published without being long enough.
    pub(crate) fn contradicts(self, ready: Option<Status>) -> bool {
        match ready {
            Some(Status::True) => self.failures > 0,
            Some(Status::False) => self.successes > 0,
            Some(Status::Unknown) | None => false,
        }
    }

    /// Failures in a row that counted.
    pub fn failures(self) -> u32 {
        self.failures
    }

    /// Successes in a row.
    pub(crate) fn successes(self) -> u32 {
        self.successes
    }

    /// Start of the last failure that counted.
    pub fn counted_at(self) -> Option<Instant> {
        self.counted_at
    }
}

/// From when on a cluster flaps, and what it takes then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damping {
    /// Changes within the window that make a cluster a flapping one; 0 turns damping off.
    pub transitions: u32,
    /// The window.
    pub window: Duration,
    /// Successes in a row that a flapping cluster needs at least.
    pub min_success: u32,
}

/// The recent changes between ready and not ready, in published state. Memory is taken by clusters
/// that change only, and for as many changes as make one a flapping cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flaps {
    changes: VecDeque<Instant>,
    damped: bool,
    told: Option<Instant>,
}

impl Flaps {
    /// Takes in a change that happened at `now`. True when it is time to tell that the cluster
    /// flaps: once per window.
    pub(crate) fn note(&mut self, now: Instant, damping: &Damping) -> bool {
        if damping.transitions == 0 {
            *self = Self::default();
            return false;
        }
        self.settle(now, damping);
        self.changes.push_back(now);
        let recent = |&at: &Instant| now.saturating_duration_since(at) <= damping.window;
        let limit = usize::try_from(damping.transitions).unwrap_or(usize::MAX);
        while self.changes.len() > limit || self.changes.front().is_some_and(|at| !recent(at)) {
            self.changes.pop_front();
        }
        self.damped |= self.changes.len() >= limit;
        if !self.damped || self.told.as_ref().is_some_and(recent) {
            return false;
        }
        self.told = Some(now);
        true
    }

    /// The thresholds that hold at `now`. Failures are never held back
    pub(crate) fn effective(
        &mut self,
        configured: Thresholds,
        now: Instant,
        damping: &Damping,
    ) -> Thresholds {
        self.settle(now, damping);
        if !self.damped {
            return configured;
        }
        Thresholds { success: configured.success.max(damping.min_success), ..configured }
    }

    pub(crate) fn is_damped(&self) -> bool {
        self.damped
    }

    /// Damping ends when a whole window has passed without a change, or when it is turned off.
    fn settle(&mut self, now: Instant, damping: &Damping) {
        let quiet = self
            .changes
            .back()
            .is_none_or(|&last| now.saturating_duration_since(last) > damping.window);
        if quiet || damping.transitions == 0 {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use super::*;

    /// How long ago that was; all that is longer ago than `most` is the same.
    fn age(at: Instant, now: Instant, most: Duration) -> Duration {
        now.saturating_duration_since(at).min(most)
    }

    impl Tally {
        /// What its decisions depend on. A run is counted up to 3.
        pub(crate) fn relative(self, now: Instant, spacing: Duration) -> impl Hash {
            let Self { failures, successes, counted_at, new_target } = self;
            let counted = counted_at.map(|at| age(at, now, spacing));
            (failures.min(3), successes.min(3), counted, new_target)
        }
    }

    impl Flaps {
        /// What its decisions depend on.
        pub(crate) fn relative(&self, now: Instant, window: Duration) -> impl Hash {
            let Self { changes, damped, told: _ } = self;
            let ages = changes.iter().map(|at| age(*at, now, window + Duration::from_secs(1)));
            (ages.collect::<Vec<_>>(), *damped)
        }
    }

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    const DAMPING: Damping = Damping { transitions: 6, window: secs(600), min_success: 3 };
    const PLAIN: Thresholds = Thresholds { failure: 3, success: 1 };

    fn flapped(times: u64, every: u64) -> (Flaps, Instant, Vec<bool>) {
        let (mut flaps, start) = (Flaps::default(), Instant::now());
        let told = (0..times).map(|n| flaps.note(start + secs(n * every), &DAMPING)).collect();
        (flaps, start + secs((times - 1) * every), told)
    }

    #[test]
    fn six_changes_in_ten_minutes_make_recovery_take_three_successes_until_a_quiet_window() {
        let (mut flaps, last, told) = flapped(6, 100);
        assert_eq!(told, [false, false, false, false, false, true]);
        let damped = Thresholds { failure: 3, success: 3 };
        assert_eq!(flaps.effective(PLAIN, last + secs(600), &DAMPING), damped);
        let strict = Thresholds { failure: 1, success: 5 };
        assert_eq!(flaps.effective(strict, last, &DAMPING), strict);
        assert_eq!(flaps.effective(PLAIN, last + secs(601), &DAMPING), PLAIN);
        assert!(!flaps.is_damped());
    }

    #[test]
    fn slow_changes_are_not_damped() {
        let (mut flaps, last, told) = flapped(40, 121);
        assert!(!told.contains(&true));
        assert_eq!(flaps.effective(PLAIN, last, &DAMPING), PLAIN);
        assert!(flaps.changes.len() <= 6);
    }

    #[test]
    fn a_cluster_that_goes_on_flapping_is_told_of_once_per_window() {
        let (_, _, told) = flapped(31, 60);
        let at: Vec<_> = (0..31).filter(|&n| told[n]).collect();
        assert_eq!(at, [5, 16, 27]);
    }

    #[test]
    fn damping_can_be_turned_off() {
        let off = Damping { transitions: 0, ..DAMPING };
        let (mut flaps, last, _) = flapped(6, 10);
        assert_eq!(flaps.effective(PLAIN, last, &off), PLAIN);
        assert!(!flaps.note(last, &off));
    }
}
