//! [`Schedule`]: when the next probe of a cluster starts.

use std::time::{Duration, Instant};

/// Least time between the starts of two probes of a cluster, however many events ask for one.
const TRIGGER_SPACING: Duration = Duration::from_secs(1);

/// How often a cluster is probed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cadence {
    /// From start to start.
    pub period: Duration,
    /// Wall time of one probe.
    pub timeout: Duration,
    /// From start to start while a run of results contradicts what is published.
    pub confirm: Duration,
    /// Fraction by which intervals differ at random, 0 to 0.5.
    pub jitter: f64,
}

impl Cadence {
    /// The interval to the next probe; `draw` is a random number in `[0, 1)`.
    pub(crate) fn interval(&self, confirming: bool, draw: f64) -> Duration {
        let base = if confirming { self.confirming() } else { self.period };
        let share = 1.0 + self.jitter.clamp(0.0, 0.5) * (2.0 * draw - 1.0);
        base.mul_f64(share.max(0.0))
    }

    /// The interval while confirming, before jitter: never longer than the period.
    pub(crate) fn confirming(&self) -> Duration {
        self.period.min(self.confirm)
    }
}

/// Why a probe starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The period has passed.
    Regular,
    /// Something about the cluster changed.
    Triggered,
}

/// The times of one cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    regular: Instant,
    triggered: Option<Instant>,
    started: Option<Instant>,
    probing: bool,
}

impl Schedule {
    /// The first probe starts at `first`.
    pub(crate) fn new(first: Instant) -> Self {
        Self { regular: first, triggered: None, started: None, probing: false }
    }

    /// When the next probe starts; `None` while one is under way: a cluster has at most
    /// one probe at a time.
    pub(crate) fn due(&self) -> Option<Instant> {
        let next = self.triggered.map_or(self.regular, |at| at.min(self.regular));
        (!self.probing).then_some(next)
    }

    /// Something changed at `now`: a probe starts at once, or as soon as the spacing allows.
    pub(crate) fn trigger(&mut self, now: Instant) {
        let spaced = self.started.map_or(now, |started| now.max(started + TRIGGER_SPACING));
        self.triggered = Some(self.triggered.map_or(spaced, |at| at.min(spaced)));
    }

    /// A probe starts.
    pub(crate) fn begin(&mut self, now: Instant) -> Cause {
        let cause = if now >= self.regular { Cause::Regular } else { Cause::Triggered };
        self.started = Some(now);
        self.triggered = None;
        self.probing = true;
        cause
    }

    /// The probe has ended. When it counted, the next one starts `interval` after it did, and at
    /// once when that is past; otherwise it changes nothing
    pub(crate) fn complete(&mut self, counted: bool, interval: Duration) {
        if let (true, Some(started)) = (counted, self.started) {
            self.regular = started + interval;
        }
        self.probing = false;
    }

    /// The probe under way is void: another one takes its place, with its cause, as soon as the
    /// spacing allows. A stream of changes brings no stream of probes.
    pub(crate) fn discard(&mut self, now: Instant) {
        if !self.probing {
            return;
        }
        self.probing = false;
        self.trigger(now);
        self.regular = self.triggered.map_or(self.regular, |at| at.max(self.regular));
    }

    /// The probe under way was cancelled: another one starts at once.
    pub(crate) fn abandon(&mut self, now: Instant) {
        self.probing = false;
        self.regular = self.regular.min(now);
    }

    /// A shorter period holds from now on, too.
    pub(crate) fn no_later_than(&mut self, limit: Instant) {
        self.regular = self.regular.min(limit);
    }

    pub(crate) fn is_probing(&self) -> bool {
        self.probing
    }

    pub(crate) fn started(&self) -> Option<Instant> {
        self.started
    }
}

#[cfg(test)]
mod tests;
