//! Puts the layers of one client together. Called by `clients`; the order is the contract of the
//! crate's head.

use std::sync::Arc;

use kube::client::ConfigExt as _;
use tower::ServiceBuilder;
use tower::layer::layer_fn;

use crate::call::attempt::Attempt;
use crate::call::dispatch::{Dispatch, GuardedBody};
use crate::call::gate::Gate;
use crate::call::metrics::ClientMetrics;
use crate::error::ConfigError;
use crate::identity::account::ServiceAccount;
use crate::identity::bearer::Bearer;
use crate::profile::Profile;
use crate::throttle::Throttle;
use crate::wire::Wire;

/// What the layers of one client share.
pub(crate) struct Parts {
    pub(crate) wire: Arc<dyn Wire<GuardedBody>>,
    pub(crate) metrics: Arc<ClientMetrics>,
    pub(crate) account: Option<Arc<ServiceAccount>>,
    pub(crate) profile: Profile,
}

/// Builds the client on the current runtime. `config` carries the headers and the root identity's
/// credentials, if any.
pub(crate) fn assemble(config: &kube::Config, parts: Parts) -> Result<kube::Client, ConfigError> {
    let Parts { wire, metrics, account, profile } = parts;
    let throttle = match profile.throttle {
        Some(bucket) => Some(bucket),
        // Unlimited clients still stop for the server's 429; the lease stops for nothing.
        None => (!profile.own_connection).then(|| Throttle::unlimited(&profile.agent)),
    };
    let gate_metrics = Arc::clone(&metrics);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(layer_fn(move |inner| Gate::new(inner, throttle.clone(), Arc::clone(&gate_metrics))))
        .layer(layer_fn(move |inner| Attempt::new(inner, Arc::clone(&metrics))))
        .option_layer(config.auth_layer().map_err(|e| ConfigError::credentials(&e))?)
        .option_layer(account.map(|a| layer_fn(move |inner| Bearer::new(inner, Arc::clone(&a)))))
        .layer(config.extra_headers_layer().map_err(|e| ConfigError::credentials(&e))?)
        .service(Dispatch::new(wire, profile.fence));
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}
