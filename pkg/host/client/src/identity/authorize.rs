//! The layer that says who asks: the process's own identity, or a service account with its token.
//! The reading of the credentials that it takes for a request goes with the request to the
//! innermost layer, which sends it to the server of that reading and of no other
//! (`rule:one-reading-per-request`).

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::Instant;
use tower::BoxError;

use crate::call::sender::Sender;
use crate::identity::account::ServiceAccount;
use crate::identity::credentials::Credentials;
use crate::identity::snapshot::Snapshot;

/// Layer around what sends one request.
pub(crate) struct Authorize<S> {
    inner: S,
    bearer: Bearer,
}

/// Who asks.
pub(crate) struct Bearer {
    credentials: Arc<Credentials>,
    /// Instead of the root identity.
    account: Option<Arc<ServiceAccount>>,
}

impl<S> Authorize<S> {
    pub(crate) fn new(inner: S, bearer: Bearer) -> Self {
        Self { inner, bearer }
    }
}

impl<S: Sender<Error = BoxError>> Sender for Authorize<S> {
    type Answer = S::Answer;
    type Error = BoxError;

    async fn send(&self, mut request: Request<Body>) -> Result<Response<S::Answer>, BoxError> {
        let snapshot = self.bearer.sign(request.headers_mut()).await?;
        let (generation, started) = (snapshot.generation, Instant::now());
        request.extensions_mut().insert(snapshot);
        let response = self.inner.send(request).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.bearer.refused(generation, started);
        }
        Ok(response)
    }
}

impl Bearer {
    /// The root identity of these credentials, or this service account of the same server.
    pub(crate) fn new(credentials: Arc<Credentials>, account: Option<Arc<ServiceAccount>>) -> Self {
        Self { credentials, account }
    }

    /// Puts the credentials into a request and returns the reading that they are of.
    async fn sign(&self, headers: &mut HeaderMap) -> Result<Arc<Snapshot>, BoxError> {
        let Some(account) = &self.account else {
            let snapshot = self.credentials.current();
            snapshot.authorize(headers)?;
            return Ok(snapshot);
        };
        loop {
            let snapshot = self.credentials.current();
            let token = account.header(snapshot.moves).await?;
            // The server may have changed while the token was waited for, which is of the new one
            // then.
            if self.credentials.current().moves == snapshot.moves {
                headers.insert(AUTHORIZATION, token);
                return Ok(snapshot);
            }
        }
    }

    /// The server does not know them.
    fn refused(&self, generation: u64, started: Instant) {
        match &self.account {
            None => self.credentials.refused(generation),
            Some(account) => account.refused(started),
        }
    }
}

#[cfg(test)]
mod tests;
