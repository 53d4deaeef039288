//! Puts the layers of one client together. Called by `clients`; the order is the contract of the
//! crate's head.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use kube::client::Body;
use tower::Service;
use transport::AnswerBody;

use crate::call::attempt::Attempt;
use crate::call::dispatch::Dispatch;
use crate::call::error::CallError;
use crate::call::gate::Gate;
use crate::call::link::Link;
use crate::call::metrics::ClientMetrics;
use crate::call::response_size::SizedBody;
use crate::call::sender::Sender;
use crate::identity::authorize::{Authorize, Bearer};
use crate::profile::Profile;
use crate::throttle::Throttle;

/// What the layers of one client share.
pub(crate) struct Parts {
    pub(crate) bearer: Bearer,
    pub(crate) link: Arc<Link>,
    pub(crate) metrics: Arc<ClientMetrics>,
    pub(crate) user_agent: HeaderValue,
    pub(crate) profile: Profile,
}

/// All layers of one client. Clones share them.
#[derive(Clone)]
pub(crate) struct Stack(Arc<Gate<Attempt<Authorize<Dispatch>>>>);

impl Stack {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { bearer, link, metrics, user_agent, profile } = parts;
        let throttle = match profile.throttle {
            Some(bucket) => Some(bucket),
            // Unlimited clients still stop for the server's 429; the lease stops for nothing.
            None => (!profile.own_connection).then(|| Throttle::unlimited(&profile.agent)),
        };
        let dispatch = Dispatch::new(link, user_agent, profile.fence, profile.dry_run);
        let attempt = Attempt::new(Authorize::new(dispatch, bearer), Arc::clone(&metrics));
        Self(Arc::new(Gate::new(attempt, throttle, metrics)))
    }

    /// The same layers behind kube's API, on the current runtime.
    pub(crate) fn kube(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }
}

impl Sender for Stack {
    type Answer = SizedBody<AnswerBody>;
    type Error = CallError;

    fn send(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Answer>, CallError>> + Send {
        self.0.send(request)
    }
}

/// For kube, which puts a queue and a task before it.
impl Service<Request<Body>> for Stack {
    type Response = Response<SizedBody<AnswerBody>>;
    type Error = CallError;
    type Future = BoxFuture<'static, Result<Self::Response, CallError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let layers = Arc::clone(&self.0);
        Box::pin(async move { layers.send(request).await })
    }
}
