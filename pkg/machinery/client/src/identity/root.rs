//! The layers of the process's own identity: the server's address, outermost, and the credentials
//! on each request, with a second reading of them after a 401.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt as _};

use crate::identity::credentials::Credentials;

/// Puts the address of the server before the path of each request.
#[derive(Clone)]
pub(crate) struct Address<S> {
    inner: S,
    credentials: Arc<Credentials>,
}

impl<S> Address<S> {
    pub(crate) fn new(inner: S, credentials: Arc<Credentials>) -> Self {
        Self { inner, credentials }
    }
}

impl<S> Service<Request<Body>> for Address<S>
where
    S: Service<Request<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        let joined = join(&self.credentials.current().server, request.uri());
        if let Some(uri) = joined {
            *request.uri_mut() = uri;
        }
        self.inner.call(request)
    }
}

/// `server` with the path and query of `target` after its own path. `None` cannot happen with
/// addresses that were parsed.
fn join(server: &Uri, target: &Uri) -> Option<Uri> {
    let prefix = server.path().trim_end_matches('/');
    let rest = target.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut parts = server.clone().into_parts();
    parts.path_and_query = Some(if prefix.is_empty() {
        target.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"))
    } else {
        PathAndQuery::try_from(format!("{prefix}{rest}")).ok()?
    });
    Uri::from_parts(parts).ok()
}

/// Puts the credentials on each request.
#[derive(Clone)]
pub(crate) struct Authorize<S> {
    inner: S,
    credentials: Arc<Credentials>,
}

impl<S> Authorize<S> {
    pub(crate) fn new(inner: S, credentials: Arc<Credentials>) -> Self {
        Self { inner, credentials }
    }
}

impl<S, B> Service<Request<Body>> for Authorize<S>
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
        let Self { inner, credentials } = self.clone();
        Box::pin(async move {
            let snapshot = credentials.current();
            snapshot.authorize(request.headers_mut())?;
            let response = inner.oneshot(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                credentials.refused(snapshot.generation);
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_below_a_path_keeps_it() {
        for (server, target, expected) in [
            ("https://a:6443", "/api/v1/nodes?limit=1", "https://a:6443/api/v1/nodes?limit=1"),
            ("https://a:6443/", "/api", "https://a:6443/api"),
            ("https://a/k8s/clusters/c-1/", "/api?x=1", "https://a/k8s/clusters/c-1/api?x=1"),
            ("https://a/k8s", "http://other/api", "https://a/k8s/api"),
        ] {
            let joined = join(&server.parse().unwrap(), &target.parse().unwrap());
            assert_eq!(joined.unwrap().to_string(), expected);
        }
    }
}
