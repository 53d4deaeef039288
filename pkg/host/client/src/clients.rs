//! The factory of clients. `cmd` loads it once; controllers, elector, informers and events each
//! build their own client from a profile, and with it their own bucket, identity and user
//! agent.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use transport::{Protocol, TlsConfigs, TlsError, Wire};

use crate::call::dispatch::Link;
use crate::call::metrics::RequestMetrics;
use crate::caller::{Caller, Identity, Parts, Profile, Stack};
use crate::config::{ClientOptions, Source, process_environment};
use crate::error::{ConfigError, KubeconfigError};
use crate::identity::credentials::Credentials;
use crate::identity::snapshot::Shown;
use crate::identity::{Bearer, ServiceAccount};

/// The factory: one parsed configuration, shared connections, one set of metrics. Clones share all
/// of it.
#[derive(Clone)]
pub struct Clients(Arc<Inner>);

struct Inner {
    options: ClientOptions,
    host: String,
    server: String,
    metrics: RequestMetrics,
    credentials: Arc<Credentials>,
    /// Credentials of the root identity.
    root: Arc<Link>,
    /// For requests that bring a service account's token.
    bare: Arc<Link>,
    accounts: Mutex<HashMap<Identity, Arc<ServiceAccount>>>,
}

impl Clients {
    /// Reads the configuration and the files it names, and follows them from then on, on the
    /// current runtime. No network of ours; an exec plugin is
    /// waited for up to 10 s. A process that talks to several servers loads several, with the same
    /// `metrics`, which tell them apart by the label `host`.
    pub async fn load(
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, ConfigError> {
        let source = Source::of(options, &process_environment)?;
        Self::from_source(source, options, metrics).await
    }

    /// Clients of the server of the current context of a kubeconfig that `kube` has read for whoever
    /// runs the process, and has made its paths absolute. It is not followed. Of `options` only the
    /// names count.
    pub async fn from_own(
        kubeconfig: Kubeconfig,
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, ConfigError> {
        Self::from_source(Source::Own(Arc::new(kubeconfig)), options, metrics).await
    }

    /// Clients of the server at `host` and `port` with the files `token` and `ca.crt` of `folder`,
    /// both followed: what [`load`](Self::load) does in a pod, where the kubelet puts them.
    pub async fn of_pod(
        folder: &Path,
        host: &str,
        port: &str,
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, ConfigError> {
        let (folder, host, port) = (folder.to_owned(), host.to_owned(), port.to_owned());
        Self::from_source(Source::Pod { folder, host, port }, options, metrics).await
    }

    /// Clients of the server at `options.master` whose requests go over `wire` and not over connections:
    /// for simulations. Nothing is read.
    pub fn over(
        wire: Wire,
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, ConfigError> {
        let address = options.master.as_deref().unwrap_or_default();
        let plugins = metrics.plugins.clone();
        let credentials = Credentials::of_address(address, Arc::default(), plugins)?;
        Self::new(credentials, Some(wire), options, metrics).map_err(|source| {
            ConfigError::Object(KubeconfigError::Tls { field: "certificate-authority", source })
        })
    }

    async fn from_source(
        source: Source,
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, ConfigError> {
        let tls = Arc::new(TlsConfigs::default());
        let fail = |source: &Source, error| {
            source.blame(KubeconfigError::Tls { field: "certificate-authority", source: error })
        };
        let (plugins, certificates) = (metrics.plugins.clone(), &metrics.certificates);
        let credentials =
            Credentials::load(source.clone(), &process_environment, tls, plugins, certificates);
        let credentials = credentials.await?;
        Self::new(credentials, None, options, metrics).map_err(|error| fail(&source, error))
    }

    fn new(
        credentials: Arc<Credentials>,
        wire: Option<Wire>,
        options: &ClientOptions,
        metrics: &RequestMetrics,
    ) -> Result<Self, TlsError> {
        let link = |shown| {
            let link =
                Link::new(Arc::clone(&credentials), shown, Protocol::Negotiated, wire.clone());
            link.map(Arc::new)
        };
        let (root, bare) = (link(Shown::Certificate)?, link(Shown::Nothing)?);
        let server = credentials.current().server.clone();
        Ok(Self(Arc::new(Inner {
            options: options.clone(),
            host: server.authority().map(ToString::to_string).unwrap_or_default(),
            server: server.to_string(),
            metrics: metrics.clone(),
            credentials,
            root,
            bare,
            accounts: Mutex::default(),
        })))
    }

    /// Builds a client that lives on the current tokio runtime. No network: a service account's
    /// token is requested when the first request needs it.
    pub fn build(&self, profile: Profile) -> Result<kube::Client, ConfigError> {
        Ok(self.caller(profile)?.kube())
    }

    /// A client for raw requests, made as by [`Clients::build`]; [`Caller::kube`] is the same client for kube's API.
    pub fn caller(&self, profile: Profile) -> Result<Caller, ConfigError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ConfigError::NoRuntime);
        }
        let account = match &profile.identity {
            Identity::Root => None,
            Identity::ServiceAccount { namespace, name } => {
                Some(self.account(&profile.identity, namespace, name)?)
            }
        };
        let shared = if account.is_some() { &self.0.bare } else { &self.0.root };
        let link = if profile.own_connection {
            let own = shared.another(Protocol::Http1);
            let field = "certificate-authority";
            Arc::new(
                own.map_err(|source| ConfigError::Object(KubeconfigError::Tls { field, source }))?,
            )
        } else {
            Arc::clone(shared)
        };
        Ok(Caller::of(Stack::new(Parts {
            bearer: Bearer::new(Arc::clone(&self.0.credentials), account),
            link,
            metrics: Arc::new(self.0.metrics.for_client(&self.0.host, &profile.agent)),
            user_agent: user_agent(&self.0.options, &profile.agent)?,
            profile,
        })))
    }

    /// Address of the API server when the configuration was first read, for logs.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// When the client certificate of the configuration ends, in seconds since 1970; `None` where it
    /// has none.
    pub fn certificate_end(&self) -> Option<u64> {
        self.0.credentials.current().certificate_end()
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

/// `<product>/<version> (<os>/<arch>) kubernetes/<commit>/<suffix>`, version up to the first `-`,
/// commit of 7 characters.
pub(crate) fn user_agent(o: &ClientOptions, suffix: &str) -> Result<HeaderValue, ConfigError> {
    let version = o.version.split('-').next().unwrap_or_default();
    let commit: String = o.commit.chars().take(7).collect();
    let text = format!(
        "{}/{version} ({}) kubernetes/{commit}/{suffix}",
        o.product,
        kube_api::go::platform(),
    );
    HeaderValue::from_str(&text).map_err(|_| ConfigError::UserAgent(text))
}

#[cfg(test)]
mod tests;
