//! Puts the layers of one client together. Called by `clients`; the order is the contract of the
//! crate's head.

use std::sync::Arc;

use http::HeaderValue;
use tower::ServiceBuilder;
use tower::layer::layer_fn;

use crate::call::attempt::Attempt;
use crate::call::dispatch::{Dispatch, GuardedBody};
use crate::call::gate::Gate;
use crate::call::link::Link;
use crate::call::metrics::ClientMetrics;
use crate::identity::authorize::{Authorize, Bearer};
use crate::profile::Profile;
use crate::throttle::Throttle;

/// What the layers of one client share.
pub(crate) struct Parts {
    pub(crate) bearer: Bearer,
    pub(crate) link: Arc<Link<GuardedBody>>,
    pub(crate) metrics: Arc<ClientMetrics>,
    pub(crate) user_agent: HeaderValue,
    pub(crate) profile: Profile,
}

/// Builds the client on the current runtime.
pub(crate) fn assemble(parts: Parts) -> kube::Client {
    let Parts { bearer, link, metrics, user_agent, profile } = parts;
    let throttle = match profile.throttle {
        Some(bucket) => Some(bucket),
        // Unlimited clients still stop for the server's 429; the lease stops for nothing.
        None => (!profile.own_connection).then(|| Throttle::unlimited(&profile.agent)),
    };
    let gate_metrics = Arc::clone(&metrics);
    let service = ServiceBuilder::new()
        .layer(layer_fn(move |inner| Gate::new(inner, throttle.clone(), Arc::clone(&gate_metrics))))
        .layer(layer_fn(move |inner| Attempt::new(inner, Arc::clone(&metrics))))
        .layer(layer_fn(move |inner| Authorize::new(inner, bearer.clone())))
        .service(Dispatch::new(link, user_agent, profile.fence));
    kube::Client::new(service, "default")
}
