//! [`Answer`]: what came of one question to the network.

use validation::CheckResult;

/// What came of one question.
pub(super) enum Answer {
    Known(CheckResult),
    /// And why.
    NotChecked(String),
    Busy,
}

/// As a rule reads it.
pub(super) fn result(found: Result<(), &str>) -> Answer {
    Answer::Known(match found {
        Ok(()) => CheckResult::Passed,
        Err(code) => CheckResult::Failed(code.to_owned()),
    })
}
