//! Leader election of the process, and the events that it sends.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use client::{Clients, Profile, Throttle, ThrottleMetrics};
use election::{
    Election, ElectionConfig, ElectionMetrics, Elector, Leadership, LeaseEvent, PredecessorCheck,
};
use events::{Broadcaster, EventMetrics, EventType, ObjectRef, Recorder};
use manager::Runner;
use prometheus::Registry;
use resilience::Fence;
use serving::{Endpoints, Health};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::build;

/// Starts the elector's threads and registers its health check. `runners` are what it will lead.
pub(crate) fn spawn(
    config: ElectionConfig,
    clients: &Clients,
    registry: &Registry,
    health: &Health,
    fence: Fence,
    events: &Events,
    runners: Vec<Arc<dyn Runner>>,
) -> Result<Elector> {
    let (namespace, name) = (config.namespace.clone(), config.name.clone());
    let recorder = events.recorder.clone();
    let elector = election::spawn(Election {
        config,
        clients: clients.clone(),
        metrics: ElectionMetrics::new(registry)?,
        fence,
        on_event: Box::new(move |event: LeaseEvent| {
            let lease = ObjectRef::lease(&namespace, &name, &event.lease_uid);
            recorder.event(lease, EventType::Normal, "LeaderElection", event.message);
        }),
        may_have_predecessor: predecessor_check(clients, runners)?,
    })?;

    health.add("leaderElection", Endpoints::ALL, elector.health_check());
    Ok(elector)
}

/// Whether any controller finds a predecessor. Runs on the caller's runtime: on the runtime of the lease a
/// shared connection would compete with the renewals.
fn predecessor_check(clients: &Clients, runners: Vec<Arc<dyn Runner>>) -> Result<PredecessorCheck> {
    let client = clients.build(Profile::root("leader-election"))?;
    let runtime = Handle::current();
    Ok(Box::new(move || {
        let (client, runners) = (client.clone(), runners.clone());
        // Dropping the future cancels the requests.
        let asking = AbortOnDropHandle::new(runtime.spawn(async move {
            for runner in runners {
                let answer = runner.may_have_predecessor(client.clone()).await;
                if answer.map_err(|error| error.to_string())? {
                    return Ok(true);
                }
            }
            Ok(false)
        }));
        Box::pin(async { asking.await.unwrap_or_else(|panicked| Err(panicked.to_string())) })
    }))
}

/// Waits until this process leads.
pub(crate) async fn acquired(elector: &Elector) -> Result<()> {
    let mut leadership = elector.leadership();
    let state = leadership
        .wait_for(|state| !matches!(state, Leadership::Standby { .. }))
        .await
        .map(|state| state.clone());
    match state {
        Ok(Leadership::Leading) => Ok(()),
        Ok(Leadership::Lost { reason }) => Err(Fatal::LeadershipLost(reason).into()),
        Ok(Leadership::Standby { .. }) | Err(_) => bail!("the election thread ended"),
    }
}

/// Waits until leadership is lost, and returns why.
pub(crate) async fn lost(elector: &Elector) -> String {
    let mut leadership = elector.leadership();
    let lost = leadership.wait_for(|state| matches!(state, Leadership::Lost { .. })).await;
    match lost.as_deref() {
        Ok(Leadership::Lost { reason }) => reason.clone(),
        _ => "the election thread ended".into(),
    }
}

/// An end with code 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fatal {
    /// Leadership is lost: another process may lead.
    // rule:lost-lease-ends-the-process
    #[error("leaderelection lost: {0}")]
    LeadershipLost(String),
    /// The lease is left to expire.
    #[error("controllers did not stop in time: {}; the lease is not released and expires", .0.join(", "))]
    ShutdownTimedOut(Vec<&'static str>),
}

/// Whether nothing more may be sent (rule:lost-lease-ends-the-process).
pub(crate) fn is_lost_leadership(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Fatal::LeadershipLost(_)))
}

/// For the last events of a standby or a stopping leader.
const FLUSH: Duration = Duration::from_secs(2);

/// The way of all events to the API server: one client behind a throttle of its own.
pub(crate) struct Events {
    pub(crate) client: kube::Client,
    pub(crate) metrics: EventMetrics,
    pub(crate) recorder: Recorder,
    broadcaster: Broadcaster,
}

/// How events are sent.
#[derive(Clone, Copy)]
pub(crate) struct Sending {
    /// Requests per second, and burst.
    pub(crate) rate: (f64, u32),
    /// The API server validates events and does not store them.
    pub(crate) dry_run: bool,
}

impl Events {
    /// `identity` names the reporting process.
    pub(crate) fn start(
        clients: &Clients,
        registry: &Registry,
        throttle_metrics: &ThrottleMetrics,
        sending: Sending,
        identity: &str,
    ) -> Result<Self> {
        let metrics = EventMetrics::new(registry)?;
        let Sending { rate: (qps, burst), dry_run } = sending;
        let throttle = Throttle::new("events", qps, burst, throttle_metrics)?;
        let client = clients.build(Profile { throttle, dry_run, ..Profile::root("events") })?;
        let (recorder, broadcaster) =
            events::start(client.clone(), build::PRODUCT, identity, metrics.clone());
        Ok(Self { client, metrics, recorder, broadcaster })
    }

    /// Sends what is still on its way.
    pub(crate) async fn flush(self) {
        self.broadcaster.flush(FLUSH).await;
    }
}
