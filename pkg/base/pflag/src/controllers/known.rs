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

/// A name that stands for several controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the group.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Canonical names of its members.
    pub members: &'static [&'static str],
}

/// A registration that would make a name ambiguous or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// Two registrations claim one name.
    #[error("cannot register controller name {0:?} twice")]
    Twice(&'static str),
    /// A group member that is no controller.
    #[error("cannot register group {group:?}: {member:?} is not a registered controller")]
    NoSuchMember {
        /// The group.
        group: &'static str,
        /// The missing member.
        member: &'static str,
    },
}

/// All hosted controllers.
#[derive(Clone, Debug, Default)]
pub struct Known {
    controllers: Vec<Controller>,
    groups: Vec<Group>,
    announced: &'static [&'static str],
}

impl Known {
    /// Registers everything at once.
    ///
    /// # Errors
    /// A name, alias or group name that occurs twice, or a group with an unregistered member.
    pub fn new(controllers: Vec<Controller>, groups: Vec<Group>) -> Result<Self, RegistryError> {
        let mut seen = BTreeSet::new();
        let own = controllers.iter().map(|c| (c.name, c.aliases));
        let grouped = groups.iter().map(|g| (g.name, g.aliases));
        for (name, aliases) in own.chain(grouped) {
            for name in std::iter::once(&name).chain(aliases) {
                if !seen.insert(*name) {
                    return Err(RegistryError::Twice(name));
                }
            }
        }
        for group in &groups {
            for member in group.members {
                if !controllers.iter().any(|controller| controller.name == *member) {
                    return Err(RegistryError::NoSuchMember { group: group.name, member });
                }
            }
        }
        Ok(Self { controllers, groups, announced: &[] })
    }

    /// Adds names that the documents announce and this version does not contain. Turning one on by
    /// name must not pass in silence; turning one off may.
    #[must_use]
    pub fn announcing(mut self, names: &'static [&'static str]) -> Self {
        self.announced = names;
        self
    }

    pub(super) fn is_announced(&self, name: &str) -> bool {
        self.announced.contains(&name)
    }

    /// The controllers in order of registration.
    pub fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Canonical names in order of registration.
    pub fn names(&self) -> Vec<&'static str> {
        self.controllers.iter().map(|controller| controller.name).collect()
    }

    /// The canonical names that a name, an alias or a group stands for.
    pub(super) fn resolve(&self, name: &str) -> Option<Vec<&'static str>> {
        let matches = |own: &str, aliases: &[&str]| own == name || aliases.contains(&name);
        if let Some(found) = self.controllers.iter().find(|c| matches(c.name, c.aliases)) {
            return Some(vec![found.name]);
        }
        self.groups.iter().find(|g| matches(g.name, g.aliases)).map(|group| group.members.to_vec())
    }
}
