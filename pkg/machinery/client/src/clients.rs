//! The factory of clients. The manager loads it once; controllers, elector, informers and events
//! each build their own client from a profile, and with it their own bucket, identity and user
//! agent.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::header::USER_AGENT;
use parking_lot::Mutex;

use crate::access::Access;
use crate::config::{self, ClientOptions, ConfigError};
use crate::fence::Fence;
use crate::metrics::RequestMetrics;
use crate::service_account::ServiceAccount;
use crate::stack::{self, Parts};
use crate::throttle::Throttle;
use crate::user_agent::user_agent;

/// Who a client is to the API server (`host.md` 4.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The identity of the kubeconfig. Always the one of informers, leases and the process's own
    /// events.
    Root,
    /// A service account, whose token the root identity requests, and which it creates when absent.
    /// Requests of such a client never carry the root identity's certificate or token.
    ServiceAccount {
        /// Its namespace, in a normal cluster `kube-system`.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What one client is for.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Suffix of the user agent and the `client` label of its metrics.
    pub agent: String,
    /// Token bucket; `None` is unlimited.
    pub throttle: Option<Throttle>,
    /// Stops writes when leadership ends; `None` never does.
    pub fence: Option<Fence>,
    /// Whether failed attempts are repeated by stock's rule (`host.md` 4.3). Never for a client
    /// whose writes may not be repeated blindly, as those that PATCH Nodes.
    pub retry: bool,
    /// Who it is.
    pub identity: Identity,
    /// A connection of its own, opened anew after every failure, and nothing that other clients or
    /// the server's 429s cause delays it: for the lease (`host.md` 3.4).
    pub own_connection: bool,
}

/// The factory: one parsed configuration, shared connections, one set of metrics. Clones share all
/// of it.
#[derive(Clone)]
pub struct Clients(Arc<Inner>);

struct Inner {
    options: ClientOptions,
    host: String,
    server: String,
    metrics: RequestMetrics,
    root: Access,
    bearer: OnceLock<Access>,
    accounts: Mutex<HashMap<Identity, Arc<ServiceAccount>>>,
}

impl Clients {
    /// Reads the configuration and the files it names, and registers the metrics. No network.
    ///
    /// # Errors
    /// [`ConfigError`] names the file or flag to mend.
    pub async fn load(o: &ClientOptions, r: &prometheus::Registry) -> Result<Self, ConfigError> {
        let config = config::resolve(o).await?;
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let server = config.cluster_url.to_string();
        let root = Access::new(config).map_err(|e| e.in_file(o.kubeconfig.as_deref()))?;
        Ok(Self(Arc::new(Inner {
            options: o.clone(),
            host,
            server,
            metrics: RequestMetrics::new(r)?,
            root,
            bearer: OnceLock::new(),
            accounts: Mutex::default(),
        })))
    }

    /// Builds a client that lives on the current tokio runtime. No network: a service account's
    /// token is requested when the first request needs it.
    pub fn build(&self, p: Profile) -> Result<kube::Client, ConfigError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ConfigError::NoRuntime);
        }
        let account = match &p.identity {
            Identity::Root => None,
            Identity::ServiceAccount { namespace, name } => {
                Some(self.account(&p.identity, namespace, name)?)
            }
        };
        let access = if account.is_some() { self.bearer()? } else { &self.0.root };
        let mut config = access.config.clone();
        config.headers.push((USER_AGENT, user_agent(&self.0.options, &p.agent)?));
        let parts = Parts {
            wire: access.wire(p.own_connection)?,
            metrics: Arc::new(self.0.metrics.for_client(&self.0.host, &p.agent)),
            account,
            profile: p,
        };
        stack::assemble(&config, parts)
    }

    /// Address of the API server, for logs.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    fn bearer(&self) -> Result<&Access, ConfigError> {
        if let Some(access) = self.0.bearer.get() {
            return Ok(access);
        }
        let access = self.0.root.without_credentials()?;
        Ok(self.0.bearer.get_or_init(|| access))
    }

    /// One token per service account, however many clients use it.
    fn account(
        &self,
        identity: &Identity,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<ServiceAccount>, ConfigError> {
        if let Some(known) = self.0.accounts.lock().get(identity) {
            return Ok(Arc::clone(known));
        }
        // Un-bucketed: requesting tokens through a work bucket made stock's start slow (host.md
        // 3.1).
        let root = self.build(Profile {
            agent: self.0.options.product.clone(),
            throttle: None,
            fence: None,
            retry: false,
            identity: Identity::Root,
            own_connection: false,
        })?;
        let account = Arc::new(ServiceAccount::new(root, namespace, name));
        Ok(Arc::clone(self.0.accounts.lock().entry(identity.clone()).or_insert(account)))
    }
}

#[cfg(test)]
mod tests;
