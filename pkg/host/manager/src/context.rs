//! [`Context`]: clients, caches, queues and settings of one run of a controller; [`ClientSource`]:
//! further clients for one that needs more; [`Failure`]: why a run ended; [`retry`]: what a failed
//! write means to the key that is worked on.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use client::{
    Caller, Clients, ConfigError, Identity, Profile, Throttle, ThrottleError, ThrottleMetrics,
};
use election::Won;
use events::{ObjectRef, Recorder};
use kube_api::Resource;
use objects::{ObjectClient, Schema, Why};
use prometheus::Registry;
use resilience::Fence;
use resilience::panics::Panic;
use serving::{Health, Pages, ServingMetrics};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workqueue::{Backoff, Key, Retry, TooManyPanics, WorkQueue};

use crate::informers::Informers;
use crate::permissions::Permission;
use crate::work::Work;

/// One controller's means for one run. Clones are the same run.
#[derive(Clone)]
pub struct Context {
    /// Acts as the controller's identity, behind its own throttle and the leader's fence; it never
    /// repeats a request by itself.
    pub client: kube::Client,
    /// [`Context::client`] for raw requests, without the queue and the task of kube's: for writes by
    /// the thousand.
    pub caller: Caller,
    /// Further clients, for another purpose.
    pub clients: ClientSource,
    /// Whether this process still leads. Its clients ask it by themselves; whatever changes
    /// something in another way, such as a call to a cloud, asks it before each call.
    pub fence: Fence,
    /// Identity of this process among its replicas.
    pub identity: Arc<str>,
    /// Shared caches.
    pub informers: Informers,
    /// Records events under the controller's component name.
    pub recorder: Recorder,
    /// Registers the controller's own health checks. Name them after the controller; a later run's check replaces that
    /// of an earlier one.
    pub health: Health,
    /// Adds the controller's own pages to the secure port, below `/debug/controllers/<name>`; a later run's page
    /// replaces that of an earlier one.
    pub pages: Pages,
    /// Metrics for a listener of the controller's own, such as one for admission webhooks.
    pub listeners: ServingMetrics,
    /// Flags for all controllers.
    pub settings: Settings,
    /// The leader's lease when this process won it; without leader election the default.
    pub won: Won,
    /// Cancelled when this run is to stop.
    pub stop: CancellationToken,
    pub(crate) registry: Registry,
    pub(crate) work: Work,
}

/// Flags for all controllers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `--kube-api-qps` and `--kube-api-burst`: the rate of [`Context::client`].
    pub work_rate: (f64, u32),
    /// How long a write may take before it is given up; the fence shortens it as the lease ends.
    pub write_timeout: Duration,
    /// Whether writes are not stored: no write shows up in a cache.
    pub dry_run: bool,
    /// The Lease of the leader, for events that are about no other object.
    pub lease: ObjectRef,
}

impl Context {
    /// A queue whose metrics have the label `name`.
    pub fn queue<K: Key>(&self, name: &str, backoff: Backoff) -> WorkQueue<K> {
        WorkQueue::new(name, backoff, &self.work.queues)
    }

