//! What a successful answer holds, or why there is none: for callers that read and do not write.

use http::StatusCode;
use kube_api::Status;
use serde::de::DeserializeOwned;

use crate::call::answer::Answer;
use crate::call::error::CallError;

/// Why something that was asked for is not known.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// No answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server does not say.
    #[error("the API server answers {status}: {message}")]
    Refused {
        /// The answer's status.
        status: StatusCode,
        /// The server's own words; empty when there are none.
        message: String,
    },
    /// The answer is not what was asked for.
    #[error("cannot decode the answer: {0}")]
    Decode(#[from] serde_json::Error),
    /// The question cannot be put.
    #[error(transparent)]
    Request(#[from] http::Error),
}

impl AnswerError {
    /// Whether asking again may help.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Call(_) => true,
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Decode(_) | Self::Request(_) => false,
        }
    }
}

impl Answer {
    /// The object in the body.
    ///
    /// # Errors
    /// The status is no success, or the body is no such object.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, AnswerError> {
        if !self.status.is_success() {
            let said = Status::read(&self.body).unwrap_or_default();
            return Err(AnswerError::Refused { status: self.status, message: said.message });
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}
