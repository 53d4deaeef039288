//! [`LabelSelector`]: which objects are selected by their labels, in the syntax of kubectl.

mod syntax;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use syntax::Tokens;

/// A label selector such as `tier in (web,db),!spot`; the empty one selects everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    text: Arc<str>,
    /// An object is selected when it fulfils all of them.
    requirements: Arc<[Requirement]>,
}

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Requirement {
    key: Box<str>,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Test {
    In(Vec<Box<str>>),
    NotIn(Vec<Box<str>>),
    Exists,
    DoesNotExist,
    Greater(i64),
    Less(i64),
}

/// The text of a selector does not follow the syntax.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LabelSelectorError {
    /// Something stands in the wrong place.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What can stand there.
        expected: &'static str,
    },
    /// A label cannot have this key.
    #[error("{0:?} is not a valid label key")]
    Key(String),
    /// A label cannot have this value.
    #[error("{0:?} is not a valid label value")]
    Value(String),
    /// The operators `>` and `<` compare whole numbers.
    #[error("{0:?} is not a whole number")]
    Number(String),
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

impl Test {
    fn passes(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|one| **one == *value))
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => is_one_of(values),
            // As in Kubernetes, an object without the label passes.
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
