//! The registry of health checks, and the reports that `/healthz`, `/livez` and `/readyz` give of them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use resilience::LogGate;
use tokio::time::Instant;
use tracing::{info, warn};

/// The set of checks. Clones share it.
#[derive(Clone)]
pub struct Health {
    checks: Arc<RwLock<Vec<Arc<Check>>>>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// A registry that holds `ping` only.
    pub fn new() -> Self {
        let health = Self { checks: Arc::default() };
        health.add("ping", Endpoints::ALL, || Ok(()));
        health
    }

    /// Adds a check, or replaces the one of the same name in its place. Answers list checks in the
    /// order of addition. `probe` returns the reason when it fails: the log and the path of the
    /// check show it, `/livez` and the like do not.
    pub fn add(
        &self,
        name: impl Into<String>,
        endpoints: Endpoints,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let added = Arc::new(Check::new(name.into(), endpoints, Box::new(probe)));
        let mut checks = self.checks.write();
        match checks.iter_mut().find(|known| known.name() == added.name()) {
            Some(known) => *known = added,
            None => checks.push(added),
        }
    }

    /// Runs every check of `endpoint` but the excluded ones.
    pub(crate) fn report(&self, endpoint: Endpoint, excluded: BTreeSet<String>) -> Report {
        Report::of(endpoint, &self.members(endpoint), excluded)
    }

    /// Runs one check of `endpoint`; `None` when it has no such check.
    pub(crate) fn run_one(&self, endpoint: Endpoint, name: &str) -> Option<Result<(), String>> {
        let check = self.members(endpoint).into_iter().find(|check| check.name() == name)?;
        Some(check.run(endpoint))
    }

    /// The page `/metrics/slis`, without the process part.
    pub(crate) fn slis(&self) -> String {
        slis_page(&self.checks.read())
    }

    /// Forgets every count of `/metrics/slis`.
    pub(crate) fn reset_slis(&self) {
        self.checks.read().iter().for_each(|check| check.reset());
    }

    /// A copy, so that no check runs under the lock: a check may take its owner's locks, and the
    /// owner may be adding a check.
    fn members(&self, endpoint: Endpoint) -> Vec<Arc<Check>> {
        let checks = self.checks.read();
        checks.iter().filter(|check| check.endpoints().include(endpoint)).cloned().collect()
    }
}

/// The three sets a check can belong to. The names are those of Kubernetes' paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Fails `/livez`: the kubelet restarts the container.
    pub livez: bool,
    /// Fails `/readyz`.
    pub readyz: bool,
    /// Fails `/healthz`.
    pub healthz: bool,
}

impl Endpoints {
    /// Part of all three.
    pub const ALL: Self = Self { livez: true, readyz: true, healthz: true };
    /// Part of `/readyz` only.
    pub const READY: Self = Self { livez: false, readyz: true, healthz: false };

    pub(crate) fn include(self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Healthz => self.healthz,
            Endpoint::Livez => self.livez,
            Endpoint::Readyz => self.readyz,
        }
    }
}

/// A health path: `/healthz`, `/livez` or `/readyz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

impl Endpoint {
    pub(crate) const EVERY: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// The path without its slash, which is also the word that ends the body.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// A failing check is probed every few seconds by several probers: one line per this time says it.
const LOG_EVERY: Duration = Duration::from_secs(10);

type Probe = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

pub(crate) struct Check {
    name: String,
    endpoints: Endpoints,
    probe: Probe,
    /// Reset while the check passes.
    failure_log: LogGate,
    tallies: [Tally; 3],
}

/// Counts of the answers of a check on one endpoint, for `/metrics/slis`.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) success: AtomicU64,
    pub(crate) error: AtomicU64,
    /// 1 after a pass, 0 after a failure.
    pub(crate) last: AtomicU64,
}

