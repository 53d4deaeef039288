//! The result of a write.

use aws_network::Answer;

use crate::call::AwsError;

/// An answer, or the error.
pub(super) type Performed = Result<Answer, AwsError>;

/// A write with nothing to tell.
pub(super) const DONE: Performed = Ok(Answer { id: String::new(), address: None, dns_name: None });

/// The answer to a create. One without an id may have made something.
pub(super) fn made(id: Option<String>, what: &'static str) -> Performed {
    let id = id.ok_or_else(|| AwsError::without(what))?;
    Ok(Answer { id, ..Answer::default() })
}

/// The error for values that cannot be put into a request, which was not sent.
pub(super) fn unbuildable(error: impl std::fmt::Display) -> AwsError {
    AwsError::NotSent { reason: error.to_string() }
}
