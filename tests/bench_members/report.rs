//! The measured values, and the targets that they miss.

use std::time::Duration;

use serde_json::json;

/// The period, a tenth of it for jitter, and a second.
const HEALTHY_WAIT: Duration = Duration::from_secs(12);
/// A period, two confirmations and a timeout, all with jitter, and two seconds for writes.
const OUTAGE_LIMIT: Duration = Duration::from_secs(38);
/// For the start and for a timeout, after what [`spread`] says of first probes.
const FIRST_ROUND: Duration = Duration::from_secs(4);
const CORES: f64 = 1.0;
const KIB_PER_MEMBER: u64 = 32;
/// After the first probe of the last member, which for a silent one ends with its timeout.
const FIRST_RESULTS: Duration = Duration::from_secs(10);
/// From the probe that finds a recovery to its status.
const RECOVERY_AFTER_PROBE: Duration = Duration::from_secs(5);
/// Between two writes of a status in which nothing changes.
const HEARTBEAT: Duration = Duration::from_secs(300);

/// What was measured.
pub(crate) struct Report {
    pub(crate) members: u32,
    pub(crate) silent: u32,
    /// Members that fall silent half-way.
    pub(crate) affected: u32,
    pub(crate) healthy_wait_max: Duration,
    pub(crate) healthy_wait_p99: Duration,
    pub(crate) silent_wait_max: Duration,
    pub(crate) first_round: Duration,
    /// From the start to the status of the last member.
    pub(crate) first_results: Duration,
    pub(crate) late_probes: f64,
    pub(crate) transitions: f64,
    pub(crate) outage_max: Option<Duration>,
    pub(crate) recovery_max: Option<Duration>,
    pub(crate) recovery_after_probe_max: Option<Duration>,
    pub(crate) cores: f64,
    pub(crate) rss_bytes: u64,
    pub(crate) rss_idle_bytes: u64,
    /// Of a process that knows all members and has no connection to any.
    pub(crate) rss_unconnected_bytes: u64,
    pub(crate) writes: f64,
    /// Duration of one scrape of all metrics, with its parsing.
    pub(crate) scrape: Duration,
    pub(crate) handshakes: u64,
    pub(crate) length: Duration,
    /// Of each member.
    pub(crate) checks: u32,
    pub(crate) check_runs: f64,
    pub(crate) check_runs_unpassed: f64,
    pub(crate) check_runs_dropped: f64,
    /// Requests that members got for them.
    pub(crate) check_requests: u64,
}

impl Report {
    fn bytes_per_member(&self) -> u64 {
        self.rss_bytes.saturating_sub(self.rss_idle_bytes) / u64::from(self.members)
    }

    /// What the object, the state and the client of a member cost without a connection.
    fn unconnected_bytes_per_member(&self) -> u64 {
        self.rss_unconnected_bytes.saturating_sub(self.rss_idle_bytes) / u64::from(self.members)
    }

    /// What a connection costs.
    fn bytes_per_connection(&self) -> u64 {
        let connected = self.members.saturating_sub(self.silent).max(1);
        self.rss_bytes.saturating_sub(self.rss_unconnected_bytes) / u64::from(connected)
    }

    /// Maximum of status writes: one for each transition, and one for each member and heartbeat.
    fn writes_allowed(&self) -> f64 {
        let heartbeats = (self.length.as_secs_f64() / HEARTBEAT.as_secs_f64()).ceil();
        self.transitions + heartbeats * f64::from(self.members)
    }

