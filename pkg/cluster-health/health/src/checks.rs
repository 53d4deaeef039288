//! [`Checks`]: what objects of a cluster say about it while it answers its probes. A check that fails makes the cluster
//! not ready where the operator wants so, and never unreachable (`rule:an-answer-proves-reachability`).

mod leases;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::write_gate::{mix, share_of};
use crate::{Moment, Thresholds, hash, one_line};
use leases::LeaseReads;
pub use leases::SeenLease;

/// A check without a result is repeated this often, if its interval is longer.
const UNDECIDED_EVERY: Duration = Duration::from_secs(10);

/// One check, as the operator configured it.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// One CamelCase word, the type of its condition.
    pub name: Box<str>,
    /// The objects that are read.
    pub kind: CheckKind,
    /// From one run to the next.
    pub interval: Duration,
    /// The longest run.
    pub timeout: Duration,
    /// Equal results in a row that change its status. It becomes unknown after as many runs without a result as it takes
    /// failures.
    pub thresholds: Thresholds,
    /// Whether the cluster is not ready while the check fails.
    pub gates_ready: bool,
}

/// The objects that a check reads.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckKind {
    /// A share of the Nodes is ready.
    NodesReady {
        /// The least share that passes.
        min_ratio: f64,
    },
    /// A share of the Nodes renews its Leases.
    NodeLeases {
        /// The least share that passes.
        min_fresh: f64,
        /// The oldest renewal that is fresh.
        max_age: Duration,
    },
    /// An APIService is available.
    ApiService {
        /// Its name.
        name: Box<str>,
    },
    /// A workload is available.
    Available {
        /// Its kind.
        kind: Workload,
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
    },
}

/// The kinds of workloads that a check can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Passes by its condition `Available`.
    Deployment,
    /// Passes when all replicas are available.
    StatefulSet,
    /// Passes when it is available on all Nodes that need it.
    DaemonSet,
}

/// What one run found.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckEvidence {
    /// The Nodes of the cluster.
    Nodes {
        /// With the condition Ready=True.
        ready: usize,
        /// All.
        total: usize,
    },
    /// The Leases of Nodes, and the header `Date` of the answer.
    Leases {
        /// In any order.
        leases: Vec<SeenLease>,
        /// By the clock of the API server of the cluster.
        date: Option<Timestamp>,
    },
    /// An object that says whether it is available.
    Object {
        /// What it says.
        available: bool,
        /// One sentence about it.
        about: Box<str>,
    },
    /// Nothing could be read, for this reason.
    Nothing(Box<str>),
}

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStatus {
    /// What was read is as it should be.
    Passed,
    /// It is not.
    Failed,
    /// It could not be read.
    NotAsked,
}

impl CheckStatus {
    /// The status of the condition.
    pub const fn status(self) -> crate::Status {
        match self {
            Self::Passed => crate::Status::True,
            Self::Failed => crate::Status::False,
            Self::NotAsked => crate::Status::Unknown,
        }
    }

    /// The reason of the condition and of the event.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Passed => "CheckPassed",
            Self::Failed => "CheckFailed",
            Self::NotAsked => "CheckNotAsked",
        }
    }

    /// Whether a condition with this reason is about a check.
    pub fn has_reason(text: &str) -> bool {
        [Self::Passed, Self::Failed, Self::NotAsked].iter().any(|it| it.reason() == text)
    }

    /// The label of metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotAsked => "not-asked",
        }
    }
}

/// What is published about a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The name of the check.
    pub name: Box<str>,
    /// `None` until this process has decided: what the object says stays.
    pub status: Option<CheckStatus>,
    /// One sentence.
    pub message: Box<str>,
    /// When the status changed.
    pub since: Timestamp,
    /// When the last run ended; `None` before the first.
    pub probed: Option<Timestamp>,
}

/// A published change of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckChange {
    /// `None` for the first status.
    pub from: Option<CheckStatus>,
    /// The check as it is published now.
    pub report: CheckReport,
    /// Whether the readiness of the cluster may follow.
    pub gates_ready: bool,
}

/// The checks of one cluster. One run is under way at a time.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    states: Vec<CheckState>,
    under_way: bool,
    /// The cluster came as one that is not ready, and was not ready since.
    pub(crate) came_unready: bool,
}

