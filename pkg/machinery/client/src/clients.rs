//! The factory of clients. `cmd` loads it once; controllers, elector, informers and events each
//! build their own client from a profile, and with it their own bucket, identity and user
//! agent.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::header::USER_AGENT;
use parking_lot::Mutex;

use crate::access::Access;
use crate::call::metrics::RequestMetrics;
use crate::config::{self, ClientOptions};
use crate::error::ConfigError;
use crate::identity::account::ServiceAccount;
use crate::identity::user_agent::user_agent;
use crate::profile::{Identity, Profile};
use crate::stack::{self, Parts};

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
    /// Reads the configuration and the files it names. No network. A process that talks to several
    /// servers loads several, with the same `metrics`, which tell them apart by the label `host`.
    ///
    /// # Errors
    /// [`ConfigError`] names the file or flag to mend.
    pub async fn load(
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, ConfigError> {
        let config = config::resolve(options).await?;
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let server = config.cluster_url.to_string();
        let root = Access::new(config).map_err(|e| e.in_file(options.kubeconfig.as_deref()))?;
        Ok(Self(Arc::new(Inner {
            options: options.clone(),
            host,
            server,
            metrics: metrics.clone(),
            root,
            bearer: OnceLock::new(),
            accounts: Mutex::default(),
        })))
    }

    /// Builds a client that lives on the current tokio runtime. No network: a service account's
    /// token is requested when the first request needs it.
    pub fn build(&self, profile: Profile) -> Result<kube::Client, ConfigError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ConfigError::NoRuntime);
        }
        let account = match &profile.identity {
            Identity::Root => None,
            Identity::ServiceAccount { namespace, name } => {
                Some(self.account(&profile.identity, namespace, name)?)
            }
        };
        let access = if account.is_some() { self.bearer()? } else { &self.0.root };
        let mut config = access.config.clone();
        config.headers.push((USER_AGENT, user_agent(&self.0.options, &profile.agent)?));
        let parts = Parts {
            wire: access.wire(profile.own_connection)?,
            metrics: Arc::new(self.0.metrics.for_client(&self.0.host, &profile.agent)),
            account,
            profile,
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
        // Without a bucket: requesting tokens through a work bucket makes stock's start slow.
        let root = self.build(Profile::root(&self.0.options.product))?;
        let account = Arc::new(ServiceAccount::new(root, namespace, name));
        Ok(Arc::clone(self.0.accounts.lock().entry(identity.clone()).or_insert(account)))
    }
}

#[cfg(test)]
mod tests;
