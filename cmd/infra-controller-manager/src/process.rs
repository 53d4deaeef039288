//! The life of the process: serve, lead, run the controllers, stop. A stop is in order: not ready;
//! controllers finish what they have begun; the lease is released; events are flushed; open answers
//! are served. A controller that does not stop in time keeps the lease and gives exit code 1.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use client::{Clients, Profile, RequestMetrics, ThrottleMetrics};
use election::{ElectionConfig, Elector, Place};
use logging::LogHandle;
use manager::{Ended, Host, HostOptions, Hosted, Placement};
use prometheus::Registry;
use resilience::Fence;
use serving::{Endpoints, Health, Pages, ServingMetrics};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use transport::Wire;

use super::leading::{Events, Fatal, Sending, is_lost_leadership};
use super::serve;
use super::serve::Common;
use crate::crds::Installing;
use crate::pages::Facts;
use crate::serve::{Bound, Serving};
use crate::settings::{ProcessSettings, is_for_leaders};
use crate::{build, crds, leading, pages, signals};

/// Time for writes under way after leadership is lost.
const LOST_GRACE: Duration = Duration::from_secs(1);

/// What the process takes from its host. The simulation passes its own, without network, threads and clocks.
pub struct Machine {
    /// Asks for the end.
    pub shutdown: CancellationToken,
    /// Carries requests to the API server instead of connections.
    pub wire: Option<Wire>,
    /// Stops writes without the lease.
    pub fence: Fence,
    /// Where the lease is renewed.
    pub place: Place,
    /// Changes the verbosity of the log, or says that it cannot.
    pub set_verbosity: Box<dyn Fn(u8) -> bool + Send + Sync>,
}

/// Runs until a signal asks for the end.
///
/// # Errors
/// Everything for which the exit code is 1.
pub async fn run(settings: ProcessSettings, log: &LogHandle) -> Result<()> {
    let shutdown = signals::shutdown().context("cannot install signal handlers")?;
    let _giving_back = AbortOnDropHandle::new(tokio::spawn(malloc_trim::trim_periodically()));
    let log = log.clone();
    let machine = Machine {
        shutdown,
        wire: None,
        fence: if settings.election.is_some() { Fence::closed() } else { Fence::always_open() },
        place: Place::Threads,
        set_verbosity: Box::new(move |verbosity| log.set_verbosity(verbosity)),
    };
    run_on(machine, settings).await
}

