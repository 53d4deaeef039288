//! Writes: each action is one request.

use aws_network::Answer;

use crate::call::AwsError;

pub(crate) mod classic;
pub(crate) mod ec2;
pub(crate) mod network_balancers;

/// An answer, or the error.
pub(crate) type Performed = Result<Answer, AwsError>;

/// A write whose answer says nothing.
fn done<T, E>(sent: Result<T, E>) -> Performed
where
    AwsError: From<E>,
{
    sent?;
    Ok(Answer::default())
}

/// The answer to a create. One without an id may have made something.
fn made(id: Option<String>, what: &'static str) -> Performed {
    let id = id.ok_or_else(|| AwsError::without(what))?;
    Ok(Answer { id, ..Answer::default() })
}

/// The error for values that cannot be put into a request, which was not sent.
fn unbuildable(error: impl std::fmt::Display) -> AwsError {
    AwsError::NotSent { reason: error.to_string() }
}
