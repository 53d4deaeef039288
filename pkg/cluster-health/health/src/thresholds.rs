//! [`Tally`]: how many probes in a row said the same, and whether that is enough to publish it.

use std::time::Instant;

use crate::Status;

/// How many probes in a row it takes. Zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Failures before a ready cluster is called failing.
    pub failure: u32,
    /// Successes before a failing cluster is called ready.
    pub success: u32,
}

/// What to do with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Only the probe time moves.
    Keep,
    /// It takes the place of what is published.
    Publish,
}

/// The run of equal results. It counts consecutive probes and not how long a state has been
/// published (`rule:thresholds-count-consecutive-probes`).
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
    /// Takes a result in and decides. `ready` is what is published. A failure that did not count,
    /// of which `counted` is none, ends a run of successes and makes no run of failures longer.
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

    /// Another target has taken the place of the one that the results are of.
    pub fn new_target(&mut self) {
        *self = Self { new_target: true, ..Self::default() };
    }

    /// True while a run contradicts what is published without being long enough.
    pub fn contradicts(self, ready: Option<Status>) -> bool {
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
    pub fn successes(self) -> u32 {
        self.successes
    }

    /// Start of the last failure that counted.
    pub fn counted_at(self) -> Option<Instant> {
        self.counted_at
    }
}