/// Runs on this machine until its shutdown.
///
/// # Errors
/// Everything for which the exit code is 1.
pub async fn run_on(machine: Machine, settings: ProcessSettings) -> Result<()> {
    let Machine { shutdown, wire, fence, place, set_verbosity } = machine;
    let registry = Registry::new();
    let health = Health::new();
    let build = build::info(&settings.version);
    serving::register_process_metrics(&registry, &build)?;
    pages::register_features(&registry, &settings.shown.features)?;
    pages::register_version(&registry, &settings.version)?;
    let manifest = settings.label_manifest.as_deref();
    let exposition = pages::with_manifest(settings.exposition.clone(), manifest).await?;
    let pages = Pages::standard(&health, &registry, &build, &exposition);
    let controllers = settings.controllers.iter().map(|planned| planned.name).collect();
    let facts = Facts { shown: &settings.shown, version: &settings.version, controllers };
    pages::add(&pages, &facts, set_verbosity);
    manager::reserve_pages(&pages, &settings.controllers);
    let listeners = ServingMetrics::new(&registry)?;
    let bound = match &settings.serving {
        Some(serving) => Some(Bound::new(&serving.listener, &listeners).await?),
        None => None,
    };
    let requests = RequestMetrics::new(&registry)?;
    let clients = clients(wire, &settings, &requests).await?;
    let throttles = ThrottleMetrics::new(&registry)?;
    let (serving, refused) = match (bound, &settings.serving) {
        (Some(bound), Some(of)) => {
            let common = Common {
                options: &settings.client,
                clients: &clients,
                requests: &requests,
                throttles: &throttles,
            };
            let guard = serve::guard(of, &common, &registry).await?;
            let end = shutdown.clone();
            let following = serve::follow(guard.clone(), move || end.cancel());
            let following = AbortOnDropHandle::new(tokio::spawn(following));
            (bound.serve(&pages, guard), Some(following))
        }
        _ => (Serving::default(), None),
    };
    info!(server = clients.server(), "Using API server");
    let _probing = probe(&clients, settings.election.as_ref(), &health)?;
    let _looking = leading::watch_stock(clients.build(Profile::root("stock-absence"))?);
    let identity = settings.election.as_ref().map_or_else(build::identity, |e| e.identity.clone());
    tell_rates(&settings);
    let sending = Sending { rate: settings.event_rate, dry_run: settings.dry_run };
    let events = Events::start(&clients, &registry, &throttles, sending, &identity)?;
    let options = HostOptions {
        clients: clients.clone(),
        registry: registry.clone(),
        health: health.clone(),
        pages,
        listeners,
        fence: fence.clone(),
        product: build::PRODUCT,
        identity,
        format: settings.format,
        min_resync: settings.min_resync,
        service_accounts: settings.service_accounts,
        work_rate: settings.work_rate,
        own_rates: settings.own_rates.clone(),
        dry_run: settings.dry_run,
        lease: settings.lease.clone(),
        throttle_metrics: throttles,
        event_client: events.client.clone(),
        event_metrics: events.metrics.clone(),
        start_interval: settings.start_interval,
        shutdown_timeout: settings.shutdown_timeout,
        write_timeout: settings.write_timeout,
    };
    let draining = tell_of_shutdown(&health);
    let outcome = match settings.election.clone() {
        None => {
            if settings.has_leader_work() {
                warn!(
                    "Leader election is off: run one replica only; two replicas assign the same \
                     pod CIDRs and write the same clusters"
                );
            }
            alone(&options, settings, &shutdown, &draining).await
        }
        Some(config) => {
            // What runs in every replica does not wait for a leader.
            let for_leaders = settings.controllers.iter().filter(|planned| is_for_leaders(planned));
            let runners = for_leaders.map(|planned| planned.runner.clone()).collect();
            let of_lease = (fence, place);
            let elector =
                leading::spawn(config, &clients, &registry, &health, of_lease, &events, runners)?;
            led(&options, settings, elector, &shutdown, &draining).await
        }
    };
    // A leader that lost its lease has had its last second: another one may lead by now.
    if !outcome.as_ref().is_err_and(is_lost_leadership) {
        events.flush().await;
        serving.stop().await;
    }
    match refused.filter(AbortOnDropHandle::is_finished) {
        Some(refused) if outcome.is_ok() => Err(refused.await?.into()),
        _ => outcome,
    }
}

/// The clients of the API server, over connections unless there is a wire.
async fn clients(
    wire: Option<Wire>,
    settings: &ProcessSettings,
    requests: &RequestMetrics,
) -> Result<Clients> {
    Ok(match wire {
        Some(wire) => Clients::over(wire, &settings.client, requests)?,
        None => Clients::load(&settings.client, requests).await?,
    })
}

/// The switch by which this process, which is about to stop, says that it is not ready.
fn tell_of_shutdown(health: &Health) -> Arc<AtomicBool> {
    let draining = Arc::new(AtomicBool::new(false));
    let is_draining = Arc::clone(&draining);
    health.add("shutdown", Endpoints::READY, move || {
        if is_draining.load(Ordering::Relaxed) {
            return Err("the process is stopping".into());
        }
        Ok(())
    });
    draining
}

/// The limits of the clients, and what becomes of their writes.
fn tell_rates(settings: &ProcessSettings) {
    for planned in &settings.controllers {
        let rate = settings.own_rates.get(planned.name);
        let (qps, burst) = rate.copied().unwrap_or(settings.work_rate);
        info!(client = planned.name, qps, burst, "Rate limit of requests");
    }
    let (qps, burst) = settings.event_rate;
    info!(client = "events", qps, burst, "Rate limit of requests");
    if settings.dry_run {
        warn!(
            "Dry run: the API server checks all writes and stores only the lease and the \
             accounts of --use-service-account-credentials"
        );
    }
}

