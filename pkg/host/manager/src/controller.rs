//! [`Controller`] and [`Runner`]: the interface between the manager and a controller group.
//! [`HostOptions`] and [`Hosted`]: what the host is given.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client::{Clients, ThrottleMetrics};
use events::{EventMetrics, ObjectRef};
use flags::{Problem, Spec, Values};
use futures::future::BoxFuture;
use informer::Format;
use prometheus::Registry;
use resilience::Fence;
use serving::{Health, Pages, ServingMetrics};

use crate::command::Command;
use crate::context::{Context, Failure};
use crate::dormancy::Awaited;
use crate::informers::Informers;
use crate::permissions::Permission;

/// A controller that the binary hosts.
pub trait Controller: Send + Sync {
    /// Canonical name, such as `node-ipam-controller`. Its log lines and metrics carry it.
    fn name(&self) -> &'static str;

    /// Other names that `--controllers` takes for it; the first labels
    /// `running_managed_controllers`.
    fn aliases(&self) -> &'static [&'static str];

    /// Whether it runs without being named in `--controllers`.
    fn is_on_by_default(&self) -> bool {
        true
    }

    /// Commands of the program about its objects.
    fn commands(&self) -> &'static [Command] {
        &[]
    }

    /// The CRDs of its kinds, which `--install-crds` installs.
    fn crds(&self) -> &'static [&'static str] {
        &[]
    }

    /// The label that the flags decide of one of its CRDs.
    fn crd_label(&self, _: &Values) -> Result<Option<CrdLabel>, Problem> {
        Ok(None)
    }

    /// The flags that it owns.
    fn flags(&self) -> &'static [Spec];

    /// Judges the command line before anything is started. No I/O, but for files that belong to the
    /// command line.
    fn configure(&self, values: &Values) -> Result<Configured, Vec<Problem>>;
}

/// A choice between two labels of a CRD that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdLabel {
    /// The label that is wanted.
    pub key: String,
    /// Value of the label.
    pub value: &'static str,
    /// The label that is taken away.
    pub other: String,
}

/// A controller that accepts the command line.
pub struct Configured {
    /// Warnings for the log, one sentence each.
    pub warnings: Vec<String>,
    /// Whether it runs with this command line.
    pub activity: Activity,
}

/// Whether there is anything to run.
pub enum Activity {
    /// Enabled, but the command line gives it nothing to do.
    Idle {
        /// For the log.
        reason: String,
    },
    /// To be run where [`Runner::placement`] says.
    Run(Arc<dyn Runner>),
}

impl Configured {
    /// To be run.
    pub fn run(runner: impl Runner + 'static) -> Self {
        Self { warnings: Vec::new(), activity: Activity::Run(Arc::new(runner)) }
    }

    /// A controller that is not started, for this reason.
    pub fn idle(reason: impl Into<String>) -> Self {
        Self { warnings: Vec::new(), activity: Activity::Idle { reason: reason.into() } }
    }

    /// Sentences for the log.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// In which replicas of the process a controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the one that leads, behind the leader's fence.
    Leader,
    /// In every one, from its start to its end, whoever leads. Its fence is its own and closed at
    /// first: it opens that by a Lease of its own (`rule:every-replica-has-its-own-fence`).
    EveryReplica,
}

/// The running half of a controller.
pub trait Runner: Send + Sync {
    /// In which replicas it runs.
    fn placement(&self) -> Placement {
        Placement::Leader
    }

    /// Service account in kube-system that it acts as under `--use-service-account-credentials`.
    fn service_account(&self) -> &'static str;

    /// Rights that the identity needs from the start on; missing ones are reported.
    /// What it needs once there is work for it is told by [`Context::needs`].
    fn permissions(&self) -> &'static [Permission];

    /// Rights in the namespace of the Lease without which only a part of its work is off, with the
    /// manifest that grants them. `check` warns where they are missing.
    fn optional_permissions(&self) -> Option<(&'static [Permission], &'static str)> {
        None
    }

