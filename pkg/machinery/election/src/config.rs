//! The timings of leadership, their validation, and everything derived from them.
//!
//! Filled by `cmd` from the `--leader-elect-*` flags; read by [`crate::elector`] and [`crate::term`].
//! One place derives the fence and the watchdog, so that their order can be read off
//! and tested: renew deadline < watchdog ≤ lease, renew deadline ≤ fence < lease.

use std::time::Duration;

/// How often the watchdog looks at the clock (`host.md 3.4.3`: at most 200 ms).
pub(crate) const WATCHDOG_POLL: Duration = Duration::from_millis(100);

/// What the ordinary loss path gets before the watchdog ends the process: one second for
/// writes in flight (`host.md 3.3`) and half a second to log and exit.
const WATCHDOG_GRACE: Duration = Duration::from_millis(1500);

/// Writes stop this long before others may take the lease (`host.md 3.4.4`).
const FENCE_MARGIN: Duration = Duration::from_secs(2);

/// A leader's health check fails when the lease ran out this long ago (`host.md 3.2`, Health).
const HEALTH_TOLERANCE: Duration = Duration::from_secs(20);

/// client-go's jitter factor: pauses are drawn from `retry_period × [1, 1 + factor)`.
const JITTER_FACTOR: f64 = 1.2;
/// The same, for exact comparisons.
const JITTER_TENTHS: u128 = 12;

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

