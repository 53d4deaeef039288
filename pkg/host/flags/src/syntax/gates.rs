//! `--feature-gates`: `[component:]Gate=bool,…`. Which gates mean something is not decided here.

use super::{SyntaxError, boolean};

/// The component a gate belongs to when none is named.
pub const DEFAULT_COMPONENT: &str = "kube";

/// One setting of one gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// `kube` unless the user named another.
    pub component: String,
    /// The gate's name.
    pub name: String,
    /// What the user set it to.
    pub enabled: bool,
}

/// The settings in the order given; blank entries are skipped as upstream does.
pub fn read(text: &str) -> Result<Vec<Gate>, SyntaxError> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(gate).collect()
}

fn gate(entry: &str) -> Result<Gate, SyntaxError> {
    let bad = || SyntaxError::Gate(entry.to_owned());
    let (name, word) = entry.split_once('=').ok_or_else(bad)?;
    let (component, name) = name.split_once(':').unwrap_or((DEFAULT_COMPONENT, name));
    let (component, name) = (component.trim(), name.trim());
    if component.is_empty() || name.is_empty() || name.contains(':') {
        return Err(bad());
    }
    let enabled = boolean(word.trim()).map_err(|_| bad())?;
    Ok(Gate { component: component.to_owned(), name: name.to_owned(), enabled })
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.component != DEFAULT_COMPONENT {
            write!(f, "{}:", self.component)?;
        }
        write!(f, "{}={}", self.name, self.enabled)
    }
}