#[derive(Clone, Debug)]
struct CheckState {
    check: Arc<Check>,
    due: Instant,
    status: Option<CheckStatus>,
    /// The status is unknown because the check did not run: it decides nothing.
    lapsed: bool,
    /// The last result, and how many were the same in a row.
    run: Option<(CheckStatus, u32)>,
    message: Box<str>,
    since: Timestamp,
    probed: Option<Moment>,
    /// When it last ran, or began to be a check of this cluster.
    alive: Instant,
    leases: LeaseReads,
}

impl Checks {
    /// No checks yet, of a cluster that came as one that is not ready, or not.
    pub(crate) fn of(came_unready: bool) -> Self {
        Self { came_unready, ..Self::default() }
    }

    /// Takes over the checks of the cluster. Those that stay the same keep their state. First runs are spread over their
    /// interval by the hash of the cluster. Whether one is gone.
    pub fn follow(&mut self, checks: &[Arc<Check>], hash_of_cluster: u64, now: Moment) -> bool {
        let is_gone = |it: &CheckState| !checks.iter().any(|check| check.name == it.check.name);
        let any_gone = self.states.iter().any(is_gone);
        let mut known = std::mem::take(&mut self.states);
        let state = |check: &Arc<Check>| match known.iter().position(|it| it.check == *check) {
            Some(place) => known.swap_remove(place),
            None => {
                let spread = share_of(check.interval, mix(hash_of_cluster ^ hash(&check.name)));
                CheckState::new(Arc::clone(check), now.monotonic + spread, now)
            }
        };
        self.states = checks.iter().map(state).collect();
        any_gone
    }

    /// The check that has been due for longest at `now`. While a cluster `is_unready`, one whose result
    /// decides about that is due at once.
    pub fn due(&self, is_unready: bool, now: Instant) -> Option<Arc<Check>> {
        let due = |it: &CheckState| {
            let waits = is_unready && it.check.gates_ready && it.is_undecided() && it.run.is_none();
            if waits { now } else { it.due }
        };
        let next = self.states.iter().filter(|_| !self.under_way).min_by_key(|it| due(it))?;
        (due(next) <= now).then(|| Arc::clone(&next.check))
    }

    /// A run of this check begins, or waits for its turn.
    pub fn begin(&mut self, name: &str, now: Instant) {
        self.under_way = true;
        if let Some(state) = self.find(name) {
            let interval = state.interval();
            let next = state.due + interval;
            // The results that it decides by come one after the other.
            state.due = if state.is_undecided() || next <= now { now + interval } else { next };
        }
    }

    /// The run under way has ended without a result.
    pub fn drop_run(&mut self) {
        self.under_way = false;
    }

    /// The run of this check has ended at `now`; the change that it makes.
    pub fn complete(
        &mut self,
        check: &Arc<Check>,
        evidence: &CheckEvidence,
        now: Moment,
    ) -> (CheckStatus, Option<CheckChange>) {
        self.under_way = false;
        // Another check may have its name by now.
        let state = self.states.iter_mut().find(|it| it.check == *check);
        state.map_or((CheckStatus::NotAsked, None), |state| state.complete(evidence, now))
    }

    /// Another cluster is checked from now on: nothing is known of it.
    pub(crate) fn restart(&mut self, now: Instant) {
        for state in &mut self.states {
            (state.status, state.run, state.lapsed) = (None, None, false);
            (state.due, state.leases) = (now, LeaseReads::default());
        }
    }

    /// The checks could not run up to `now`, for a reason of this process: that time does not make them unknown.
    pub fn suspend(&mut self, now: Instant) {
        for state in &mut self.states {
            state.alive = now;
        }
    }

    /// Makes checks unknown that have not run for too long, as those of a cluster whose probes fail. Whether there are
    /// any.
    pub fn lapse(&mut self, now: Moment) -> bool {
        let mut any = false;
        for state in &mut self.states {
            let limit =
                state.check.interval * state.check.thresholds.failure.max(1) + state.check.timeout;
            let is_old = now.monotonic.saturating_duration_since(state.alive) > limit;
            if is_old && !self.under_way && state.status.is_some() && !state.lapsed {
                (state.status, state.lapsed, state.run) = (Some(CheckStatus::NotAsked), true, None);
                state.message =
                    "the check runs while the cluster answers its probes with ok".into();
                state.since = now.wall;
                any = true;
            }
        }
        any
    }