    /// The custom kinds that it waits for, with what it needs once one of them is served.
    fn awaited(&self) -> Vec<Awaited> {
        Vec::new()
    }

    /// The manifest that grants them to that account, relative to the repository; `None` when a
    /// ClusterRole `system:controller:<account>` does, which every cluster has.
    fn manifest(&self) -> Option<&'static str> {
        None
    }

    /// Whether it can be tried with writes that store nothing; one that waits to see what it wrote
    /// cannot.
    fn can_run_dry(&self) -> bool {
        false
    }

    /// The paths of its pages; until it brings them, they say that it is not at work in this
    /// process.
    fn pages(&self) -> &'static [&'static str] {
        &[]
    }

    /// Source component of its events.
    fn event_component(&self) -> &'static str;

    /// Whether a leader before this process may have written what this controller could contradict,
    /// as far as the cluster shows: asked when there is no leader's Lease, whose age would tell how
    /// long to wait for one. `client` reads as the process. Unless a controller knows better, yes.
    fn may_have_predecessor(
        &self,
        client: kube::Client,
    ) -> BoxFuture<'static, Result<bool, Failure>> {
        drop(client);
        Box::pin(std::future::ready(Ok(true)))
    }

    /// Begins to prepare for [`Runner::run`] while another process leads, with informers only: nothing is
    /// written. Called once, before the first run.
    fn stand_by(&self, _: &Informers) {}

    /// Runs until `context.stop` is cancelled and all work under way has ended. Called again with
    /// a fresh context after a failure; nothing of the failed run may be reused.
    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>>;
}

/// How a controller left things when it was asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Writes that the server may yet carry out; while there are any the lease must not be
    /// released (rule:no-release-with-open-writes).
    pub unknown_writes: usize,
}

/// Settings and resources of all controllers.
pub struct HostOptions {
    /// Makes the clients.
    pub clients: Clients,
    /// All metrics.
    pub registry: Registry,
    /// All checks.
    pub health: Health,
    /// Pages of the secure port.
    pub pages: Pages,
    /// Metrics of listeners that controllers have in addition to the secure port.
    pub listeners: ServingMetrics,
    /// Closed once leadership is lost: no write passes it then.
    pub fence: Fence,
    /// Name of this process in `running_managed_controllers`.
    pub product: &'static str,
    /// Identity of this process, for events.
    pub identity: String,
    /// Encoding of kinds with protobuf.
    pub format: Format,
    /// `--min-resync-period`; with zero no cache delivers its objects again.
    pub min_resync: Duration,
    /// Whether each controller acts as a service account of its own.
    pub service_accounts: bool,
    /// `--kube-api-qps` and `--kube-api-burst`, for each controller.
    pub work_rate: (f64, u32),
    /// `--controller-qps`: what single controllers have instead, by canonical name.
    pub own_rates: BTreeMap<&'static str, (f64, u32)>,
    /// Writes of controllers are judged by the API server and not stored.
    pub dry_run: bool,
    /// The Lease of the leader, for events of controllers.
    pub lease: ObjectRef,
    /// Metrics of the throttles of the controllers' clients.
    pub throttle_metrics: ThrottleMetrics,
    /// Sends all events, behind a throttle of its own.
    pub event_client: kube::Client,
    /// Metrics of the controllers' event recorders.
    pub event_metrics: EventMetrics,
    /// `--controller-start-interval`.
    pub start_interval: Duration,
    /// `--controller-shutdown-timeout`; zero means no limit.
    pub shutdown_timeout: Duration,
    /// How long a write of a controller may take before it is given up.
    pub write_timeout: Duration,
}

/// A controller that is to run.
pub struct Hosted {
    /// Canonical name.
    pub name: &'static str,
    /// Label of `running_managed_controllers`.
    pub alias: &'static str,
    /// Whether the user turned it on by its own name, not through `*`: then it serves custom kinds
    /// whoever their CRD is labelled for.
    pub by_name: bool,
    /// The running half of the controller.
    pub runner: Arc<dyn Runner>,
}
