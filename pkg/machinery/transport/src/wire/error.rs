//! [`WireError`]: why a request has no answer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use hyper_util::client::legacy;
use tower::BoxError;

/// Why a request has no answer. Reads as its cause.
#[derive(Clone, Debug)]
pub struct WireError {
    connecting: bool,
    cause: Arc<dyn Error + Send + Sync>,
}

impl WireError {
    /// There is no connection: nothing was sent.
    pub(super) fn connecting(cause: impl Into<BoxError>) -> Self {
        Self { connecting: true, cause: cause.into().into() }
    }

    /// The connection or the exchange broke.
    pub(super) fn broken(cause: impl Into<BoxError>) -> Self {
        Self { connecting: false, cause: cause.into().into() }
    }

    /// True when there was no connection, so that nothing was sent.
    pub fn is_connect(&self) -> bool {
        self.connecting
    }
}

impl From<legacy::Error> for WireError {
    fn from(error: legacy::Error) -> Self {
        let connecting = error.is_connect();
        Self { connecting, cause: Arc::new(error) }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for WireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}