/// Asks the API server now and then for what this process needs, until the guard is dropped.
fn probe(
    clients: &Clients,
    election: Option<&ElectionConfig>,
    health: &Health,
) -> Result<DropGuard> {
    let client = clients.build(Profile::root("readiness"))?;
    let stop = CancellationToken::new();
    let needed = election.map_or("/livez".to_owned(), |election| {
        let ElectionConfig { namespace, name, .. } = election;
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
    });
    manager::watch_api_server(client, needed, health, stop.clone());
    Ok(stop.drop_guard())
}

async fn alone(
    options: &HostOptions,
    settings: ProcessSettings,
    shutdown: &CancellationToken,
    draining: &AtomicBool,
) -> Result<()> {
    let installing = install_crds(options, &settings)?;
    let host = Host::start(options, settings.controllers)?;
    shutdown.cancelled().await;
    draining.store(true, Ordering::Relaxed);
    match stop_writing(host, installing).await {
        Ended::TimedOut(names) => Err(Fatal::ShutdownTimedOut(names).into()),
        Ended::Clean | Ended::UnknownWrites(_) => Ok(()),
    }
}

async fn led(
    options: &HostOptions,
    mut settings: ProcessSettings,
    elector: Elector,
    shutdown: &CancellationToken,
    draining: &AtomicBool,
) -> Result<()> {
    let everywhere = |planned: &mut Hosted| planned.runner.placement() == Placement::EveryReplica;
    let everywhere = settings.controllers.extract_if(.., everywhere).collect();
    let mut host = Host::start(options, everywhere)?;
    if !settings.dry_run {
        host.stand_by(&settings.controllers);
    }
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {
            draining.store(true, Ordering::Relaxed);
            // The lease may be won at this very moment, and nothing was written under it, so its
            // release need not wait for the controllers of every replica.
            let given_back = give_back(Ended::Clean, elector, settings.release_on_exit);
            return match tokio::join!(host.stop(), given_back) {
                (Ended::TimedOut(names), _) => Err(Fatal::ShutdownTimedOut(names).into()),
                (Ended::Clean | Ended::UnknownWrites(_), given_back) => given_back,
            };
        }
        acquired = leading::acquired(&elector) => acquired?,
    }
    let installing = install_crds(options, &settings)?;
    host.start_more(options, settings.controllers, elector.won())?;
    tokio::select! {
        biased;
        () = shutdown.cancelled() => {}
        lost = leading::lost(&elector) => {
            let _stopped = tokio::time::timeout(LOST_GRACE, stop_writing(host, installing)).await;
            return Err(Fatal::LeadershipLost(lost).into());
        }
    }
    draining.store(true, Ordering::Relaxed);
    let mut stopping = pin!(stop_writing(host, installing));
    let ended = tokio::select! {
        biased;
        lost = leading::lost(&elector) => {
            let _stopped = tokio::time::timeout(LOST_GRACE, stopping).await;
            return Err(Fatal::LeadershipLost(lost).into());
        }
        ended = &mut stopping => ended,
    };
    give_back(ended, elector, settings.release_on_exit).await
}

/// Begins to install the CRDs, where that is asked for.
fn install_crds(options: &HostOptions, settings: &ProcessSettings) -> Result<Option<Installing>> {
    let install =
        || crds::install(&options.clients, options.fence.clone(), settings.crd_labels.clone());
    settings.install_crds.then(install).transpose()
}

/// Stops all that writes. It waits for the installation too, unless a controller did not stop in
/// time: the lease is not released then, and no other process begins early.
async fn stop_writing(host: Host, installing: Option<Installing>) -> Ended {
    let mut installation = pin!(async {
        if let Some(installing) = installing {
            installing.stop().await;
        }
    });
    let mut controllers = pin!(host.stop());
    tokio::select! {
        biased;
        ended = &mut controllers => {
            if !matches!(ended, Ended::TimedOut(_)) {
                installation.await;
            }
            ended
        }
        () = &mut installation => controllers.await,
    }
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
                "The API server may still apply writes of unknown outcome: the lease is not \
                 released and expires"
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
