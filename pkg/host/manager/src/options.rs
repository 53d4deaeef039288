//! Input of the host: [`HostOptions`] and the [`Hosted`] controllers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client::{Clients, Profile, ThrottleMetrics};
use events::{EventMetrics, ObjectRef};
use informer::Format;
use prometheus::Registry;
use resilience::Fence;
use serving::{Health, Pages, ServingMetrics};

use crate::context::{ClientError, StartError};
use crate::controller::Runner;

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

impl HostOptions {
    /// Stock's defaults, for a process without leader election; registers the metrics of throttles,
    /// listeners and events. A process that writes events of its own makes the value itself.
    pub fn new(
        product: &'static str,
        clients: Clients,
        registry: &Registry,
    ) -> Result<Self, StartError> {
        let event_client = clients.build(Profile::root("events")).map_err(ClientError::from)?;
        Ok(Self {
            clients,
            registry: registry.clone(),
            health: Health::new(),
            pages: Pages::new(),
            listeners: ServingMetrics::new(registry)?,
            fence: Fence::always_open(),
            product,
            identity: product.to_owned(),
            format: Format::default(),
            min_resync: Duration::from_secs(12 * 3600),
            service_accounts: false,
            work_rate: (20.0, 30),
            own_rates: BTreeMap::new(),
            dry_run: false,
            lease: ObjectRef::lease("kube-system", product, ""),
            throttle_metrics: ThrottleMetrics::new(registry)?,
            event_client,
            event_metrics: EventMetrics::new(registry)?,
            start_interval: Duration::ZERO,
            shutdown_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(5),
        })
    }
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
