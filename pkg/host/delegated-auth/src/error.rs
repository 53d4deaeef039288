//! Why requests cannot be guarded from the start on.

use crate::TrustError;

/// Ends the start of the process.
#[derive(Debug, thiserror::Error)]
pub enum DelegationError {
    /// A file of CAs cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A metric of one of these names is registered already.
    #[error("cannot register the metrics of authentication and authorization: {0}")]
    Metrics(#[from] prometheus::Error),
    /// Tokens are kept as hashes under a random key.
    #[error("cannot draw random numbers from the system")]
    NoRandomNumbers,
}
