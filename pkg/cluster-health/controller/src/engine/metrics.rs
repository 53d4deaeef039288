//! [`Counters`]: the `clusterhealth_*` metrics that are written when something happens; `gauges.rs`
//! has those that are read at each scrape.

use std::time::Duration;

use health::{Code, GuardState, Report};
use prometheus::{HistogramVec, IntCounterVec, Registry};

/// From a member next door to one that takes the longest timeout that makes sense.
const PROBE_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Registered once per process and kept by a restarted controller.
#[derive(Clone)]
pub(crate) struct Counters {
    duration: HistogramVec,
    probes: IntCounterVec,
    lag: HistogramVec,
    writes: IntCounterVec,
    restarts: IntCounterVec,
    moves: IntCounterVec,
    episodes: IntCounterVec,
    checks: IntCounterVec,
    dropped_checks: IntCounterVec,
}

impl Counters {
    /// Registers everything.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let histogram = |name: &str, help: &str, labels: &[&str]| {
            metrics::histogram(registry, name, help, labels, &PROBE_SECONDS)
        };
        let counter = |name: &str, help: &str, labels: &[&str]| {
            metrics::counter(registry, name, help, labels)
        };
        let counters = Self {
            duration: histogram(
                "clusterhealth_probe_duration_seconds",
                "Time of a probe, retries included.",
                &["flavour", "result"],
            )?,
            probes: counter(
                "clusterhealth_probes_total",
                "Completed probes by result and code; void: this process could not make the probe.",
                &["flavour", "result", "code"],
            )?,
            lag: histogram(
                "clusterhealth_schedule_lag_seconds",
                "How long after its time a probe started.",
                &["flavour"],
            )?,
            writes: counter(
                "clusterhealth_status_writes_total",
                "Writes of status by outcome.",
                &["flavour", "outcome"],
            )?,
            restarts: counter(
                "clusterhealth_task_restarts_total",
                "Tasks of members that were restarted.",
                &["reason"],
            )?,
            moves: counter(
                "clusterhealth_shard_moves_total",
                "Clusters that moved between this replica and another one.",
                &["direction"],
            )?,
            episodes: counter(
                "clusterhealth_guard_episodes_total",
                "How often the guard against outages of this process entered a state that is not clear.",
                &["state"],
            )?,
            checks: counter(
                "clusterhealth_checks_total",
                "Runs of the checks of --cluster-health-checks-config by result: passed, failed, or not-asked without an answer that can be judged.",
                &["check", "outcome"],
            )?,
            dropped_checks: counter(
                "clusterhealth_checks_dropped_total",
                "Runs of checks that waited for their turn until the next one was due, and were not made.",
                &[],
            )?,
        };
        counters.dropped_checks.with_label_values(&[] as &[&str]);
        for state in [GuardState::Suspect, GuardState::MassOutage, GuardState::Partition] {
            counters.episodes.with_label_values(&[state.label()]);
        }
        for reason in ["panic", "watchdog"] {
            counters.restarts.with_label_values(&[reason]);
        }
        for direction in ["taken", "given"] {
            counters.moves.with_label_values(&[direction]);
        }
        Ok(counters)
    }

    pub(crate) fn started(&self, flavour: &str, lag: Duration) {
        self.lag.with_label_values(&[flavour]).observe(lag.as_secs_f64());
    }

    pub(crate) fn completed(&self, flavour: &str, report: &Report) {
        let finding = report.finding;
        let result = if finding.is_void() { "void" } else { finding.verdict().as_str() };
        let code = finding.code().map_or("", Code::label);
        self.duration.with_label_values(&[flavour, result]).observe(report.took.as_secs_f64());
        self.probes.with_label_values(&[flavour, result, code]).inc();
    }

    /// A check ran.
    pub(crate) fn checked(&self, check: &str, outcome: &str) {
        self.checks.with_label_values(&[check, outcome]).inc();
    }

    /// A run of a check came too late.
    pub(crate) fn dropped_check(&self) {
        self.dropped_checks.with_label_values(&[] as &[&str]).inc();
    }

    pub(crate) fn wrote(&self, flavour: &str, outcome: &str) {
        self.writes.with_label_values(&[flavour, outcome]).inc();
    }

    /// The guard entered this state.
    pub(crate) fn guarded(&self, state: GuardState) {
        if state != GuardState::Clear {
            self.episodes.with_label_values(&[state.label()]).inc();
        }
    }

    /// `direction` is `taken` or `given`.
    pub(crate) fn moved(&self, direction: &str) {
        self.moves.with_label_values(&[direction]).inc();
    }

    pub(crate) fn restarted(&self, reason: &str) {
        self.restarts.with_label_values(&[reason]).inc();
    }
}
