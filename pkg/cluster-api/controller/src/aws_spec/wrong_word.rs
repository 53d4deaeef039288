//! [`wrong_word`]: the error of a field whose value is none of those that it may have.

use aws_network::SpecError;

/// The field has this value, and what would be right.
pub(super) fn wrong_word(path: &str, value: &str, right: &str) -> SpecError {
    SpecError { path: path.to_owned(), problem: format!("{value:?} is not {right}") }
}
