//! Which controllers `--controllers` turns on (`host.md` 2).
//!
//! The command registers what it hosts in [`Known`]; [`Known::select`] applies the user's list.
//! Names of kube-controller-manager's own controllers are known too, so that a list written for it
//! is accepted.

mod known;
mod upstream;

use std::collections::BTreeMap;

use thiserror::Error;

pub use known::{Controller, Group, Known, RegistryError};
pub use upstream::is_upstream;

/// How a controller came to its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Turned off by name, or not covered by the list.
    Off,
    /// Turned on by `*`.
    OnByStar,
    /// Turned on by its own name, an alias or its group; some controllers go further when asked
    /// for explicitly.
    OnByName,
}

/// The outcome for every hosted controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    states: BTreeMap<&'static str, State>,
}

impl Selection {
    /// The state of a controller by canonical name; unknown ones are off.
    pub fn state(&self, name: &str) -> State {
        self.states.get(name).copied().unwrap_or(State::Off)
    }

    /// Whether a controller runs.
    pub fn is_enabled(&self, name: &str) -> bool {
        self.state(name) != State::Off
    }

    /// Canonical names of the controllers that run, sorted.
    pub fn enabled(&self) -> impl Iterator<Item = &'static str> {
        self.states.iter().filter(|(_, state)| **state != State::Off).map(|(name, _)| *name)
    }
}

/// Names in `--controllers` that cannot be obeyed; all of them at once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.sentence())]
pub struct BadNames {
    /// Names that neither this program nor kube-controller-manager knows, as written.
    pub unknown: Vec<String>,
    /// Names of controllers that are not built yet.
    pub not_built: Vec<String>,
    /// What could have been meant.
    pub hosted: Vec<&'static str>,
}

impl BadNames {
    fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if !self.unknown.is_empty() {
            let hosted = self.hosted.join(", ");
            parts.push(format!(
                "no controller is named {}; this program hosts: {hosted}",
                quoted(&self.unknown)
            ));
        }
        if !self.not_built.is_empty() {
            parts.push(format!("{} is not built yet", quoted(&self.not_built)));
        }
        parts.join("; ")
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
    /// All names that are unknown, negated or not, and all positive names that are not built.
    pub fn select(&self, list: &[String]) -> Result<Selection, BadNames> {
        let mut bad = BadNames { unknown: vec![], not_built: vec![], hosted: self.names() };
        let mut states = BTreeMap::new();
        let star = list.iter().any(|entry| entry == "*");
        for entry in list.iter().filter(|entry| *entry != "*") {
            let (name, on) = match entry.strip_prefix('-') {
                Some(name) => (name, false),
                None => (entry.as_str(), true),
            };
            if let Some(members) = self.resolve(name) {
                let state = if on { State::OnByName } else { State::Off };
                for member in members {
                    states.entry(member).or_insert(state);
                }
            } else if self.is_announced(name) {
                if on {
                    bad.not_built.push(name.to_owned());
                }
            } else if !is_upstream(name) {
                bad.unknown.push(name.to_owned());
            }
        }
        if !(bad.unknown.is_empty() && bad.not_built.is_empty()) {
            return Err(bad);
        }
        for controller in self.controllers() {
            let default =
                if star && controller.on_by_default { State::OnByStar } else { State::Off };
            states.entry(controller.name).or_insert(default);
        }
        Ok(Selection { states })
    }
}

/// The entries of a list that turn on a controller which only kube-controller-manager hosts; for
/// the start-up warning.
pub fn not_hosted(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).filter(|entry| is_upstream(entry)).collect()
}

#[cfg(test)]
mod tests;
