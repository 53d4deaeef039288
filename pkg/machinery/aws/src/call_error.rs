//! [`CallError`]: how a call of AWS failed, as far as it counts for what comes next.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_network::{Refusal, classify_read};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// How a call of AWS failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// AWS answered with an error code, which is empty when the answer is none of AWS's.
    #[error("AWS refuses the call: {code:?}, HTTP status {status}")]
    Refused {
        /// The code, without the text beside it.
        code: String,
        /// The HTTP status.
        status: u16,
    },
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

    /// AWS's code; empty when it gave none.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// AWS has refused it as one call too many, without a look at it.
    pub(crate) fn is_throttle(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if classify_read(code) == Refusal::Throttled)
    }

    /// It may have been carried out.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Refused { code, .. } => classify_read(code) == Refusal::Failed,
            Self::Unanswered { .. } => true,
            Self::NotSent { .. } => false,
        }
    }

    /// The label `status_code` of metrics.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Refused { status, .. } => *status,
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
            SdkError::ServiceError(answer) => Self::Refused {
                code: error.code().unwrap_or_default().to_owned(),
                status: answer.raw().status().as_u16(),
            },
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
