//! The layer that says who asks: the process's own identity, or a service account with its token. The
//! reading of the credentials that it takes for a request goes with the request to the innermost
//! layer, which sends it to the server of that reading and of no other.

pub(crate) mod credentials;
pub(crate) mod metrics;
mod plugin;
pub(crate) mod snapshot;
mod token_request;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, Shared};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tower::BoxError;
use tracing::warn;

use crate::call::request::Sender;
use crate::identity::credentials::Credentials;
use crate::identity::snapshot::Snapshot;
use crate::identity::token_request::{Token, TokenRequester};

pub use plugin::{PluginError, PluginLimits, PluginRuns, Printed};
pub use token_request::TokenError;

/// Layer around what sends one request.
pub(crate) struct Authorize<S> {
    inner: S,
    bearer: Bearer,
}

/// The identity that a request is sent with.
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

/// A renewal that failed is tried again after this long.
const RENEWAL_PAUSE: Duration = Duration::from_secs(30);
/// Callers that fail, or whose tokens are all refused, do not make the next request at once.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

type TokenRequest = Shared<BoxFuture<'static, Result<Token, TokenError>>>;

/// One service account, shared by all its clients.
pub(crate) struct ServiceAccount {
    requester: Arc<TokenRequester>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// When the last token came, which may have been refused since.
    obtained: Option<Instant>,
    /// The server that all of this is of, by the number of changes of its address.
    server: u64,
    /// When the token should be renewed: 80 % of its life, or later after a failed renewal.
    renew_at: Option<Instant>,
    under_way: Option<TokenRequest>,
    failed: Option<(Instant, TokenError)>,
}

impl ServiceAccount {
    /// `root` is a client of the root identity that may read and create service accounts and their
    /// tokens.
    pub(crate) fn new(root: kube::Client, namespace: &str, name: &str) -> Self {
        Self {
            requester: Arc::new(TokenRequester::new(root, namespace, name)),
            state: Arc::default(),
        }
    }

    /// The header to send to this server, known by the number of changes of its address so far: a
    /// token of another is no good there, and nothing that it may see. Waits only when there is no
    /// valid token.
    pub(crate) async fn header(&self, server: u64) -> Result<HeaderValue, TokenError> {
        let request = {
            let now = Instant::now();
            let mut state = self.state.lock();
            if state.server != server {
                *state = State { server, ..State::default() };
            }
            match state.valid_token(now) {
                Some(header) => {
                    if state.renew_at.is_some_and(|at| at <= now) {
                        // It runs on a task of its own; no caller waits for it.
                        drop(self.start(&mut state));
                    }
                    return Ok(header);
                }
                None => match state.recent_failure(now) {
                    Some(error) => return Err(error),
                    None => self.start(&mut state),
                },
            }
        };
        request.await.map(|token| token.header)
    }

    /// The server refused a request that started at `started`: a token older than that is no good.
    pub(crate) fn refused(&self, started: Instant) {
        let mut state = self.state.lock();
        if state.token.as_ref().is_some_and(|t| t.obtained <= started) {
            state.token = None;
        }
    }

    /// Joins the request under way, or starts one on a task of its own.
    fn start(&self, state: &mut State) -> TokenRequest {
        if let Some(request) = &state.under_way {
            return request.clone();
        }
        let requester = Arc::clone(&self.requester);
        let under_way = UnderWay { state: Arc::clone(&self.state), server: state.server };
        let not_before = state.obtained.map(|obtained| obtained + FAILURE_PAUSE);
        let task = tokio::spawn(resilience::task(async move {
            if let Some(not_before) = not_before {
                sleep_until(not_before).await;
            }
            let outcome = requester.request().await;
            under_way.finish(&outcome);
            outcome
        }));
        let lost = self.requester.error("the task that requests it was stopped".to_owned());
        let request = async move { task.await.unwrap_or(Err(lost)) }.boxed().shared();
        state.under_way = Some(request.clone());
        request
    }
}

/// Ends the request under way in the shared state, also when its task is stopped with its runtime.
struct UnderWay {
    state: Arc<Mutex<State>>,
    server: u64,
}

impl UnderWay {
    fn finish(&self, outcome: &Result<Token, TokenError>) {
        let mut state = self.state.lock();
        if state.server == self.server {
            state.finish(outcome);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.server == self.server {
            state.under_way = None;
        }
    }
}

impl State {
    fn valid_token(&self, now: Instant) -> Option<HeaderValue> {
        let token = self.token.as_ref()?;
        (now < token.obtained + token.life).then(|| token.header.clone())
    }

    fn recent_failure(&self, now: Instant) -> Option<TokenError> {
        let (at, error) = self.failed.as_ref()?;
        (now < *at + FAILURE_PAUSE).then(|| error.clone())
    }

    fn finish(&mut self, outcome: &Result<Token, TokenError>) {
        match outcome {
            Ok(token) => {
                self.renew_at = Some(token.obtained + token.life.mul_f64(0.8));
                self.obtained = Some(token.obtained);
                self.token = Some(token.clone());
                self.failed = None;
            }
            Err(error) => {
                let now = Instant::now();
                if self.valid_token(now).is_some() {
                    warn!(err = %error, "Cannot renew the token of a service account, the \
                        previous token stays in use");
                }
                self.renew_at = Some(now + RENEWAL_PAUSE);
                self.failed = Some((now, error.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
