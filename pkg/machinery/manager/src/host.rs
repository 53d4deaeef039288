//! Starts all planned controllers once this process leads, and stops them.

use std::sync::Arc;
use std::time::Duration;

use client::{Clients, Identity, Profile, Throttle, ThrottleMetrics};
use events::{Broadcaster, EventMetrics};
use fence::Fence;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use informer::InformerMetrics;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};
use serving::{Endpoints, Health};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use workqueue::QueueMetrics;

use crate::permissions::{self, Subject};
use crate::supervisor::{self, Supervisor};
use crate::{Context, Failure, Informers, Runner, Stopped};

/// What all controllers are started with.
pub struct HostOptions {
    /// Makes the clients.
    pub clients: Clients,
    /// All metrics.
    pub registry: Registry,
    /// All checks.
    pub health: Health,
    /// No write passes it once leadership is lost.
    pub fence: Fence,
    /// Name of this process in `running_managed_controllers`.
    pub product: &'static str,
    /// Identity of this process, for events.
    pub identity: String,
    /// Whether each controller acts as a service account of its own.
    pub service_accounts: bool,
    /// `--kube-api-qps` and `--kube-api-burst`, for each controller.
    pub work_rate: (f64, u32),
    /// For the throttles of the controllers' clients.
    pub throttle_metrics: ThrottleMetrics,
    /// Sends all events, behind a throttle of its own.
    pub event_client: kube::Client,
    /// For the controllers' recorders.
    pub event_metrics: EventMetrics,
    /// `--controller-start-interval`.
    pub start_interval: Duration,
    /// `--controller-shutdown-timeout`; zero means no limit.
    pub shutdown_timeout: Duration,
    /// See [`Context::patch_timeout`].
    pub patch_timeout: Duration,
}

/// A controller that is to run.
pub struct Planned {
    /// Canonical name.
    pub name: &'static str,
    /// Label of `running_managed_controllers`.
    pub alias: &'static str,
    /// What to run.
    pub runner: Arc<dyn Runner>,
}

/// How the controllers ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All work is done and every write's outcome is known.
    Clean,
    /// All work is done, but the server may still carry out so many writes.
    UnknownWrites(usize),
    /// These did not end in time.
    TimedOut(Vec<&'static str>),
}

/// The running controllers.
pub struct Host {
    stop: CancellationToken,
    background: CancellationToken,
    controllers: FuturesUnordered<JoinHandle<(&'static str, Stopped)>>,
    names: Vec<&'static str>,
    broadcasters: Vec<Broadcaster>,
    shutdown_timeout: Duration,
}

/// Time for events that are still on their way (`host.md` 9.1).
const EVENT_FLUSH: Duration = Duration::from_secs(2);

impl Host {
    /// Starts everything; returns without waiting for caches.
    ///
    /// # Errors
    /// A client or a metric could not be made.
    pub fn start(options: &HostOptions, planned: Vec<Planned>) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let background = CancellationToken::new();
        let wiring = Wiring::new(options, &background)?;
        let mut host = Self {
            stop: stop.clone(),
            background,
            controllers: FuturesUnordered::new(),
            names: Vec::new(),
            broadcasters: Vec::new(),
            shutdown_timeout: options.shutdown_timeout,
        };
        let mut delay = Duration::ZERO;
        for planned in planned {
            let (context, broadcaster) = wiring.context(options, &planned, &stop)?;
            host.broadcasters.push(broadcaster);
            host.names.push(planned.name);
            host.controllers.push(wiring.spawn(options, planned, context, delay));
            delay += options.start_interval.mul_f64(rand::random_range(1.0..2.0));
        }
        Ok(host)
    }

    /// Stops all controllers and waits for them, telling of stragglers, then flushes events.
    pub async fn stop(mut self) -> Ended {
        self.stop.cancel();
        let ended = self.drain().await;
        for broadcaster in self.broadcasters {
            broadcaster.flush(EVENT_FLUSH).await;
        }
        self.background.cancel();
        ended
    }

