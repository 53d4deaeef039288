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
use crate::identity::account::ServiceAccount;
use crate::identity::bearer::Bearer;
use crate::identity::credentials::Credentials;
use crate::identity::root::{Address, Authorize};
use crate::profile::Profile;
use crate::throttle::Throttle;

/// What the layers of one client share.
pub(crate) struct Parts {
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) link: Arc<Link<GuardedBody>>,
    pub(crate) metrics: Arc<ClientMetrics>,
    /// Instead of the root identity.
    pub(crate) account: Option<Arc<ServiceAccount>>,
    pub(crate) user_agent: HeaderValue,
    pub(crate) profile: Profile,
}

/// Builds the client on the current runtime.
pub(crate) fn assemble(parts: Parts) -> kube::Client {
    let Parts { credentials, link, metrics, account, user_agent, profile } = parts;
    let throttle = match profile.throttle {
        Some(bucket) => Some(bucket),
        // Unlimited clients still stop for the server's 429; the lease stops for nothing.
        None => (!profile.own_connection).then(|| Throttle::unlimited(&profile.agent)),
    };
    let gate_metrics = Arc::clone(&metrics);
    let address = Arc::clone(&credentials);
    let root = account.is_none().then_some(credentials);
    let service = ServiceBuilder::new()
        .layer(layer_fn(move |inner| Address::new(inner, Arc::clone(&address))))
        .layer(layer_fn(move |inner| Gate::new(inner, throttle.clone(), Arc::clone(&gate_metrics))))
        .layer(layer_fn(move |inner| Attempt::new(inner, Arc::clone(&metrics))))
        .option_layer(root.map(|c| layer_fn(move |inner| Authorize::new(inner, Arc::clone(&c)))))
        .option_layer(account.map(|a| layer_fn(move |inner| Bearer::new(inner, Arc::clone(&a)))))
        .service(Dispatch::new(link, user_agent, profile.fence));
    kube::Client::new(service, "default")
}
