//! One check: its question, what it answered so far, and when it was last logged.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

use super::{Endpoint, Endpoints};

/// A failing check is probed every few seconds by several probers: one line per this time says it.
const LOG_EVERY: Duration = Duration::from_secs(10);

type Question = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

pub(super) struct Check {
    name: String,
    endpoints: Endpoints,
    question: Question,
    /// When the failure was last logged; none while the check passes.
    logged: Mutex<Option<Instant>>,
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
    pub(super) fn new(name: String, endpoints: Endpoints, question: Question) -> Self {
        Self { name, endpoints, question, logged: Mutex::new(None), tallies: Default::default() }
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
        let answer = catch_unwind(AssertUnwindSafe(|| (self.question)()))
            .unwrap_or_else(|_| Err("the check panicked".to_owned()));
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
        let mut logged = self.logged.lock();
        match answer {
            Ok(()) => {
                if logged.take().is_some() {
                    info!(logger = "serving", check = %self.name, "Health check passes again");
                }
            }
            Err(reason) => {
                let now = Instant::now();
                if logged.is_none_or(|last| now.duration_since(last) >= LOG_EVERY) {
                    *logged = Some(now);
                    let endpoint = endpoint.name();
                    warn!(logger = "serving", check = %self.name, endpoint, reason, "Health check failed");
                }
            }
        }
    }
}
