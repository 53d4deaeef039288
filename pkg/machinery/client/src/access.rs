//! One way to be known to the API server: a configuration with its credentials, and the pool of
//! connections that its clients share. There are two per process: the root identity's, and one
//! without credentials on the connection, for the clients that bring a service account's token with
//! each request.

use std::sync::Arc;

use kube::config::AuthInfo;

use crate::call::dispatch::GuardedBody;
use crate::error::ConfigError;
use crate::wire::{self, Protocol, Wire};

/// Configuration and shared connections of one identity.
pub(crate) struct Access {
    pub(crate) config: kube::Config,
    shared: Arc<dyn Wire<GuardedBody>>,
}

impl Access {
    /// Reads the certificates that `config` names. No network.
    pub(crate) fn new(config: kube::Config) -> Result<Self, ConfigError> {
        let shared = wire::open(&config, Protocol::Negotiated)?;
        Ok(Self { config, shared })
    }

    /// The same server and trust without any of our credentials: no client certificate, token or
    /// impersonation.
    pub(crate) fn without_credentials(&self) -> Result<Self, ConfigError> {
        let mut config = self.config.clone();
        config.auth_info = AuthInfo::default();
        Self::new(config)
    }

    /// The shared pool, or a new one for a client that must not wait behind others.
    pub(crate) fn wire(&self, own: bool) -> Result<Arc<dyn Wire<GuardedBody>>, ConfigError> {
        if own { wire::open(&self.config, Protocol::Http1) } else { Ok(Arc::clone(&self.shared)) }
    }
}
