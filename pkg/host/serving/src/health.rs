//! The registry of health checks.
//!
//! Checks are added when what they watch starts; requests see the set of that moment. `ping` is
//! always there. A check runs on the server's runtime for every request that asks: it must read
//! state, never wait. A check that panics counts as failed.
//!
//! `healthz`, `livez` and `readyz` differ in their checks only (rule:liveness-needs-no-api-server).

mod check;
mod endpoint;
mod report;
mod slis;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;

use check::Check;
pub(crate) use endpoint::Endpoint;
pub use endpoint::Endpoints;
pub(crate) use report::Report;

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
    /// check show it, `/livez` and the like do not (rule:reasons-are-withheld).
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
        slis::page(&self.checks.read())
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

#[cfg(test)]
mod tests;
