//! The registry of hosted controllers and its start-up assertion: one name, one meaning.

use std::collections::BTreeSet;

use thiserror::Error;

/// A controller that this program can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Canonical name, `<what>-controller`.
    pub name: &'static str,
    /// Other names users may know it by.
    pub aliases: &'static [&'static str],
    /// Whether `*` turns it on.
    pub on_by_default: bool,
}

/// A registration that would make a name ambiguous or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// Two registrations claim one name.
    #[error("cannot register controller name {0:?} twice")]
    Twice(&'static str),
}

/// All hosted controllers.
#[derive(Clone, Debug, Default)]
pub struct Known {
    controllers: Vec<Controller>,
}

impl Known {
    /// Registers everything at once.
    ///
    /// # Errors
    /// A name or alias that occurs twice.
    pub fn new(controllers: Vec<Controller>) -> Result<Self, RegistryError> {
        let mut seen = BTreeSet::new();
        for controller in &controllers {
            for name in std::iter::once(&controller.name).chain(controller.aliases) {
                if !seen.insert(*name) {
                    return Err(RegistryError::Twice(name));
                }
            }
        }
        Ok(Self { controllers })
    }

    /// The controllers in order of registration.
    pub fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Canonical names in order of registration.
    pub fn names(&self) -> Vec<&'static str> {
        self.controllers.iter().map(|controller| controller.name).collect()
    }

    /// The canonical name of a hosted controller, by that or an alias.
    pub fn resolve(&self, name: &str) -> Option<&'static str> {
        let matches = |known: &&Controller| known.name == name || known.aliases.contains(&name);
        self.controllers.iter().find(matches).map(|controller| controller.name)
    }
}
