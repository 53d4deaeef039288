//! [`WireError`]: why a request has no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use h2::Reason;
use hyper_util::client::legacy;
use tower::BoxError;

/// Why a request has no answer. Reads as its cause.
#[derive(Clone, Debug)]
pub struct WireError {
    unprocessed: bool,
    cause: Arc<dyn Error + Send + Sync>,
}

impl WireError {
    /// Nothing was sent, or the server told that it did nothing with it.
    pub fn unprocessed(cause: impl Into<BoxError>) -> Self {
        Self { unprocessed: true, cause: cause.into().into() }
    }

    /// The connection or the exchange broke, and the server may have carried out the request.
    pub fn broken(cause: impl Into<BoxError>) -> Self {
        Self { unprocessed: false, cause: cause.into().into() }
    }

    /// The stream of a request ended before its answer
    /// (`rule:refused-requests-were-not-processed`).
    pub(super) fn of_stream(error: h2::Error) -> Self {
        let is_refusal = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
        if is_refusal && error.is_remote() { Self::unprocessed(error) } else { Self::broken(error) }
    }

    /// True when the server has not processed the request and never will.
    pub fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }
}

impl From<legacy::Error> for WireError {
    fn from(error: legacy::Error) -> Self {
        let unprocessed = error.is_connect();
        Self { unprocessed, cause: Arc::new(error) }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for WireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_chain::ErrorChain;

    #[test]
    fn the_cause_is_found_by_its_type_and_told_once() {
        let error = WireError::broken(h2::Error::from(Reason::CANCEL));
        assert!(error.source().unwrap().is::<h2::Error>());
        assert_eq!(ErrorChain(&error).to_string(), error.to_string());
    }
}
