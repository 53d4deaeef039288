//! The life of the process: serve, lead, run the controllers, stop in order (`host.md` 3.1, 9.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use client::{Clients, Profile, RequestMetrics, Throttle, ThrottleMetrics};
use election::Elector;
use events::{Broadcaster, EventMetrics};
use fence::Fence;
use manager::{Ended, Host, HostOptions};
use prometheus::Registry;
use serving::{BuildInfo, Endpoints, Health, Pages, Server, ServingMetrics};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{error, info, warn};

use crate::plan::Plan;
use crate::{build, leading, signals};

/// What writes under way get after leadership is lost (`host.md` 3.3).
const LOST_GRACE: Duration = Duration::from_secs(1);
/// For the last events of a standby or a stopping leader.
const EVENT_FLUSH: Duration = Duration::from_secs(2);

const BUILD: BuildInfo = BuildInfo {
    version: build::INFO.version,
    commit: build::INFO.commit,
    rustc: build::INFO.rustc,
    k8s_compat: build::KUBERNETES,
};

/// Why the process ends without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// Another process may lead by now.
    #[error("leaderelection lost: {0}")]
    LeadershipLost(String),
    /// The lease is left to expire.
    #[error("controllers did not stop in time: {}; the lease is left to expire", .0.join(", "))]
    ShutdownTimedOut(Vec<&'static str>),
}

/// Runs until a signal asks for the end.
///
/// # Errors
/// Everything for which the exit code is 1.
pub async fn run(mut plan: Plan) -> Result<()> {
    let shutdown = signals::shutdown().context("cannot install signal handlers")?;
    let registry = Registry::new();
    let health = Health::new();
    serving::register_process_metrics(&registry, &BUILD)?;
    let pages = Pages::standard(&health, &registry, &BUILD);
    let serving = Serving::start(&mut plan, &pages, &registry).await?;
    let clients = Clients::load(&plan.client, &RequestMetrics::new(&registry)?).await?;
    info!(server = clients.server(), "Using API server");
    let _probing = probe(&clients, &health)?;
    let events = Events::start(&plan, &clients, &registry)?;
    let fence = if plan.election.is_some() { Fence::closed() } else { Fence::always_open() };
    let identity = plan.election.as_ref().map_or_else(build::identity, |e| e.identity.clone());
    let options = HostOptions {
        clients: clients.clone(),
        registry: registry.clone(),
        health: health.clone(),
        pages,
        fence: fence.clone(),
        product: build::PRODUCT,
        identity,
        format: plan.format,
        service_accounts: plan.service_accounts,
        work_rate: plan.work_rate,
        throttle_metrics: events.throttle_metrics.clone(),
        event_client: events.client.clone(),
        event_metrics: events.metrics.clone(),
        start_interval: plan.start_interval,
        shutdown_timeout: plan.shutdown_timeout,
        write_timeout: plan.write_timeout,
    };
    let draining = Arc::new(AtomicBool::new(false));
    let stopping = draining.clone();

    health.add("shutdown", Endpoints::READY, move || {
        if stopping.load(Ordering::Relaxed) {
            return Err("the process is stopping".into());
        }
        Ok(())
    });
    let outcome = match plan.election.clone() {
        None => {
            warn!(
                "Leader election is off: a second replica would give out the same pod CIDRs again"
            );
            alone(&options, plan, &shutdown, &draining).await
        }
        Some(config) => {
            let runners = plan.controllers.iter().map(|planned| planned.runner.clone()).collect();
            let elector =
                leading::spawn(config, &clients, &registry, &health, fence, &events, runners)?;
            led(&options, plan, elector, &shutdown, &draining).await
        }
    };
    // A leader that lost its lease has had its last second: another one may lead by now.
    if !outcome.as_ref().is_err_and(is_lost_leadership) {
        events.broadcaster.flush(EVENT_FLUSH).await;
        serving.stop().await;
    }
    outcome
}

fn is_lost_leadership(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Fatal::LeadershipLost(_)))
}

/// Asks the API server now and then whether it lives, until the guard is dropped.
fn probe(clients: &Clients, health: &Health) -> Result<DropGuard> {
    let client = clients.build(Profile::root("readiness"))?;
    let stop = CancellationToken::new();
    manager::watch_api_server(client, health, stop.clone());
    Ok(stop.drop_guard())
}

