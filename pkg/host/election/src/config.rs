//! The timings of leadership, their validation, and everything derived from them.
//!
//! Filled by `cmd` from the `--leader-elect-*` flags; read by [`crate::elector`] and
//! [`crate::term`]. One place derives the fence and the watchdog, so that their order can be read
//! off and tested: renew deadline < watchdog < lease, fence + travel ≤ lease.

use std::time::Duration;

use client::TRAVEL;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How often the watchdog looks at the clock: seldom enough to cost nothing.
pub(crate) const WATCHDOG_POLL: Duration = Duration::from_millis(200);

/// Time that the ordinary loss path has before the watchdog ends the process: one second for
/// writes in flight and half a second to log and exit.
const WATCHDOG_GRACE: Duration = Duration::from_millis(1500);

/// Writes stop this long before others may take the lease.
const FENCE_MARGIN: Duration = Duration::from_secs(2);

/// A leader's health check fails when the lease ran out this long ago.
const HEALTH_TOLERANCE: Duration = Duration::from_secs(20);

/// client-go's jitter factor, in tenths: what its validation multiplies the retry period with.
const JITTER_TENTHS: u128 = 12;

/// A standby looks this often in a retry period, and up to a tenth later so that candidates that
/// were started together drift apart.
const STANDBY_SHARE: f64 = 0.5;
const STANDBY_JITTER: f64 = 0.1;

const DURATION: &str = "leader-elect-lease-duration";
const DEADLINE: &str = "leader-elect-renew-deadline";
const RETRY: &str = "leader-elect-retry-period";
const NAME: &str = "leader-elect-resource-name";
const NAMESPACE: &str = "leader-elect-resource-namespace";

/// Why an election cannot work with its configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{flag}: {rule}")]
pub struct ConfigProblem {
    /// The flag to change, without its dashes.
    pub flag: &'static str,
    /// The rule that its value breaks.
    pub rule: String,
}

impl ConfigProblem {
    fn new(flag: &'static str, rule: impl Into<String>) -> Self {
        Self { flag, rule: rule.into() }
    }
}

/// The Lease to campaign for, the identity of the candidate, and the timings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease; also the `name` label of the metrics.
    pub name: String,
    /// Name of this candidate, new for every process: host name, `_`, random UUID.
    pub identity: String,
    /// How long others wait after the last renewal they saw before they take over.
    pub lease_duration: Duration,
    /// How long after the start of its last renewal a leader gives up.
    pub renew_deadline: Duration,
    /// Pause between two attempts.
    pub retry_period: Duration,
}

impl ElectionConfig {
    /// Every reason why this cannot work; empty when all is well.
    /// The one place of these rules: flags are judged by it, and [`crate::spawn`] refuses by it.
    pub fn validate(&self) -> Vec<ConfigProblem> {
        let unnamed = [(NAME, &self.name), (NAMESPACE, &self.namespace)]
            .into_iter()
            .filter(|(_, value)| value.is_empty())
            .map(|(flag, _)| ConfigProblem::new(flag, "must not be empty"));
        self.judge_timings().into_iter().chain(unnamed).collect()
    }

    fn judge_timings(&self) -> Vec<ConfigProblem> {
        let (lease, deadline, retry) =
            (self.lease_duration, self.renew_deadline, self.retry_period);
        let zero: Vec<_> = [(DURATION, lease), (DEADLINE, deadline), (RETRY, retry)]
            .into_iter()
            .filter(|(_, value)| value.is_zero())
            .map(|(flag, _)| ConfigProblem::new(flag, "must be greater than zero"))
            .collect();
        if !zero.is_empty() {
            // Comparing with them would only repeat it.
            return zero;
        }
        let mut problems = Vec::new();
        if lease < Duration::from_secs(1) {
            problems.push(ConfigProblem::new(DURATION, format!("{lease:?} is less than 1s")));
        }
        if lease <= deadline {
            let rule = format!(
                "{lease:?} is not greater than --{DEADLINE} ({deadline:?}): a second leader would \
                 start before the first has given up"
            );
            problems.push(ConfigProblem::new(DURATION, rule));
        }
        if deadline.as_nanos() * 10 <= retry.as_nanos() * JITTER_TENTHS {
            let rule = format!(
                "{deadline:?} is not greater than 1.2 times --{RETRY} ({retry:?}): \
                 there would be no time for a second try"
            );
            problems.push(ConfigProblem::new(DEADLINE, rule));
        }
        problems
    }

    /// `<namespace>/<name>`, for logs and messages.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// `leaseDurationSeconds` as written: rounded up, so that no candidate takes over
    /// before `lease_duration`, on which the fence and the watchdog rely.
    pub(crate) fn lease_seconds(&self) -> i32 {
        let whole = self.lease_duration.as_secs();
        let partial = u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(whole + partial).unwrap_or(i32::MAX)
    }

    /// Bound of one request: two tries fit in a renew deadline.
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// How long after the start of a renewal writes may leave the process
    /// (rule:lease-rights-end-before-the-lease).
    ///
    /// A lease of 4 s with a deadline of 3 s, less the margin, would fence a leader that is still
    /// within its rights, so the fence closes at the deadline then. Whatever the deadline is, the
    /// last write has its travel before `lease_duration`, the earliest moment of a second leader.
    pub(crate) fn fence_term(&self) -> Duration {
        let travel = TRAVEL.min(self.lease_duration / 4);
        self.lease_duration
            .saturating_sub(FENCE_MARGIN)
            .max(self.renew_deadline)
            .min(self.lease_duration.saturating_sub(travel))
    }

    /// How long after the start of a renewal the watchdog ends the process.
    ///
    /// Later than the renew deadline, so that the ordinary path (report, wait for writes in
    /// flight, exit) comes first; early enough to be gone when the lease runs out, one poll
    /// of the watchdog included.
    pub(crate) fn watchdog_term(&self) -> Duration {
        (self.renew_deadline + WATCHDOG_GRACE)
            .min(self.lease_duration.saturating_sub(WATCHDOG_POLL))
            .max(self.renew_deadline)
    }

    /// Age of the last renewal at which a leader calls itself unhealthy.
    pub(crate) fn health_limit(&self) -> Duration {
        self.lease_duration + HEALTH_TOLERANCE
    }

    /// Pause of a standby before it looks at the lease again; `draw` is uniform in `[0, 1)`.
    pub(crate) fn jittered_pause(&self, draw: f64) -> Duration {
        self.retry_period.mul_f64(STANDBY_SHARE * (1.0 + STANDBY_JITTER * draw))
    }

    /// The Lease as it is created: a name and nothing else.
    pub(crate) fn new_lease(&self) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: None }
    }
}

#[cfg(test)]
mod tests;
