//! One check: its probe, what it answered so far, and when its failure was last logged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use resilience::LogGate;
use tokio::time::Instant;
use tracing::{info, warn};

use super::endpoint::{Endpoint, Endpoints};

/// A failing check is probed every few seconds by several probers: one line per this time says it.
const LOG_EVERY: Duration = Duration::from_secs(10);

type Probe = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

pub(super) struct Check {
    name: String,
    endpoints: Endpoints,
    probe: Probe,
    /// Reset while the check passes.
    failure_log: LogGate,
    tallies: [Tally; 3],
}

/// What a check answered on one endpoint, for `/metrics/slis`.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) success: AtomicU64,
    pub(super) error: AtomicU64,
    /// 1 after a pass, 0 after a failure.
    pub(super) last: AtomicU64,
}

impl Check {
    pub(super) fn new(name: String, endpoints: Endpoints, probe: Probe) -> Self {
        let failure_log = LogGate::new(LOG_EVERY);
        Self { name, endpoints, probe, failure_log, tallies: Default::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    pub(super) fn tally(&self, endpoint: Endpoint) -> &Tally {
        &self.tallies[endpoint as usize]
    }

    /// Asks, counts the answer, and logs a failure with its reason.
    pub(super) fn run(&self, endpoint: Endpoint) -> Result<(), String> {
        let answer = resilience::panics::contain_call(|| (self.probe)())
            .unwrap_or_else(|panic| Err(format!("the check panicked: {panic}")));
        let tally = self.tally(endpoint);
        let (count, last) = if answer.is_ok() { (&tally.success, 1) } else { (&tally.error, 0) };
        count.fetch_add(1, Ordering::Relaxed);
        tally.last.store(last, Ordering::Relaxed);
        self.log(endpoint, &answer);
        answer
    }

    pub(super) fn reset(&self) {
        for tally in &self.tallies {
            tally.success.store(0, Ordering::Relaxed);
            tally.error.store(0, Ordering::Relaxed);
        }
    }

    fn log(&self, endpoint: Endpoint, answer: &Result<(), String>) {
        let check = &self.name;
        match answer {
            Ok(()) if self.failure_log.reset() => {
                info!(logger = "serving", check, "Health check passes again");
            }
            Err(reason) if self.failure_log.pass(Instant::now()).is_some() => {
                let endpoint = endpoint.name();
                warn!(logger = "serving", check, endpoint, reason, "Health check failed");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
