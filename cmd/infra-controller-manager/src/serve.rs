//! The HTTPS server of the process: bound before anything touches the network, stopped last. The API servers of
//! `--authentication-kubeconfig` and `--authorization-kubeconfig` guard it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use client::{
    Caller, ClientOptions, Clients, ConfigError, Profile, RequestMetrics, Throttle, ThrottleMetrics,
};
use delegated_auth::{Delegation, LookupError, Reviewers};
use prometheus::Registry;
use serving::{Guard, ListenerOptions, Pages, Server, ServingMetrics};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::settings::ServingSettings;

/// Bound sockets, whose peers wait in the kernel.
pub(crate) struct Bound {
    server: Server,
    metrics: ServingMetrics,
}

/// The server and its task; no task with `--secure-port=0`.
#[derive(Default)]
pub(crate) struct Serving {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Bound {
    /// Takes the port at every address and loads the certificate.
    pub(crate) async fn new(options: &ListenerOptions, metrics: &ServingMetrics) -> Result<Self> {
        let server = Server::bind(options).await?;
        Ok(Self { server, metrics: metrics.clone() })
    }

    /// Serves these pages, those that controllers add later included.
    pub(crate) fn serve(self, pages: &Pages, guard: Arc<dyn Guard>) -> Serving {
        let Self { server, metrics } = self;
        let (stop, pages) = (CancellationToken::new(), pages.clone());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { server.serve(pages, guard, &metrics, stopped).await });
        Serving { stop, task: Some(task) }
    }
}

impl Serving {
    /// Lets open requests end, for a moment.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let Some(task) = self.task else { return };
        if let Err(panicked) = task.await {
            error!(err = %panicked, "HTTPS server ended with an error");
        }
    }
}

/// Requests per second for reviews of one kind, and at once: those of Kubernetes' components.
const RATE: (f64, u32) = (200.0, 400);

/// Inputs that the clients of this process share.
pub(crate) struct Common<'a> {
    pub(crate) options: &'a ClientOptions,
    /// Clients of `--kubeconfig`.
    pub(crate) clients: &'a Clients,
    pub(crate) requests: &'a RequestMetrics,
    pub(crate) throttles: &'a ThrottleMetrics,
}

/// Makes the guard. Nothing is asked yet.
pub(crate) async fn guard(
    settings: &ServingSettings,
    common: &Common<'_>,
    registry: &Registry,
) -> Result<Arc<Delegation>> {
    let authentication = settings.authentication_kubeconfig.as_deref();
    let authorization = settings.authorization_kubeconfig.as_deref();
    let reviewing = common.clients_of(authentication, "--authentication-kubeconfig").await?;
    if reviewing.is_none() {
        warn!(
            "No --authentication-kubeconfig outside a pod: bearer tokens are refused, and the \
             CAs of clients are not read from the cluster"
        );
    }
    let deciding = if authorization == authentication {
        reviewing.clone()
    } else {
        common.clients_of(authorization, "--authorization-kubeconfig").await?
    };
    if deciding.is_none() {
        warn!(
            "No --authorization-kubeconfig outside a pod: requests that need authorization are \
             refused, /metrics too"
        );
    }
    let reviewers = Reviewers {
        authentication: common.caller(reviewing, "authentication")?,
        authorization: common.caller(deciding, "authorization")?,
    };
    Ok(Arc::new(Delegation::load(&settings.delegation, &reviewers, registry).await?))
}

impl Common<'_> {
    /// Clients of a kubeconfig, which may be the one of the process; without one those of the pod,
    /// and none outside of a pod.
    async fn clients_of(&self, path: Option<&Path>, flag: &str) -> Result<Option<Clients>> {
        let own = self.options.master.is_none() && path == self.options.kubeconfig.as_deref();
        if own {
            return Ok(Some(self.clients.clone()));
        }
        let kubeconfig = path.map(PathBuf::from);
        let options = ClientOptions { kubeconfig, master: None, ..self.options.clone() };
        match Clients::load(&options, self.requests).await {
            Ok(clients) => Ok(Some(clients)),
            Err(ConfigError::NotInCluster) => Ok(None),
            Err(ConfigError::Kubeconfig { path, problem }) => {
                let path = path.display();
                bail!("cannot use the kubeconfig {path} given with {flag}: {problem}")
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A client without the limits and the fence of controllers.
    fn caller(&self, clients: Option<Clients>, agent: &str) -> Result<Option<Caller>> {
        let Some(clients) = clients else { return Ok(None) };
        let throttle = Throttle::new(agent, RATE.0, RATE.1, self.throttles)?;
        Ok(Some(clients.caller(Profile { throttle, ..Profile::root(agent) })?))
    }
}

/// Follows the CAs of `guard`. What the API server refuses at first ends the process through `end`.
pub(crate) async fn follow(guard: Arc<Delegation>, end: impl FnOnce()) -> LookupError {
    let refused = guard.follow().await;
    end();
    refused
}