    async fn drain(&mut self) -> Ended {
        let mut unknown = 0;
        let limit = self.shutdown_timeout;
        let began = tokio::time::Instant::now();
        let third = if limit.is_zero() { Duration::from_secs(10) } else { limit / 3 };
        // A limit of nanoseconds is legal, a timer without a period is not.
        let third = third.max(Duration::from_millis(1));
        let mut reminder = tokio::time::interval_at(began + third, third);
        loop {
            tokio::select! {
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

/// What is made once and shared by all controllers.
struct Wiring {
    informers: Informers,
    queue_metrics: QueueMetrics,
    panics: IntCounterVec,
    restarts: IntCounterVec,
    running: IntGaugeVec,
    missing: IntGaugeVec,
}

impl Wiring {
    fn new(options: &HostOptions, background: &CancellationToken) -> Result<Self, Failure> {
        let registry = &options.registry;
        let reads = read_client(options)?;
        let informers = Informers::new(
            reads,
            InformerMetrics::new(registry).map_err(metric)?,
            background.clone(),
        );
        options.health.add("informer-sync", Endpoints::READY, informers.check());
        Ok(Self {
            informers,
            queue_metrics: QueueMetrics::new(registry).map_err(metric)?,
            panics: counter(registry, "icm_panics_total", "Panics contained, by controller.")?,
            restarts: counter(
                registry,
                "icm_controller_restarts_total",
                "Controllers started again after a failure.",
            )?,
            running: gauge(
                registry,
                "running_managed_controllers",
                "Controllers that run in this process: 1 while running, 0 when stopped.",
                &["name", "manager"],
            )?,
            missing: gauge(
                registry,
                "icm_missing_permissions",
                "Rights that a controller needs and did not have at start.",
                &["controller"],
            )?,
        })
    }

    fn context(
        &self,
        options: &HostOptions,
        planned: &Planned,
        stop: &CancellationToken,
    ) -> Result<(Context, Broadcaster), Failure> {
        let (qps, burst) = options.work_rate;
        let account = planned.runner.service_account();
        let throttle =
            Throttle::new(account, qps, burst, &options.throttle_metrics).map_err(failure)?;
        let mut profile = controller_profile(options, account);
        let unthrottled = options.clients.build(profile.clone()).map_err(failure)?;
        let subject =
            Subject { controller: planned.name, account, by_account: options.service_accounts };
        let missing = self.missing.with_label_values(&[planned.name]);
        // Also fetches the account's token while the caches fill.
        tokio::spawn(permissions::check(
            unthrottled,
            subject,
            planned.runner.permissions(),
            missing,
        ));
        profile.throttle = throttle;
        profile.fence = Some(options.fence.clone());
        let client = options.clients.build(profile);
        let (recorder, broadcaster) = events::start(
            options.event_client.clone(),
            planned.runner.event_component(),
            &options.identity,
            options.event_metrics.clone(),
        );
        let context = Context {
            client: client.map_err(failure)?,
            informers: self.informers.clone(),
            recorder,
            registry: options.registry.clone(),
            queue_metrics: self.queue_metrics.clone(),
            panics: self.panics.with_label_values(&[planned.name]),
            stop: stop.clone(),
            patch_timeout: options.patch_timeout,
        };
        Ok((context, broadcaster))
    }

    fn spawn(
        &self,
        options: &HostOptions,
        planned: Planned,
        context: Context,
        delay: Duration,
    ) -> JoinHandle<(&'static str, Stopped)> {
        let name = planned.name;
        let supervisor = Supervisor {
            name,
            runner: planned.runner,
            running: self.running.with_label_values(&[planned.alias, options.product]),
            restarts: self.restarts.with_label_values(&[name]),
            failures: Arc::default(),
        };
        let failures = supervisor.failures.clone();
        options.health.add(name, Endpoints::ALL, move || supervisor::check(&failures));
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = context.stop.cancelled() => return (name, Stopped::default()),
            }
            info!(v = 1, logger = name, "Starting");
            (name, supervisor.run(context).await)
        })
    }
}

/// The identity of a controller, without limits yet.
fn controller_profile(options: &HostOptions, account: &str) -> Profile {
    let (agent, identity) = if options.service_accounts {
        let identity =
            Identity::ServiceAccount { namespace: "kube-system".into(), name: account.into() };
        (format!("system:serviceaccount:kube-system:{account}"), identity)
    } else {
        (account.to_owned(), Identity::Root)
    };
    Profile { identity, ..Profile::root(agent) }
}

/// Reads for all controllers as the process's own identity; a list is too rare to throttle.
fn read_client(options: &HostOptions) -> Result<kube::Client, Failure> {
    options.clients.build(Profile::root("shared-informers")).map_err(failure)
}

fn counter(registry: &Registry, name: &str, help: &str) -> Result<IntCounterVec, Failure> {
    let counter = IntCounterVec::new(Opts::new(name, help), &["controller"]).map_err(metric)?;
    registry.register(Box::new(counter.clone())).map_err(metric)?;
    Ok(counter)
}

fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, Failure> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), labels).map_err(metric)?;
    registry.register(Box::new(gauge.clone())).map_err(metric)?;
    Ok(gauge)
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

fn metric(error: prometheus::Error) -> Failure {
    Failure::new(format!("cannot register metrics: {error}"))
}

#[cfg(test)]
mod tests;