async fn alone(
    options: &HostOptions,
    plan: Plan,
    shutdown: &CancellationToken,
    draining: &AtomicBool,
) -> Result<()> {
    let host = Host::start(options, plan.controllers)?;
    shutdown.cancelled().await;
    draining.store(true, Ordering::Relaxed);
    match host.stop().await {
        Ended::TimedOut(names) => Err(Fatal::ShutdownTimedOut(names).into()),
        Ended::Clean | Ended::UnknownWrites(_) => Ok(()),
    }
}

async fn led(
    options: &HostOptions,
    plan: Plan,
    elector: Elector,
    shutdown: &CancellationToken,
    draining: &AtomicBool,
) -> Result<()> {
    tokio::select! {
        acquired = leading::acquired(&elector) => acquired?,
        () = shutdown.cancelled() => {
            draining.store(true, Ordering::Relaxed);
            // The lease may have been won at this very moment; nothing was written under it.
            return give_back(Ended::Clean, elector, plan.release_on_exit).await;
        }
    }
    let host = Host::start(options, plan.controllers)?;
    tokio::select! {
        () = shutdown.cancelled() => {}
        lost = leading::lost(&elector) => {
            let _stopped = tokio::time::timeout(LOST_GRACE, host.stop()).await;
            return Err(Fatal::LeadershipLost(lost).into());
        }
    }
    draining.store(true, Ordering::Relaxed);
    let ended = tokio::select! {
        ended = host.stop() => ended,
        lost = leading::lost(&elector) => return Err(Fatal::LeadershipLost(lost).into()),
    };
    give_back(ended, elector, plan.release_on_exit).await
}

/// Releases the lease only when nothing of ours can be written any more.
async fn give_back(ended: Ended, elector: Elector, release: bool) -> Result<()> {
    match ended {
        Ended::Clean if release => {
            // How it went is in the elector's log; the next leader copes with either.
            let _released = elector.release().await;
            Ok(())
        }
        Ended::Clean => {
            elector.abandon();
            Ok(())
        }
        Ended::UnknownWrites(count) => {
            warn!(
                count,
                "The server may yet carry out writes of unknown outcome: the lease is not released but left to expire"
            );
            elector.abandon();
            Ok(())
        }
        Ended::TimedOut(names) => {
            elector.abandon();
            Err(Fatal::ShutdownTimedOut(names).into())
        }
    }
}

/// The HTTPS server and its task.
struct Serving {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Serving {
    async fn start(plan: &mut Plan, pages: &Pages, registry: &Registry) -> Result<Self> {
        let stop = CancellationToken::new();
        let Some(options) = plan.serving.take() else { return Ok(Self { stop, task: None }) };
        let server = Server::bind(&options).await?;
        let (metrics, pages) = (ServingMetrics::new(registry)?, pages.clone());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { server.serve(pages, &metrics, stopped).await });
        Ok(Self { stop, task: Some(task) })
    }

    async fn stop(self) {
        self.stop.cancel();
        let Some(task) = self.task else { return };
        if let Err(panicked) = task.await {
            error!(err = %panicked, "Serving ended badly");
        }
    }
}

/// Events of the process itself, and what the controllers' recorders share with it.
pub(crate) struct Events {
    pub(crate) client: kube::Client,
    pub(crate) metrics: EventMetrics,
    pub(crate) throttle_metrics: ThrottleMetrics,
    pub(crate) recorder: events::Recorder,
    broadcaster: Broadcaster,
}

impl Events {
    fn start(plan: &Plan, clients: &Clients, registry: &Registry) -> Result<Self> {
        let throttle_metrics = ThrottleMetrics::new(registry)?;
        let metrics = EventMetrics::new(registry)?;
        let (qps, burst) = plan.event_rate;
        let throttle = Throttle::new("events", qps, burst, &throttle_metrics)?;
        let client = clients.build(Profile { throttle, ..Profile::root("events") })?;
        let identity = plan.election.as_ref().map(|e| e.identity.clone()).unwrap_or_default();
        let (recorder, broadcaster) =
            events::start(client.clone(), build::PRODUCT, &identity, metrics.clone());
        Ok(Self { client, metrics, throttle_metrics, recorder, broadcaster })
    }
}
