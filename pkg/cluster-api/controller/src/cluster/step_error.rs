//! [`StepError`]: why a part of a pass failed, and [`Errors`] of a whole one.

use workqueue::Retry;

use crate::certificates::CertificateError;

/// Why a part of a pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// A call to the API server.
    #[error(transparent)]
    Object(#[from] objects::Error),
    /// The infrastructure is ready and says no endpoint.
    #[error(
        "cannot publish an endpoint: {0} is ready and names none in status.apiEndpoints or spec.controlPlaneEndpoint"
    )]
    NoEndpoint(String),
    /// What the infrastructure object says is of another form than every contract has it.
    #[error("cannot read the status of {0}: {1}")]
    Unreadable(String, serde_json::Error),
    /// No certificate could be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// What went wrong in one pass; all parts of it were tried.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<StepError>);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Several(String);

impl Errors {
    /// Notes the error of a part, which then has no result.
    pub(super) fn take<T>(&mut self, part: Result<T, impl Into<StepError>>) -> Option<T> {
        part.map_err(|error| self.0.push(error.into())).ok()
    }

    /// How the key is tried again, if anything went wrong.
    pub(super) fn into_retry(self) -> Option<Retry> {
        let mut errors = self.0;
        let last = errors.pop()?;
        if errors.is_empty() {
            return Some(match last {
                StepError::Object(error) => manager::retry(error),
                error => Retry::new(error),
            });
        }
        let told: Vec<_> = errors.iter().chain([&last]).map(ToString::to_string).collect();
        Some(Retry::new(Several(told.join("; "))))
    }
}
