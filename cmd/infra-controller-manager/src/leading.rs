//! Leader election as the process uses it: start it, wait for it, hear of its end.

use anyhow::{Result, bail};
use client::Clients;
use election::{ElectionConfig, ElectionMetrics, Elector, Leadership, LeaseEvent};
use events::{EventType, ObjectRef};
use fence::Fence;
use prometheus::Registry;
use serving::{Endpoints, Health};

use crate::process::{Events, Fatal};

/// Starts the elector's threads and registers its health check.
pub(crate) fn spawn(
    config: ElectionConfig,
    clients: &Clients,
    registry: &Registry,
    health: &Health,
    fence: Fence,
    events: &Events,
) -> Result<Elector> {
    let (namespace, name) = (config.namespace.clone(), config.name.clone());
    let recorder = events.recorder.clone();
    let told = move |event: LeaseEvent| {
        let lease = ObjectRef::lease(&namespace, &name, &event.lease_uid);
        recorder.event(lease, EventType::Normal, "LeaderElection", event.message);
    };
    let metrics = ElectionMetrics::new(registry)?;
    let elector = election::spawn(config, clients.clone(), metrics, fence, told)?;

    health.add("leaderElection", Endpoints::ALL, elector.health_check());
    Ok(elector)
}

/// Waits until this process leads; says whether it took over from a leader that may have died
/// with writes under way.
pub(crate) async fn acquired(elector: &Elector) -> Result<bool> {
    let mut leadership = elector.leadership();
    let state = leadership
        .wait_for(|state| !matches!(state, Leadership::Standby { .. }))
        .await
        .map(|state| state.clone());
    match state {
        Ok(Leadership::Leading { inherited }) => Ok(inherited),
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
