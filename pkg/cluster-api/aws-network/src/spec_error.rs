//! [`SpecError`]: what is wrong with a spec, before anything is written to AWS.

/// One thing that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {path}: {problem}")]
pub struct SpecError {
    /// The field, as in the newer dialect, from `spec` on.
    pub path: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl SpecError {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}
