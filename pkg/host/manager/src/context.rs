//! [`Context`]: clients, caches, queues and settings of one run of a controller.

use std::sync::Arc;
use std::time::Duration;

use client::Caller;
use events::Recorder;
use kube_api::Resource;
use objects::{ObjectClient, Schema};
use prometheus::Registry;
use resilience::Fence;
use serving::{Health, Pages, ServingMetrics};
use tokio_util::sync::CancellationToken;
use workqueue::{Backoff, Key, WorkQueue};

use crate::clients::ClientSource;
use crate::failure::Failure;
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
    /// Further clients: for another purpose, or another cluster.
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
    /// For the controller's own checks. Name them after the controller; a later run's check
    /// replaces that of an earlier one.
    pub health: Health,
    /// For the controller's own pages of the secure port, below `/debug/controllers/<name>`; a
    /// later run's page replaces that of an earlier one.
    pub pages: Pages,
    /// For a listener of the controller's own, such as one for admission webhooks.
    pub listeners: ServingMetrics,
    /// Flags for all controllers.
    pub settings: Settings,
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
    /// Nothing that is written will be there: no write shows up in a cache.
    pub dry_run: bool,
}

impl Context {
    /// A queue whose metrics have the label `name`.
    pub fn queue<K: Key>(&self, name: &str, backoff: Backoff) -> WorkQueue<K> {
        WorkQueue::new(name, backoff, &self.work.queues)
    }

    /// The controller's own metrics. `register` is called once per process for each place in the
    /// code that calls this, also when the controller is restarted: later runs get the returned value.
    ///
    /// # Errors
    /// The registry holds one of the names already.
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

    /// Runs a task in addition to the workers. It must end soon after [`Context::stop`]. The manager
    /// waits for it as long as a write may take, then cuts it off and says where it was begun; a
    /// panic in it ends the run.
    #[track_caller]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.work.tasks.spawn(task);
    }
}