    pub(crate) fn json(&self) -> String {
        let seconds = |time: Duration| (time.as_secs_f64() * 1000.0).round() / 1000.0;
        json!({
            "members": self.members,
            "silent": self.silent,
            "length_seconds": seconds(self.length),
            "first_round_seconds": seconds(self.first_round),
            "first_results_seconds": seconds(self.first_results),
            "late_probes": self.late_probes,
            "healthy_wait_max_seconds": seconds(self.healthy_wait_max),
            "healthy_wait_p99_seconds": seconds(self.healthy_wait_p99),
            "silent_wait_max_seconds": seconds(self.silent_wait_max),
            "outage_published_after_max_seconds": self.outage_max.map(seconds),
            "recovery_published_after_max_seconds": self.recovery_max.map(seconds),
            "recovery_after_probe_max_seconds": self.recovery_after_probe_max.map(seconds),
            "cpu_cores": (self.cores * 1000.0).round() / 1000.0,
            "peak_rss_mib": self.rss_bytes / (1024 * 1024),
            "rss_per_member_bytes": self.bytes_per_member(),
            "rss_per_member_without_connection_bytes": self.unconnected_bytes_per_member(),
            "rss_per_connection_bytes": self.bytes_per_connection(),
            "status_writes": self.writes,
            "scrape_seconds": seconds(self.scrape),
            "transitions": self.transitions,
            "tls_handshakes": self.handshakes,
            "checks": self.checks,
            "check_runs": self.check_runs,
            "check_runs_not_passed": self.check_runs_unpassed,
            "check_runs_dropped": self.check_runs_dropped,
            "check_requests": self.check_requests,
        })
        .to_string()
    }

    /// Runs of checks that are expected of the members that answer, with room for those with an outage.
    fn check_runs_wanted(&self) -> f64 {
        let members = f64::from(self.members.saturating_sub(self.silent));
        0.9 * f64::from(self.checks) * members * (self.length.as_secs_f64() / 60.0).floor()
    }

    /// The targets that were missed, as text.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.healthy_wait_max > HEALTHY_WAIT {
            faults.push(format!("a healthy member waited {:?}", self.healthy_wait_max));
        }
        if self.silent_wait_max > HEALTHY_WAIT {
            faults.push(format!("a silent member waited {:?}", self.silent_wait_max));
        }
        if self.first_round > spread(self.members) + FIRST_ROUND {
            faults.push(format!("a member was first probed after {:?}", self.first_round));
        }
        if self.first_results > spread(self.members) + FIRST_RESULTS {
            faults.push(format!("a first result was published after {:?}", self.first_results));
        }
        if self.late_probes > 0.0 {
            faults.push(format!("{} probes were more than a second late", self.late_probes));
        }
        if self.cores > CORES {
            faults.push(format!("{:.2} cores were used", self.cores));
        }
        if self.bytes_per_member() > KIB_PER_MEMBER * 1024 {
            faults.push(format!("{} bytes of memory for a member", self.bytes_per_member()));
        }
        if self.writes > self.writes_allowed() {
            let allowed = self.writes_allowed();
            faults.push(format!("{} status writes instead of {allowed}", self.writes));
        }
        if self.outage_max.is_none_or(|time| time > OUTAGE_LIMIT) {
            faults.push(format!("an outage was published after {:?}", self.outage_max));
        }
        if self.recovery_max.is_none_or(|time| time > HEALTHY_WAIT + Duration::from_secs(5)) {
            faults.push(format!("a recovery was published after {:?}", self.recovery_max));
        }
        if self.recovery_after_probe_max.is_some_and(|time| time > RECOVERY_AFTER_PROBE) {
            let after = self.recovery_after_probe_max;
            faults.push(format!("a recovery was published {after:?} after its probe"));
        }
        if self.check_runs < self.check_runs_wanted() {
            let (runs, wanted) = (self.check_runs, self.check_runs_wanted());
            faults.push(format!("{runs} runs of checks instead of {wanted}"));
        }
        // One run of each member that falls silent may be under way then.
        if self.check_runs_unpassed > f64::from(self.affected) || self.check_runs_dropped > 0.0 {
            let (unpassed, dropped) = (self.check_runs_unpassed, self.check_runs_dropped);
            faults.push(format!("{unpassed} runs of checks did not pass, {dropped} were dropped"));
        }
        faults
    }
}

/// How long first probes are spread: over a period, or as long as it takes until each member's
/// Secret was read by a client that may send 500 requests a second after the first 1,000.
fn spread(members: u32) -> Duration {
    let reads = Duration::from_millis(2) * members.saturating_sub(1000);
    reads.max(Duration::from_secs(10))
}
