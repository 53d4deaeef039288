//! [`LabelSelector`]: which objects are selected by their labels, in the syntax of kubectl.

mod syntax;

use std::fmt;
use std::sync::Arc;

use syntax::{Requirement, Tokens};

pub use syntax::{LabelSelectorError, LabelTest, is_label_key};

/// A label selector such as `tier in (web,db),!spot`; the empty one selects everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    text: Arc<str>,
    /// An object is selected when it fulfils all of them.
    requirements: Arc<[Requirement]>,
}

impl LabelSelector {
    /// Reads a selector as kubectl does.
    ///
    /// # Errors
    /// The first part that does not follow the syntax.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let requirements = Tokens::of(text).requirements()?;
        Ok(Self { text: text.trim().into(), requirements: requirements.into() })
    }

    /// Whether an object is selected; `label` gives the value of its label with a key.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|wanted| wanted.test.passes(label(&wanted.key)))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LabelTest {
    /// Whether a label with this value passes; `None` is a missing label.
    pub fn passes(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|one| **one == *value))
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => is_one_of(values),
            Self::NotIn(values) => !is_one_of(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Greater(than) => number().is_some_and(|number| number > *than),
            Self::Less(than) => number().is_some_and(|number| number < *than),
        }
    }
}

#[cfg(test)]
mod tests;
