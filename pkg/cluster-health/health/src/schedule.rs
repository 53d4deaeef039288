//! [`Policy`]: how a cluster is probed and published, for a whole flavour or one object. [`Schedule`]: when the next
//! probe of a cluster starts.

use std::time::{Duration, Instant};

use crate::{Damping, EvidenceSource, Objective, Thresholds};

/// The least time without a probe after which a cluster is called unknown.
const STALE_AT_LEAST: Duration = Duration::from_secs(40);
/// The longest delay of the start of a probe.
const STALE_MARGIN: Duration = Duration::from_secs(1);
/// Time that a cluster which was never probed by anybody is given.
const FIRST_GRACE: Duration = Duration::from_secs(60);
/// Time beyond two rounds after which a task without a completed probe is taken for stuck.
const STUCK_MARGIN: Duration = Duration::from_secs(5);

/// How a cluster is watched over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// When it is probed.
    pub cadence: Cadence,
    /// How many probes it takes to change what is published.
    pub thresholds: Thresholds,
    /// Settings of damping.
    pub damping: Damping,
    /// How long a cluster may go without a completed probe before it is published as unknown; zero
    /// has it computed.
    pub stale_after: Duration,
    /// How long a cluster can be without a replica after its own died; zero when one process has all.
    pub inherited_after: Duration,
    /// Unchanged status is written this often; zero writes every probe.
    pub heartbeat: Duration,
    /// `None` when the cluster has none, and its object keeps no record of its availability.
    pub objective: Option<Objective>,
    /// What its health is judged by.
    pub evidence: EvidenceSource,
}

impl Policy {
    /// How long a cluster may go without a completed probe before it is published as unknown. Never
    /// so short that a cluster which is probed in time and is silent becomes unknown in between
    pub fn stale_after(&self) -> Duration {
        if self.stale_after.is_zero() {
            let inherited = self.stale_after_min() + self.inherited_after;
            (4 * self.round()).max(STALE_AT_LEAST).max(inherited)
        } else {
            self.stale_after.max(self.stale_after_min())
        }
    }

    /// The least that `stale_after` can be: the end of one probe to the end of the next, at most.
    pub fn stale_after_min(&self) -> Duration {
        let Cadence { period, timeout, jitter, .. } = self.cadence;
        period.mul_f64(1.0 + jitter.clamp(0.0, 0.5)).max(timeout) + timeout + STALE_MARGIN
    }

    /// [`Self::stale_after`] for a cluster that was never published: its first probe has to start and
    /// to end.
    pub(crate) fn first_grace(&self) -> Duration {
        FIRST_GRACE.max(FIRST_GRACE / 2 + self.cadence.timeout).max(self.stale_after)
    }

    /// From one probe to the next when members are silent.
    fn round(&self) -> Duration {
        self.cadence.period.max(self.cadence.timeout)
    }

    /// How long a task may go without a completed probe before it is restarted.
    pub(crate) fn stuck_after(&self) -> Duration {
        2 * self.round() + STUCK_MARGIN
    }

    /// The shortest time after which the failure of an extra probe counts again.
    pub fn failure_spacing(&self) -> Duration {
        self.cadence.confirming() / 2
    }

    /// The longest time for which one result can stand for the cluster.
    pub(crate) fn longest_gap(&self) -> Duration {
        2 * self.round()
    }
}

/// Least time between the starts of two probes of a cluster, however many events ask for one.
const TRIGGER_SPACING: Duration = Duration::from_secs(1);

/// How often a cluster is probed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cadence {
    /// The time from the start of a probe to the start of the next.
    pub period: Duration,
    /// Wall time of one probe.
    pub timeout: Duration,
    /// The time from start to start while a run of results contradicts the published health.
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
mod policy_tests {
    use super::*;
    use crate::SHARD_INHERITED;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn policy(period: u64, timeout: u64, stale_after: u64) -> Policy {
        Policy {
            cadence: Cadence {
                period: S(period),
                timeout: S(timeout),
                confirm: S(10),
                jitter: 0.1,
            },
            thresholds: Thresholds { failure: 3, success: 1 },
            damping: Damping { transitions: 6, window: S(600), min_success: 3 },
            stale_after: S(stale_after),
            inherited_after: S(0),
            heartbeat: S(300),
            objective: None,
            evidence: EvidenceSource::Both,
        }
    }

    #[test]
    fn limits_follow_period_and_timeout() {
        // (period, timeout, flag; stale after, stuck after)
        let rows = [
            (10, 3, 0, 40, 25),
            (5, 3, 0, 40, 15),
            (300, 5, 0, 1200, 605),
            (10, 60, 0, 240, 125),
            (10, 30, 90, 90, 65),
        ];
        for (period, timeout, flag, stale, stuck) in rows {
            let policy = policy(period, timeout, flag);
            assert_eq!((policy.stale_after(), policy.stuck_after()), (S(stale), S(stuck)));
        }
        // (period, timeout, flag; first grace)
        for (period, timeout, flag, grace) in
            [(300, 5, 0, 60), (10, 3, 90, 90), (10, 60, 0, 90), (10, 60, 70, 90)]
        {
            assert_eq!(policy(period, timeout, flag).first_grace(), S(grace));
        }
    }

    #[test]
    fn the_computed_limit_leaves_time_for_another_replica_to_take_over_from_one_that_died() {
        // (period, timeout; stale after)
        for (period, timeout, stale) in [(10, 3, 49), (60, 3, 240), (5, 3, 43)] {
            let shared = Policy { inherited_after: SHARD_INHERITED, ..policy(period, timeout, 0) };
            let limit = shared.stale_after();
            assert!(limit >= S(stale) && limit < S(stale + 1), "{limit:?}");
        }
        let told = Policy { inherited_after: SHARD_INHERITED, ..policy(10, 3, 20) };
        assert_eq!(told.stale_after(), S(20), "whoever gives a limit gets it");
    }

    #[test]
    fn a_limit_that_a_silent_cluster_would_pass_between_two_probes_is_raised() {
        // (period, timeout, flag; stale after)
        for (period, timeout, flag, stale) in
            [(10, 3, 5, 15), (10, 60, 40, 121), (10, 3, 15, 15), (10, 3, 16, 16)]
        {
            let policy = policy(period, timeout, flag);
            assert_eq!(policy.stale_after(), S(stale));
            assert!(policy.stale_after_min() <= S(stale));
        }
    }
}

#[cfg(test)]
mod tests;