/// Which Lease to campaign for, under which name, and how patiently (`host.md 3.2`).
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
    /// Every reason why this cannot work; empty when all is well (`host.md 3.2`, Validation).
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
                "{deadline:?} is not greater than {JITTER_FACTOR} times --{RETRY} ({retry:?}): \
                 there would be no time for a second try"
            );
            problems.push(ConfigProblem::new(DEADLINE, rule));
        }
        problems
    }

    /// `<namespace>/<name>`, for logs and messages.
    pub(crate) fn lease_key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// `leaseDurationSeconds` as written: rounded up, so that nobody takes over
    /// before `lease_duration`, on which the fence and the watchdog rely.
    pub(crate) fn lease_seconds(&self) -> i32 {
        let whole = self.lease_duration.as_secs();
        let partial = u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(whole + partial).unwrap_or(i32::MAX)
    }

    /// Bound of one request: at most two tries fit in a renew deadline (`host.md 3.2`).
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// How long after the start of a renewal writes may leave the process.
    ///
    /// `host.md 3.4.4` says lease − 2 s. A lease of 4 s with a deadline of 3 s would then fence
    /// a leader that is still within its rights, so the fence never closes before the deadline;
    /// either way it closes before `lease_duration`, the earliest moment of a second leader.
    pub(crate) fn fence_term(&self) -> Duration {
        self.lease_duration.saturating_sub(FENCE_MARGIN).max(self.renew_deadline)
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

    /// Pause before the next attempt to acquire; `draw` is uniform in `[0, 1)`.
    ///
    /// Spread over `retry_period × [1, 2.2)`, so that candidates started together drift apart.
    pub(crate) fn acquire_pause(&self, draw: f64) -> Duration {
        self.retry_period.mul_f64(1.0 + JITTER_FACTOR * draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timings(lease_ms: u64, renew_ms: u64, retry_ms: u64) -> ElectionConfig {
        ElectionConfig {
            namespace: "kube-system".into(),
            name: "infra-controller-manager".into(),
            identity: "a".into(),
            lease_duration: Duration::from_millis(lease_ms),
            renew_deadline: Duration::from_millis(renew_ms),
            retry_period: Duration::from_millis(retry_ms),
        }
    }

    #[test]
    fn timings_that_cannot_work_are_refused_naming_the_flags() {
        let rows: [(&str, ElectionConfig, &[&str]); 8] = [
            ("stock defaults", timings(15_000, 10_000, 2_000), &[]),
            ("the short lease of the tests", timings(4_000, 3_000, 500), &[]),
            (
                "lease equal to deadline",
                timings(10_000, 10_000, 2_000),
                &["--leader-elect-lease-duration: 10s is not greater than \
                   --leader-elect-renew-deadline (10s)"],
            ),
            (
                "deadline exactly 1.2 retries",
                timings(15_000, 2_400, 2_000),
                &["--leader-elect-renew-deadline: 2.4s is not greater than 1.2 times \
                   --leader-elect-retry-period (2s)"],
            ),
            ("deadline just above 1.2 retries", timings(15_000, 2_401, 2_000), &[]),
            (
                "lease below a second",
                timings(900, 500, 100),
                &["--leader-elect-lease-duration: 900ms is less than 1s"],
            ),
            (
                "zeros, compared with nothing",
                timings(0, 10_000, 0),
                &[
                    "--leader-elect-lease-duration: must be greater than zero",
                    "--leader-elect-retry-period: must be greater than zero",
                ],
            ),
            (
                "everything wrong is reported together",
                timings(900, 1_000, 1_000),
                &[
                    "900ms is less than 1s",
                    "900ms is not greater than",
                    "1s is not greater than 1.2",
                ],
            ),
        ];
        for (case, config, wanted) in rows {
            let got: Vec<_> = config.validate().iter().map(ToString::to_string).collect();
            assert_eq!(got.len(), wanted.len(), "{case}: {got:?}");
            for (got, wanted) in got.iter().zip(wanted) {
                assert!(got.contains(wanted), "{case}: {got:?} lacks {wanted:?}");
            }
        }
    }

    #[test]
    fn an_unnamed_lease_is_refused() {
        let config = ElectionConfig { name: String::new(), ..timings(15_000, 10_000, 2_000) };
        let problem = ConfigProblem::new(NAME, "must not be empty");
        assert_eq!(config.validate(), [problem]);
    }

    #[test]
    fn the_terms_keep_their_order_for_every_valid_timing() {
        let mut seen = 0;
        for lease in (1_000..20_000).step_by(250) {
            for renew in (250..20_000).step_by(250) {
                let config = timings(lease, renew, 200);
                if !config.validate().is_empty() {
                    continue;
                }
                seen += 1;
                let (fence, dog) = (config.fence_term(), config.watchdog_term());
                assert!(fence >= config.renew_deadline && fence < config.lease_duration);
                assert!(dog > config.renew_deadline && dog < config.lease_duration);
                assert!(dog + WATCHDOG_POLL <= config.lease_duration);
                assert!(
                    Duration::from_secs(config.lease_seconds().unsigned_abs().into())
                        >= config.lease_duration
                );
            }
        }
        assert!(seen > 1_000, "the sweep tested {seen} timings only");
    }

    #[test]
    fn stock_and_short_timings_give_the_terms_of_the_specification() {
        let stock = timings(15_000, 10_000, 2_000);
        assert_eq!(stock.fence_term(), Duration::from_secs(13));
        assert_eq!(stock.watchdog_term(), Duration::from_millis(11_500));
        assert_eq!(stock.request_timeout(), Duration::from_secs(5));
        assert_eq!(stock.lease_seconds(), 15);
        assert_eq!(stock.health_limit(), Duration::from_secs(35));
        let short = timings(4_000, 3_000, 500);
        assert_eq!(short.fence_term(), Duration::from_secs(3));
        assert_eq!(short.watchdog_term(), Duration::from_millis(3_900));
        assert_eq!(short.request_timeout(), Duration::from_millis(1_500));
        assert_eq!(timings(1_200, 1_000, 100).request_timeout(), Duration::from_secs(1));
        assert_eq!(timings(1_200, 1_000, 100).lease_seconds(), 2);
    }

    #[test]
    fn the_acquire_pause_covers_one_to_two_point_two_retry_periods() {
        let config = timings(15_000, 10_000, 2_000);
        assert_eq!(config.acquire_pause(0.0), Duration::from_secs(2));
        assert!(config.acquire_pause(0.999_999) < Duration::from_millis(4_400));
        assert!(config.acquire_pause(0.999_999) > Duration::from_millis(4_399));
    }
}