    /// The controller's own metrics. `register` is called once per process for each place in the
    /// code that calls this, also when the controller is restarted: later runs get the returned value.
    #[track_caller]
    pub fn metrics<M: Clone + Send + 'static>(
        &self,
        register: impl FnOnce(&Registry) -> Result<M, prometheus::Error>,
    ) -> Result<M, Failure> {
        Ok(self.work.registered.get_or_make(|| register(&self.registry))?)
    }

    /// Checks these rights of the controller's identity until the run ends, and reports those that
    /// are missing: for a controller that needs them only now, as it has found work.
    pub fn needs(&self, rights: &[Permission]) {
        self.spawn(self.work.rights.clone().run(rights.to_vec(), self.stop.clone()));
    }

    /// Reads and writes the whole objects of a kind through [`Context::client`]: the controller's
    /// name is the field manager, and [`Settings::write_timeout`] the limit of one attempt. When
    /// the run ends, the manager waits until the server cannot carry out any write of it any more
    /// (rule:no-release-with-open-writes).
    pub fn objects<S: Schema>(&self, resource: Resource) -> ObjectClient<S> {
        self.objects_of(self.client.clone(), resource)
    }

    /// Reads and writes the whole objects of a kind through another client, such as one of a member
    /// cluster; as [`Context::objects`] otherwise.
    pub fn objects_of<S: Schema>(
        &self,
        client: kube::Client,
        resource: Resource,
    ) -> ObjectClient<S> {
        let (manager, limit) = (self.work.controller, self.settings.write_timeout);
        ObjectClient::new(client, resource, manager, limit).noting(&self.work.open_writes)
    }

    /// Notes a write of unknown outcome, until the server has given it up: the lease is not released before.
    pub fn note_open_write(&self, settled_at: Instant) {
        self.work.open_writes.note(settled_at);
    }

    /// Runs a task in addition to the workers. It must end soon after [`Context::stop`]. The manager
    /// waits for it as long as a write may take, then cuts it off and says where it was begun; a
    /// panic in it ends the run.
    #[track_caller]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.work.tasks.spawn(task);
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The rate is not valid.
    #[error(transparent)]
    Rate(#[from] ThrottleError),
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Makes clients that belong to one controller.
#[derive(Clone)]
pub struct ClientSource {
    clients: Clients,
    identity: Identity,
    agent: String,
    fence: Fence,
    throttle_metrics: ThrottleMetrics,
    dry_run: bool,
}

impl ClientSource {
    /// The source of the controller that acts as this service account of kube-system, or as the
    /// process itself.
    pub(crate) fn new(
        clients: Clients,
        account: &str,
        by_account: bool,
        fence: Fence,
        throttle_metrics: ThrottleMetrics,
    ) -> Self {
        let (agent, identity) = if by_account {
            let identity =
                Identity::ServiceAccount { namespace: "kube-system".into(), name: account.into() };
            (format!("system:serviceaccount:kube-system:{account}"), identity)
        } else {
            (account.to_owned(), Identity::Root)
        };
        Self { clients, identity, agent, fence, throttle_metrics, dry_run: false }
    }

    /// This source for a process that stores nothing but its lease.
    pub(crate) fn with_dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// A client of this cluster with the controller's identity, behind the leader's fence and a
    /// throttle of its own. `purpose` names the throttle in metrics and logs; a negative `qps` is
    /// unlimited.
    pub fn for_purpose(
        &self,
        purpose: &str,
        (qps, burst): (f64, u32),
    ) -> Result<kube::Client, ClientError> {
        Ok(self.caller(purpose, (qps, burst))?.kube())
    }

    /// A client as [`for_purpose`](Self::for_purpose) makes it, for raw requests.
    pub fn caller(&self, purpose: &str, (qps, burst): (f64, u32)) -> Result<Caller, ClientError> {
        let throttle = Throttle::new(purpose, qps, burst, &self.throttle_metrics)?;
        let (fence, dry_run) = (Some(self.fence.clone()), self.dry_run);
        Ok(self.clients.caller(Profile { throttle, fence, dry_run, ..self.unfenced_profile() })?)
    }

    /// The factory for clients of this cluster, for a profile of the controller's own.
    pub fn factory(&self) -> &Clients {
        &self.clients
    }

    /// Reads and questions of the controller that no throttle may delay.
    pub(crate) fn unthrottled(&self) -> Result<kube::Client, ClientError> {
        Ok(self.clients.build(self.unfenced_profile())?)
    }

    fn unfenced_profile(&self) -> Profile {
        Profile { identity: self.identity.clone(), ..Profile::root(&self.agent) }
    }
}

/// Why the host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A mistake of ours: two parts share the name of a metric.
    #[error("cannot register the metrics of the controllers: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rate or the configuration of a client cannot be used.
    #[error("cannot make a client for the controllers: {0}")]
    Client(#[from] ClientError),
}

/// Why a controller ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A mistake of ours: two parts share the name of a metric.
    #[error("cannot register metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rate or the configuration of a client cannot be used.
    #[error("cannot make a client: {0}")]
    Client(#[from] ClientError),
    /// The first list did not come.
    #[error("cannot start: the caches were not filled within {0:?}")]
    CachesNotFilled(Duration),
    /// Many keys panicked, so the state of the controller is not trusted any more.
    #[error(transparent)]
    TooManyPanics(#[from] TooManyPanics),
    /// The cached state of its informers is void.
    #[error("cached state is no longer valid, restarting the controller: {0}")]
    Void(String),
    /// The controller, or a task of it, panicked.
    #[error("cannot continue: it panicked: {0}")]
    Panicked(Panic),
    /// A reason of the controller's own.
    #[error(transparent)]
    Controller(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// A reason of the controller's own.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Controller(reason.into())
    }
}

/// How a key is tried again whose write ended so. Conflicts and objects that are gone are expected:
/// the cache will show what is there now.
pub fn retry(error: objects::Error) -> Retry {
    let pause = error.retry_after();
    match &error.why {
        Why::Throttled { .. } => Retry::throttled(error, pause),
        Why::Conflict { .. } | Why::Owned { .. } | Why::Gone | Why::Deleting | Why::Exists => {
            Retry::expected(error)
        }
        _ => Retry::new(error).at_least(pause.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
