//! Which controllers `--controllers` turns on (rule:controllers-by-name).
//!
//! The command registers what it hosts in [`Known`]; [`Known::select`] applies the user's list.
//! Names of kube-controller-manager's own controllers are known too, so that a list written for it
//! is accepted.

mod known;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

pub use known::{Controller, Known, RegistryError};
pub use upstream::is_upstream;

/// The hosted controllers that run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    enabled: BTreeSet<&'static str>,
    named: BTreeSet<&'static str>,
}

impl Selection {
    /// Whether a controller, by canonical name, runs; unknown ones do not.
    pub fn is_enabled(&self, name: &str) -> bool {
        self.enabled.contains(name)
    }

    /// Whether a controller runs because its own name or an alias turned it on, not through `*`.
    pub fn is_named(&self, name: &str) -> bool {
        self.named.contains(name)
    }
}

/// Names in `--controllers` that cannot be obeyed; all of them at once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.sentence())]
pub struct BadNames {
    /// Names that neither this program nor kube-controller-manager knows, as written.
    pub unknown: Vec<String>,
    /// What could have been meant.
    pub hosted: Vec<&'static str>,
}

impl BadNames {
    fn sentence(&self) -> String {
        let (unknown, hosted) = (quoted(&self.unknown), self.hosted.join(", "));
        format!("no controller is named {unknown}; this program hosts: {hosted}")
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

impl Known {
    /// Applies a `--controllers` list. For each controller the first entry that names it decides;
    /// unnamed ones run if `*` stands anywhere and they are on by default.
    ///
    /// # Errors
    /// All names that are unknown, negated or not.
    pub fn select(&self, list: &[String]) -> Result<Selection, BadNames> {
        let mut bad = BadNames { unknown: vec![], hosted: self.names() };
        let mut named = BTreeMap::new();
        let star = list.iter().any(|entry| entry == "*");
        for entry in list.iter().filter(|entry| *entry != "*") {
            let (name, on) = match entry.strip_prefix('-') {
                Some(name) => (name, false),
                None => (entry.as_str(), true),
            };
            if let Some(controller) = self.resolve(name) {
                named.entry(controller).or_insert(on);
            } else if !is_upstream(name) {
                bad.unknown.push(name.to_owned());
            }
        }
        if !bad.unknown.is_empty() {
            return Err(bad);
        }
        let runs = |controller: &&Controller| {
            let default = star && controller.on_by_default;
            named.get(controller.name).copied().unwrap_or(default)
        };
        let enabled = self.controllers().iter().filter(runs).map(|controller| controller.name);
        let enabled = enabled.collect();
        let named = named.into_iter().filter_map(|(name, on)| on.then_some(name)).collect();
        Ok(Selection { enabled, named })
    }
}

/// The entries of a list that turn on a controller which only kube-controller-manager hosts; for
/// the start-up warning.
pub fn not_hosted(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).filter(|entry| is_upstream(entry)).collect()
}

#[cfg(test)]
mod tests;
