//! The layer that puts the service account's token on each request, and drops it when the server
//! answers 401.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt as _};

use crate::identity::account::ServiceAccount;

/// Layer around what sends one request.
#[derive(Clone)]
pub(crate) struct Bearer<S> {
    inner: S,
    account: Arc<ServiceAccount>,
}

impl<S> Bearer<S> {
    pub(crate) fn new(inner: S, account: Arc<ServiceAccount>) -> Self {
        Self { inner, account }
    }
}

impl<S, B> Service<Request<Body>> for Bearer<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let inner = self.inner.clone();
        let account = Arc::clone(&self.account);
        Box::pin(async move {
            request.headers_mut().insert(AUTHORIZATION, account.header().await?);
            let started = Instant::now();
            let response = inner.oneshot(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                account.refused(started);
            }
            Ok(response)
        })
    }
}
