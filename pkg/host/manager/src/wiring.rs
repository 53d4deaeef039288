//! What the host makes once for all controllers, and the means that it gives to each.

use std::time::Duration;

use client::Profile;
use events::Broadcaster;
use informer::{InformerMetrics, Server};
use objects::OpenWrites;
use prometheus::{IntCounterVec, IntGaugeVec};
use resilience::Fence;
use serving::Endpoints;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error_span, info};
use workqueue::{PanicLimit, QueueMetrics, ReconcileMetrics};

use crate::clients::{ClientError, ClientSource};
use crate::context::{Settings, Work};
use crate::made_once::MadeOnce;
use crate::options::{HostOptions, Hosted};
use crate::permissions::{PermissionCheck, Subject};
use crate::supervisor::{ControllerHealth, Supervisor};
use crate::tasks::Tasks;
use crate::watched_queues::WatchedQueues;
use crate::{Context, Informers, InformersOptions, Placement, StartError, Stopped, debug_page};

/// What is made once and shared by all controllers.
pub(crate) struct Wiring {
    informers: Informers,
    queues: QueueMetrics,
    reconciles: ReconcileMetrics,
    panics: IntCounterVec,
    restarts: IntCounterVec,
    running: IntGaugeVec,
    missing: IntGaugeVec,
}

impl Wiring {
    pub(crate) fn new(
        options: &HostOptions,
        background: &CancellationToken,
    ) -> Result<Self, StartError> {
        let registry = &options.registry;
        let informers = Informers::new(
            InformersOptions {
                server: Server::own(read_client(options)?),
                format: options.format,
                product: options.product,
                resync: resync(options.min_resync),
                stop: background.clone(),
            },
            InformerMetrics::new(registry, options.product)?,
        );
        options.health.add("informer-sync", Endpoints::READY, informers.check());
        let counter =
            |name: &str, help: &str| metrics::counter(registry, name, help, &["controller"]);
        Ok(Self {
            informers,
            queues: QueueMetrics::new(registry)?,
            reconciles: ReconcileMetrics::new(registry)?,
            panics: counter("icm_panics_total", "Panics contained, by controller.")?,
            restarts: counter(
                "icm_controller_restarts_total",
                "Controllers started again after a failure.",
            )?,
            running: metrics::gauge(
                registry,
                "running_managed_controllers",
                "Controllers that run in this process: 1 while running, 0 when stopped.",
                &["name", "manager"],
            )?,
            missing: metrics::gauge(
                registry,
                "icm_missing_permissions",
                "Rights that a controller needs and did not have when they were last checked.",
                &["controller"],
            )?,
        })
    }

    /// The means of one controller; its rights are checked from now on.
    pub(crate) fn context(
        &self,
        options: &HostOptions,
        hosted: &Hosted,
        stop: &CancellationToken,
    ) -> Result<(Context, Broadcaster), StartError> {
        let account = hosted.runner.service_account();
        let fence = match hosted.runner.placement() {
            Placement::Leader => options.fence.clone(),
            Placement::EveryReplica => Fence::closed(),
        };
        let by_account = options.service_accounts;
        let clients = ClientSource::new(
            options.clients.clone(),
            account,
            by_account,
            fence.clone(),
            options.throttle_metrics.clone(),
        )
        .with_dry_run(options.dry_run);
        let check = PermissionCheck {
            client: clients.unthrottled()?,
            subject: Subject { account, by_account, manifest: hosted.runner.manifest() },
            missing: self.missing.with_label_values(&[hosted.name]),
        };
        let needed = hosted.runner.permissions();
        if !needed.is_empty() {
            // Also fetches the account's token while the caches fill.
            let checking = check.clone().run(needed, stop.clone());
            tokio::spawn(checking.instrument(span(hosted.name)));
        }
        let (recorder, broadcaster) = events::start(
            options.event_client.clone(),
            hosted.runner.event_component(),
            &options.identity,
            options.event_metrics.clone(),
        );
        let work_rate = options.rate_of(hosted.name);
        let caller = clients.caller(account, work_rate)?;
        let context = Context {
            client: caller.kube(),
            caller,
            clients,
            fence,
            identity: options.identity.as_str().into(),
            informers: self.informers_of(hosted),
            recorder,
            registry: options.registry.clone(),
            health: options.health.clone(),
            pages: options.pages.clone(),
            listeners: options.listeners.clone(),
            settings: Settings {
                work_rate,
                write_timeout: options.write_timeout,
                dry_run: options.dry_run,
            },
            stop: stop.clone(),
            work: self.work(hosted.name, check),
        };
        Ok((context, broadcaster))
    }

    fn informers_of(&self, hosted: &Hosted) -> Informers {
        let own = self.informers.of_run();
        if hosted.by_name { own.of_any_owner() } else { own }
    }

    fn work(&self, controller: &'static str, rights: PermissionCheck) -> Work {
        let panics = PanicLimit::new(self.panics.with_label_values(&[controller]));
        Work {
            controller,
            registered: MadeOnce::default(),
            open_writes: OpenWrites::default(),
            queues: self.queues.clone(),
            metrics: self.reconciles.of_controller(controller),
            watched: WatchedQueues::default(),
            tasks: Tasks::new(panics.clone()),
            panics,
            rights,
        }
    }

    /// Runs the controller, supervised, after `delay`.
    pub(crate) fn spawn(
        &self,
        options: &HostOptions,
        hosted: Hosted,
        context: Context,
        delay: Duration,
    ) -> JoinHandle<(&'static str, Stopped)> {
        let name = hosted.name;
        let state = ControllerHealth::of(context.work.watched.clone());
        let health = state.clone();
        options.pages.add(debug_page::page(name, health.clone(), &context.informers));
        options.health.add(name, Endpoints::ALL, move || health.check());
        let supervisor = Supervisor {
            runner: hosted.runner,
            running: self.running.with_label_values(&[hosted.alias, options.product]),
            restarts: self.restarts.with_label_values(&[name]),
            state,
        };
        let supervised = async move {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = context.stop.cancelled() => return (name, Stopped::default()),
            }
            info!(v = 1, "Starting");
            (name, supervisor.run(context).await)
        };
        tokio::spawn(supervised.instrument(span(name)))
    }
}

/// Every line that is logged inside carries the controller's name.
fn span(controller: &'static str) -> tracing::Span {
    error_span!("controller", logger = controller)
}

/// The period of this process; those that start together do not all do it at the same moment.
fn resync(shortest: Duration) -> Option<Duration> {
    (!shortest.is_zero()).then(|| shortest.mul_f64(rand::random_range(1.0..2.0)))
}

/// Reads for all controllers as the process's own identity; a list is too rare to throttle.
fn read_client(options: &HostOptions) -> Result<kube::Client, StartError> {
    let client = options.clients.build(Profile::root("shared-informers"));
    Ok(client.map_err(ClientError::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_tell_of_everything_again_after_one_to_two_periods_or_never() {
        let hour = Duration::from_secs(3600);
        for _ in 0..100 {
            assert!((hour..2 * hour).contains(&resync(hour).unwrap()));
        }
        assert!(resync(Duration::from_nanos(u64::MAX)).is_some(), "292 years");
        assert_eq!(resync(Duration::ZERO), None);
    }
}
