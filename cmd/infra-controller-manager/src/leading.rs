//! Leader election of the process, and the events that it sends. [`watch_stock`] warns when no
//! kube-controller-manager renews its lease for a minute: after a swap of the two programs its other
//! controllers run nowhere.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use client::{Clients, Profile, Throttle, ThrottleMetrics};
use election::{
    Election, ElectionConfig, ElectionMetrics, Elector, Leadership, LeaseEvent, Place,
    PredecessorCheck,
};
use events::{Broadcaster, EventMetrics, EventType, ObjectRef, Recorder};
use manager::{Permission, Runner, is_allowed};
use prometheus::Registry;
use resilience::{Fence, task};
use serving::{Endpoints, Health};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::build;
use crate::check_command::cluster::Cluster;
use crate::check_command::leases::{self, STOCK};

/// Starts the elector's threads and registers its health check. `runners` are what it will lead.
pub(crate) fn spawn(
    config: ElectionConfig,
    clients: &Clients,
    registry: &Registry,
    health: &Health,
    (fence, place): (Fence, Place),
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
        place,
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
        let asking = AbortOnDropHandle::new(runtime.spawn(task(async move {
            for runner in runners {
                let answer = runner.may_have_predecessor(client.clone()).await;
                if answer.map_err(|error| error.to_string())? {
                    return Ok(true);
                }
            }
            Ok(false)
        })));
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

/// Before the first look, and between the two: a lease that is held is renewed more often.
const WAIT: Duration = Duration::from_secs(60);
const RIGHT: Permission = Permission::new("get", "coordination.k8s.io", "leases")
    .in_namespace("kube-system")
    .named("kube-controller-manager");

/// Looks twice, in its own time; ends with the handle. It asks only with an identity that may read the
/// lease, because a refused request would be a line in the API server's audit log.
pub(crate) fn watch_stock(client: kube::Client) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task(look(Cluster::new(client)))))
}

async fn look(cluster: Cluster) {
    match is_absent(&cluster).await {
        Ok(Some(true)) => warn!(
            "No process renews the lease kube-system/kube-controller-manager: controllers for \
             workloads, tokens and garbage collection do not run; start kube-controller-manager"
        ),
        Ok(_) => {}
        // The cluster works or does not, whether or not we know.
        Err(err) => debug!(%err, "Cannot read the lease of kube-controller-manager"),
    }
}

/// `None` where this identity may not know.
async fn is_absent(cluster: &Cluster) -> Result<Option<bool>> {
    sleep(WAIT).await;
    if !is_allowed(cluster.client(), &RIGHT, None).await? {
        return Ok(None);
    }
    let before = renewal(cluster).await?;
    sleep(WAIT).await;
    let after = renewal(cluster).await?;
    Ok(Some(after.is_none() || after == before))
}

async fn renewal(cluster: &Cluster) -> Result<Option<String>> {
    let lease = leases::read(cluster, STOCK.0, STOCK.1).await.map_err(|error| anyhow!(error))?;
    Ok(lease.and_then(|lease| lease.renewal().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use api_server_double::{Reply, client};
    use serde_json::{Value, json};

    use super::*;

    /// The result for the lease at the first and at the second read.
    async fn found(allowed: bool, looks: [Value; 2]) -> Option<bool> {
        let looked = AtomicU32::new(0);
        let client = client(move |asked| {
            if asked.path().ends_with("selfsubjectaccessreviews") {
                return Reply::Json(201, json!({"status": {"allowed": allowed}}));
            }
            assert!(asked.path().ends_with("/leases/kube-controller-manager"));
            let look = &looks[usize::from(looked.fetch_add(1, Ordering::Relaxed) > 0)];
            if look.is_null() {
                return Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"}));
            }
            Reply::Json(200, json!({"spec": look}))
        });
        is_absent(&Cluster::new(client)).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_without_renewals_is_not_a_running_program() {
        let held = |at: &str| json!({"holderIdentity": "a_1", "renewTime": at});
        let given_up = json!({"holderIdentity": "", "renewTime": "1"});
        for (looks, absent) in [
            ([held("1"), held("2")], false),
            ([Value::Null, held("2")], false),
            ([held("1"), held("1")], true),
            ([Value::Null, Value::Null], true),
            ([held("1"), given_up], true),
        ] {
            let told = format!("{looks:?}");
            assert_eq!(found(true, looks).await, Some(absent), "{told}");
        }
        assert_eq!(found(false, [Value::Null, Value::Null]).await, None, "it may not know");
    }
}
