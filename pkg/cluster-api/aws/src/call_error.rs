//! [`CallError`]: how a call of AWS failed, as far as it counts for what comes next.

use std::error::Error;
use std::time::SystemTime;

use aws_credential_types::provider::error::CredentialsError;
use aws_network::{Refusal, Refused, classify_read, is_unexpected};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// Seconds by which the clock that signs a request may differ from AWS's.
const SIGNATURE_HOLDS: u64 = 300;

/// How a call of AWS failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// AWS answered with an error.
    #[error("AWS refuses the call: {0}")]
    Refused(Refused),
    /// There was no answer, or none that can be read: it may have been carried out.
    #[error("cannot tell what became of the call: {reason}")]
    Unanswered {
        /// Why, for people.
        reason: String,
    },
    /// Nothing was sent.
    #[error("cannot send the call: {reason}")]
    NotSent {
        /// Why, for people.
        reason: String,
    },
}

impl CallError {
    /// An answer that lacks something.
    pub(crate) fn without(what: &str) -> Self {
        Self::Unanswered { reason: format!("the answer has no {what}") }
    }

    /// The error that AWS answered with, if it did.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Unanswered { .. } | Self::NotSent { .. } => None,
        }
    }

    /// AWS's code; empty when it gave none.
    pub fn code(&self) -> &str {
        self.refused().map_or("", |refused| &refused.code)
    }

    /// AWS has refused it as one call too many, without a look at it.
    pub(crate) fn is_throttle(&self) -> bool {
        self.refused().is_some_and(|refused| classify_read(refused) == Refusal::Throttled)
    }

    /// AWS has too much to do: calls have to come more slowly, whether this one was looked at or not.
    pub(crate) fn asks_for_fewer_calls(&self) -> bool {
        self.is_throttle() || [429, 503].contains(&self.status())
    }

    /// AWS's code, when it says that this program has made a mistake.
    pub(crate) fn unexpected(&self) -> Option<&str> {
        self.refused().filter(|refused| is_unexpected(refused)).map(|refused| &*refused.code)
    }

    /// It may have been carried out.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Refused(refused) => classify_read(refused) == Refusal::Failed,
            Self::Unanswered { .. } => true,
            Self::NotSent { .. } => false,
        }
    }

    /// The label `status_code` of metrics.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Refused(refused) => refused.status,
            _ => 0,
        }
    }

    /// Whether nothing of this name, or of this id, exists.
    pub(crate) fn is_not_found(&self) -> bool {
        let code = self.code();
        code.ends_with("NotFound") || code.ends_with("NotFoundException")
    }
}

impl<E> From<SdkError<E, HttpResponse>> for CallError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        match &error {
            SdkError::ServiceError(answer) => Self::Refused(Refused {
                code: error.code().unwrap_or_default().to_owned(),
                status: answer.raw().status().as_u16(),
                clock_behind: clock_behind(answer.raw(), SystemTime::now()),
            }),
            SdkError::ConstructionFailure(_) => Self::NotSent { reason: chain(&error) },
            // There can be no connection, as with a proxy whose address is none.
            SdkError::DispatchFailure(failure) if failure.is_user() => {
                Self::NotSent { reason: chain(&error) }
            }
            _ if is_about_credentials(&error) => Self::NotSent { reason: chain(&error) },
            _ => Self::Unanswered { reason: chain(&error) },
        }
    }
}

/// By how many seconds the local clock is behind the date of an answer, when it is more than AWS
/// accepts in a signature.
fn clock_behind(answer: &HttpResponse, now: SystemTime) -> Option<i64> {
    let date = DateTime::from_str(answer.headers().get("date")?, Format::HttpDate).ok()?;
    let behind = date.secs() - DateTime::from(now).secs();
    (behind.unsigned_abs() > SIGNATURE_HOLDS).then_some(behind)
}

/// No request is signed, and none is sent, before there are credentials.
fn is_about_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<CredentialsError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// An error with all that caused it, in the words that are meant for people. Nothing is shown by
/// `Debug`, which may hold what was sent.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
