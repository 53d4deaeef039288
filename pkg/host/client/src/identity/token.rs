//! A service account's token, and why there is not one. Made by `token_request`, kept by `account`.

use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

/// Why there is no token. Nothing was sent in the service account's name.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot get a token for service account {namespace}/{name}: {reason}")]
pub struct TokenError {
    /// Namespace of the service account.
    pub namespace: String,
    /// Name of the service account.
    pub name: String,
    /// What failed, and what to do about it.
    pub reason: String,
}

/// A token and the times that follow from its life.
#[derive(Clone)]
pub(crate) struct Token {
    /// The `Authorization` header, marked sensitive.
    pub(crate) header: HeaderValue,
    pub(crate) obtained: Instant,
    pub(crate) life: Duration,
}
