//! Events of the process itself, and what the controllers' recorders share with it.

use std::time::Duration;

use anyhow::Result;
use client::{Clients, Profile, Throttle, ThrottleMetrics};
use events::{Broadcaster, EventMetrics, Recorder};
use prometheus::Registry;

use crate::build;

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
    /// What the throttle lets through.
    pub(crate) rate: (f64, u32),
    /// They are judged and not stored.
    pub(crate) dry_run: bool,
}

impl Events {
    /// `identity` names the reporting process.
    ///
    /// # Errors
    /// The client or its metrics cannot be made.
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
