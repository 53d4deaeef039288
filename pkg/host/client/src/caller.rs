//! One client: its purpose ([`Profile`]), its layers, and [`Caller`], which sends raw requests and
//! reads whole answers. The hot writes go this way: kube's own client puts a queue, a task and two
//! channels between a caller and the layers.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use kube::client::Body;
use resilience::Fence;
use tower::Service;
use transport::AnswerBody;

use crate::call::attempt::{AttemptLayer, SizedBody};
use crate::call::dispatch::{Dispatch, Link};
use crate::call::metrics::ClientMetrics;
use crate::call::request::{AttemptTimeout, Sender};
use crate::call::throttle_layer::ThrottleLayer;
use crate::call::{Answer, CallError, answer, read};
use crate::identity::{Authorize, Bearer};
use crate::throttle::Throttle;

/// Sends raw requests through the layers of one client. Clones share them.
#[derive(Clone)]
pub struct Caller(Backend);

#[derive(Clone)]
enum Backend {
    Layers(Stack),
    Kube(kube::Client),
}

impl Caller {
    pub(crate) fn of(stack: Stack) -> Self {
        Self(Backend::Layers(stack))
    }

    /// A client of kube over the same layers: one throttle, one identity, one fence.
    pub fn kube(&self) -> kube::Client {
        match &self.0 {
            Backend::Layers(stack) => stack.kube(),
            Backend::Kube(client) => client.clone(),
        }
    }

    /// Sends `request` and reads the whole answer. Any HTTP status is an answer. `timeout` bounds
    /// one attempt, reading the body included; waiting in the throttle is no part of it. A write
    /// tells the server to give up when the attempt does, or when our lease ends if that is sooner.
    ///
    /// # Errors
    /// [`CallError`] says whether the request may have been carried out. One whose answer broke off
    /// after the headers may have been: it is a [`CallError::Transport`] or [`CallError::Timeout`].
    pub fn answer(
        &self,
        mut request: Request<Body>,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<Answer, CallError>> {
        // Boxed: every crate that awaits a call would have a copy of all layers.
        Box::pin(async move {
            match &self.0 {
                Backend::Layers(stack) => {
                    request.extensions_mut().insert(AttemptTimeout(timeout));
                    read(stack.send(request).await?, timeout).await
                }
                Backend::Kube(client) => answer(client, request, timeout).await,
            }
        })
    }
}

impl From<kube::Client> for Caller {
    fn from(client: kube::Client) -> Self {
        Self(Backend::Kube(client))
    }
}

/// The parts that the layers of one client share.
pub(crate) struct Parts {
    pub(crate) bearer: Bearer,
    pub(crate) link: Arc<Link>,
    pub(crate) metrics: Arc<ClientMetrics>,
    pub(crate) user_agent: HeaderValue,
    pub(crate) profile: Profile,
}

/// All layers of one client. Clones share them.
#[derive(Clone)]
pub(crate) struct Stack(Arc<ThrottleLayer<AttemptLayer<Authorize<Dispatch>>>>);

impl Stack {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { bearer, link, metrics, user_agent, profile } = parts;
        let throttle = match profile.throttle {
            Some(bucket) => Some(bucket),
            // Unlimited clients still stop for the server's 429; the lease stops for nothing.
            None => (!profile.own_connection).then(|| Throttle::unlimited(&profile.agent)),
        };
        let dispatch = Dispatch::new(link, user_agent, profile.fence, profile.dry_run);
        let attempt = AttemptLayer::new(Authorize::new(dispatch, bearer), Arc::clone(&metrics));
        Self(Arc::new(ThrottleLayer::new(attempt, throttle, metrics)))
    }

    /// A client of kube over these layers, on the current runtime.
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

/// The identity of a client towards the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The identity of the kubeconfig. Always the one of informers, leases and the process's own
    /// events.
    Root,
    /// A service account, whose token the root identity requests, and which it creates when absent.
    /// Requests of such a client never carry the root identity's certificate or token.
    ServiceAccount {
        /// Namespace of the service account, `kube-system` in a normal cluster.
        namespace: String,
        /// Name of the service account.
        name: String,
    },
}

/// Purpose and limits of one client.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Suffix of the user agent and the `client` label of its metrics.
    pub agent: String,
    /// Token bucket; `None` is unlimited.
    pub throttle: Option<Throttle>,
    /// Stops writes when leadership ends; `None` never does.
    pub fence: Option<Fence>,
    /// The identity of the client.
    pub identity: Identity,
    /// A connection of its own, a new one after every failure, and nothing that other clients or
    /// the server's 429s cause delays it: for the lease (`rule:the-lease-waits-for-nothing`).
    pub own_connection: bool,
    /// The server judges its writes and stores none of them (`rule:dry-run-stores-nothing`).
    pub dry_run: bool,
}

impl Profile {
    /// The root identity under the name `agent`, without limits, on the shared connection.
    pub fn root(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            throttle: None,
            fence: None,
            identity: Identity::Root,
            own_connection: false,
            dry_run: false,
        }
    }
}