impl Check {
    pub(crate) fn new(name: String, endpoints: Endpoints, probe: Probe) -> Self {
        let failure_log = LogGate::new(LOG_EVERY);
        Self { name, endpoints, probe, failure_log, tallies: Default::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    pub(crate) fn tally(&self, endpoint: Endpoint) -> &Tally {
        &self.tallies[endpoint as usize]
    }

    /// Asks, counts the answer, and logs a failure with its reason.
    pub(crate) fn run(&self, endpoint: Endpoint) -> Result<(), String> {
        let answer = resilience::panics::contain_call(|| (self.probe)())
            .unwrap_or_else(|panic| Err(format!("the check panicked: {panic}")));
        let tally = self.tally(endpoint);
        let (count, last) = if answer.is_ok() { (&tally.success, 1) } else { (&tally.error, 0) };
        count.fetch_add(1, Ordering::Relaxed);
        tally.last.store(last, Ordering::Relaxed);
        self.log(endpoint, &answer);
        answer
    }

    pub(crate) fn reset(&self) {
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

/// The answers of the checks of an endpoint.
pub(crate) struct Report {
    endpoint: Endpoint,
    lines: String,
    failed: bool,
}

impl Report {
    pub(crate) fn of(
        endpoint: Endpoint,
        checks: &[Arc<Check>],
        mut excluded: BTreeSet<String>,
    ) -> Self {
        let mut report = Self { endpoint, lines: String::new(), failed: false };
        for check in checks {
            let name = check.name();
            if excluded.remove(name) {
                report.line(format_args!("[+]{name} excluded: ok"));
            } else if check.run(endpoint).is_ok() {
                report.line(format_args!("[+]{name} ok"));
            } else {
                report.line(format_args!("[-]{name} failed: reason withheld"));
                report.failed = true;
            }
        }
        if !excluded.is_empty() {
            let names: Vec<_> = excluded.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            report.line(format_args!(
                "warn: some health checks cannot be excluded: no matches for {names}"
            ));
        }
        report
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// A failure always shows every line, a pass only when asked to be `verbose`.
    pub(crate) fn body(self, verbose: bool) -> String {
        let Self { endpoint, lines, failed } = self;
        let name = endpoint.name();
        match (failed, verbose) {
            (true, _) => format!("{lines}{name} check failed\n"),
            (false, true) => format!("{lines}{name} check passed\n"),
            (false, false) => "ok".to_owned(),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        writeln!(self.lines, "{line}").ok();
    }
}

/// Renders Prometheus text. Checks that were never asked have no series.
fn slis_page(checks: &[Arc<Check>]) -> String {
    let (mut state, mut totals) = (String::new(), String::new());
    for check in checks {
        for endpoint in Endpoint::EVERY {
            rows(check, endpoint, &mut state, &mut totals);
        }
    }
    format!(
        "# HELP kubernetes_healthcheck [STABLE] Last answer of a health check: 1 passed, 0 failed.\n\
         # TYPE kubernetes_healthcheck gauge\n{state}\
         # HELP kubernetes_healthchecks_total [STABLE] Answers of a health check by status.\n\
         # TYPE kubernetes_healthchecks_total counter\n{totals}"
    )
}

fn rows(check: &Check, endpoint: Endpoint, state: &mut String, totals: &mut String) {
    let tally = check.tally(endpoint);
    let success = tally.success.load(Ordering::Relaxed);
    let error = tally.error.load(Ordering::Relaxed);
    if success + error == 0 {
        return;
    }
    let labels = format!("name=\"{}\",type=\"{}\"", escaped(check.name()), endpoint.name());
    let last = tally.last.load(Ordering::Relaxed);
    writeln!(state, "kubernetes_healthcheck{{{labels}}} {last}").ok();
    for (status, count) in [("success", success), ("error", error)] {
        if count > 0 {
            writeln!(
                totals,
                "kubernetes_healthchecks_total{{{labels},status=\"{status}\"}} {count}"
            )
            .ok();
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