    /// Why a cluster whose probe is ok is not ready all the same. One that `is_unready` stays so until the checks that
    /// decide about it have a result: a restart is no recovery (`rule:a-restart-changes-nothing`).
    pub fn gate(&self, is_unready: bool) -> Option<String> {
        let gates = || self.states.iter().filter(|it| it.check.gates_ready);
        let failed = gates().find(|it| it.status == Some(CheckStatus::Failed));
        if let Some(state) = failed {
            return Some(format!("{}: {}", state.check.name, state.message));
        }
        let waits = gates().find(|it| is_unready && it.is_undecided())?;
        Some(format!("{} has no result yet", waits.check.name))
    }

    /// What is published about each check.
    pub fn reports(&self) -> Vec<CheckReport> {
        self.states.iter().map(CheckState::report).collect()
    }

    fn find(&mut self, name: &str) -> Option<&mut CheckState> {
        self.states.iter_mut().find(|it| *it.check.name == *name)
    }
}

impl CheckState {
    fn new(check: Arc<Check>, due: Instant, now: Moment) -> Self {
        Self {
            check,
            due,
            status: None,
            lapsed: false,
            run: None,
            message: Box::default(),
            since: now.wall,
            probed: None,
            alive: now.monotonic,
            leases: LeaseReads::default(),
        }
    }

    fn is_undecided(&self) -> bool {
        self.status.is_none() || self.lapsed
    }

    fn interval(&self) -> Duration {
        let interval = self.check.interval;
        if self.is_undecided() { interval.min(UNDECIDED_EVERY) } else { interval }
    }

    fn complete(
        &mut self,
        evidence: &CheckEvidence,
        now: Moment,
    ) -> (CheckStatus, Option<CheckChange>) {
        let (found, message) = self.judge(evidence, now.monotonic);
        let count = match self.run {
            Some((before, count)) if before == found => count.saturating_add(1),
            _ => 1,
        };
        self.run = Some((found, count));
        (self.probed, self.alive) = (Some(now), now.monotonic);
        let thresholds = self.check.thresholds;
        let enough = match found {
            CheckStatus::Passed => thresholds.success,
            CheckStatus::Failed | CheckStatus::NotAsked => thresholds.failure,
        };
        // What lapsed is decided like what is new.
        let was_undecided = self.is_undecided();
        let is_same = self.status == Some(found) && !was_undecided;
        if !is_same && count < enough {
            return (found, None);
        }
        self.message = one_line(&message).into();
        if is_same {
            return (found, None);
        }
        let from = self.status.filter(|_| !was_undecided);
        if self.status != Some(found) {
            self.since = now.wall;
        }
        (self.status, self.lapsed) = (Some(found), false);
        if was_undecided {
            self.due = now.monotonic + self.check.interval;
        }
        let change =
            CheckChange { from, report: self.report(), gates_ready: self.check.gates_ready };
        (found, Some(change))
    }

    fn judge(&mut self, evidence: &CheckEvidence, now: Instant) -> (CheckStatus, String) {
        let passes = |is: bool| if is { CheckStatus::Passed } else { CheckStatus::Failed };
        match (evidence, &self.check.kind) {
            (CheckEvidence::Nodes { ready, total }, CheckKind::NodesReady { min_ratio }) => {
                // A cluster may have no Nodes; else one at least has to be ready.
                let enough = *total == 0 || *ready > 0 && ratio(*ready, *total) >= *min_ratio;
                (passes(enough), format!("{ready} of {total} Nodes are ready"))
            }
            (
                CheckEvidence::Leases { leases, date },
                CheckKind::NodeLeases { min_fresh, max_age },
            ) => {
                let counts = self.leases.read(leases, *date, *max_age, now);
                let (fresh, total) = (counts.fresh, counts.total);
                if total < 2 {
                    let text =
                        format!("the ages of {total} Leases of Nodes are known, and it takes two");
                    return (CheckStatus::NotAsked, text);
                }
                let text = format!(
                    "{fresh} of {total} Leases of Nodes were renewed in the last {max_age:?}"
                );
                (passes(ratio(fresh, total) >= *min_fresh), text)
            }
            (CheckEvidence::Object { available, about }, _) => {
                (passes(*available), about.to_string())
            }
            (CheckEvidence::Nothing(why), _) => (CheckStatus::NotAsked, why.to_string()),
            (CheckEvidence::Nodes { .. } | CheckEvidence::Leases { .. }, _) => {
                (CheckStatus::NotAsked, "the answer is about other objects".to_owned())
            }
        }
    }

    fn report(&self) -> CheckReport {
        CheckReport {
            name: self.check.name.clone(),
            status: self.status,
            message: self.message.clone(),
            since: self.since,
            probed: self.probed.map(|it| it.wall),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no cluster has 2^52 Nodes")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests;
