//! [`Host`]: starts the planned controllers, some at once and some when this process leads, gives each
//! its means, and stops them.

use std::time::Duration;

use client::Profile;
use election::Won;
use events::Broadcaster;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use informer::{InformerMetrics, Server};
use objects::OpenWrites;
use prometheus::{IntCounterVec, IntGaugeVec};
use resilience::{Fence, task};
use serving::Endpoints;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error_span, info, warn};
use workqueue::{PanicLimit, QueueMetrics, ReconcileMetrics};

use crate::context::{ClientError, ClientSource, Context, Settings, StartError};
use crate::controller::{HostOptions, Hosted, Placement, Stopped};
use crate::informers::{Informers, InformersOptions};
use crate::permissions::{PermissionCheck, Subject};
use crate::supervisor;
use crate::supervisor::{ControllerHealth, Supervisor};
use crate::work::{MadeOnce, Tasks, WatchedQueues, Work};

/// How the controllers ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All work is done and every write's outcome is known.
    Clean,
    /// All work is done, but the server may still carry out so many writes.
    UnknownWrites(usize),
    /// Controllers that did not end in time.
    TimedOut(Vec<&'static str>),
}

/// The running controllers.
pub struct Host {
    background: CancellationToken,
    running: Running,
    broadcasters: Vec<Broadcaster>,
    wiring: Wiring,
}

/// Tasks of the controllers.
struct Running {
    stop: CancellationToken,
    controllers: FuturesUnordered<JoinHandle<(&'static str, Stopped)>>,
    names: Vec<&'static str>,
    shutdown_timeout: Duration,
}

/// Time for events that are still on their way.
const EVENT_FLUSH: Duration = Duration::from_secs(2);

impl Host {
    /// Starts these controllers; returns without waiting for caches.
    pub fn start(options: &HostOptions, hosted: Vec<Hosted>) -> Result<Self, StartError> {
        let background = CancellationToken::new();
        let wiring = Wiring::new(options, &background)?;
        let running = Running::new(options.shutdown_timeout);
        let mut host = Self { background, running, broadcasters: Vec::new(), wiring };
        host.start_more(options, hosted, Won::default())?;
        Ok(host)
    }

    /// Lets these controllers prepare for the time when this process leads.
    pub fn stand_by(&self, hosted: &[Hosted]) {
        for hosted in hosted {
            let _named = span(hosted.name).entered();
            hosted.runner.stand_by(&self.wiring.informers_of(hosted));
        }
    }

    /// Starts these controllers in addition to the running ones, as when this process begins to lead
    /// with the lease that it won.
    pub fn start_more(
        &mut self,
        options: &HostOptions,
        hosted: Vec<Hosted>,
        won: Won,
    ) -> Result<(), StartError> {
        let mut delay = Duration::ZERO;
        for hosted in hosted {
            let stop = &self.running.stop;
            let (mut context, broadcaster) = self.wiring.context(options, &hosted, stop)?;
            context.won = won;
            self.broadcasters.push(broadcaster);
            self.running.names.push(hosted.name);
            self.running.controllers.push(self.wiring.spawn(options, hosted, context, delay));
            delay += options.start_interval.mul_f64(1.0 + resilience::draw());
        }
        Ok(())
    }

    /// Stops all controllers and waits for them, logs those that do not stop, then flushes events.
    pub async fn stop(mut self) -> Ended {
        let ended = self.running.stop().await;
        // Side by side: one that waits for its server must not take the time of the others.
        join_all(self.broadcasters.drain(..).map(|events| events.flush(EVENT_FLUSH))).await;
        self.background.cancel();
        ended
    }
}

impl Running {
    fn new(shutdown_timeout: Duration) -> Self {
        let (stop, controllers) = (CancellationToken::new(), FuturesUnordered::new());
        Self { stop, controllers, names: Vec::new(), shutdown_timeout }
    }

    async fn stop(&mut self) -> Ended {
        self.stop.cancel();
        let mut unknown = 0;
        let limit = self.shutdown_timeout;
        let began = tokio::time::Instant::now();
        let third = if limit.is_zero() { Duration::from_secs(10) } else { limit / 3 };
        // A limit of nanoseconds is legal, a timer without a period is not.
        let third = third.max(Duration::from_millis(1));
        let mut reminder = tokio::time::interval_at(began + third, third);
        loop {
            tokio::select! {
                biased;
                next = self.controllers.next() => match next {
                    Some(Ok((name, stopped))) => {
                        self.names.retain(|waiting| *waiting != name);
                        unknown += stopped.unknown_writes;
                    }
                    // Its task ended in a panic of the supervisor itself: nothing is known.
                    Some(Err(_)) => unknown += 1,
                    None if unknown == 0 => return Ended::Clean,
                    None => return Ended::UnknownWrites(unknown),
                },
                _ = reminder.tick() => {
                    if !limit.is_zero() && began.elapsed() >= limit {
                        return Ended::TimedOut(std::mem::take(&mut self.names));
                    }
                    warn!(waiting = ?self.names, "Controllers have not stopped yet");
                }
            }
        }
    }
}

/// Resources that are made once and shared by all controllers.
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
                "Permissions that a controller needs and did not have at the last check.",
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
            let checking = check.clone().run(needed.to_vec(), stop.clone());
            tokio::spawn(task(checking.instrument(span(hosted.name))));
        }
        let (recorder, broadcaster) = events::start(
            options.event_client.clone(),
            hosted.runner.event_component(),
            &options.identity,
            options.event_metrics.clone(),
        );
        let work_rate = options.own_rates.get(hosted.name).copied().unwrap_or(options.work_rate);
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
                lease: options.lease.clone(),
            },
            won: Won::default(),
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
        options.pages.add(supervisor::debug_page(name, health.clone(), &context.informers));
        options.health.add(name, Endpoints::ALL, move || health.check());
        let supervisor = Supervisor {
            runner: hosted.runner,
            running: self.running.with_label_values(&[hosted.alias, options.product]),
            restarts: self.restarts.with_label_values(&[name]),
            state,
        };
        let supervised = async move {
            tokio::select! {
                biased;
                () = context.stop.cancelled() => return (name, Stopped::default()),
                () = tokio::time::sleep(delay) => {}
            }
            info!(v = 1, "Starting");
            (name, supervisor.run(context).await)
        };
        tokio::spawn(task(supervised.instrument(span(name))))
    }
}

/// Every line that is logged inside carries the controller's name.
fn span(controller: &'static str) -> tracing::Span {
    error_span!("controller", logger = controller)
}

/// The period of this process; those that start together do not all do it at the same moment.
fn resync(shortest: Duration) -> Option<Duration> {
    (!shortest.is_zero()).then(|| shortest.mul_f64(1.0 + resilience::draw()))
}

/// Reads for all controllers as the process's own identity; a list is too rare to throttle.
fn read_client(options: &HostOptions) -> Result<kube::Client, StartError> {
    let client = options.clients.build(Profile::root("shared-informers"));
    Ok(client.map_err(ClientError::from)?)
}

#[cfg(test)]
mod tests;
