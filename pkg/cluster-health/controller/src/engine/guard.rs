//! The guard at work: asks its targets in rounds, and applies what [`health::Guard`] decides to all clusters, so that an
//! outage of this process is not published as an outage of its members.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use events::{EventType, ObjectRef};
use futures::future::BoxFuture;
use health::{Evidence, Guard, GuardPolicy, GuardState, Round, Ruling};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::cluster_registry::ClusterRegistry;
use super::flavour::now;
use super::member_cluster::MemberCluster;

/// The answers of the targets in one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Whether the own API server answered, with any status.
    pub api: bool,
    /// Whether each reference endpoint answered.
    pub references: Vec<bool>,
    /// Whether this machine lost its network: no interface is up, or there is no default route.
    pub local_down: bool,
}

/// The targets of the guard beside the members.
pub(crate) trait Targets: Send + Sync + 'static {
    /// The number of reference endpoints.
    fn references(&self) -> usize;

    /// Asks all targets at once, each within `limit` and over a new connection.
    fn ask(&self, limit: Duration) -> BoxFuture<'_, Answers>;
}

/// The guard of one run, as configured.
#[derive(Clone)]
pub(crate) struct Guarding {
    pub policy: GuardPolicy,
    pub targets: Arc<dyn Targets>,
}

/// What the guard found last, for metrics and pages. A member that begins to wait asks here for a round.
pub(crate) struct GuardStatus {
    is_on: bool,
    asked: Notify,
    last: Mutex<Option<GuardView>>,
}

/// State of the guard after a round.
#[derive(Clone, Debug)]
pub(crate) struct GuardView {
    pub state: GuardState,
    pub ratio: f64,
    pub waiting: usize,
    pub answers: Answers,
}

impl GuardStatus {
    /// The status before the first round; without a guard, for ever.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, asked: Notify::new(), last: Mutex::default() }
    }

    /// Whether there is a guard.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A member begins to wait: the next round comes as soon as the spacing allows.
    pub(crate) fn ask(&self) {
        self.asked.notify_one();
    }

    /// The state after the last round; `None` without a guard, and before the first round.
    pub(crate) fn view(&self) -> Option<GuardView> {
        self.last.lock().clone()
    }

    /// Whether silence of members says something about them.
    pub(crate) fn is_clear(&self) -> bool {
        self.last.lock().as_ref().is_none_or(|view| view.state == GuardState::Clear)
    }
}

/// Asks and applies in rounds, until `stop`. Events go to `lease`, the Lease of this replica.
pub(crate) async fn guard(
    clusters: Arc<ClusterRegistry>,
    guarding: Guarding,
    lease: Option<ObjectRef>,
    stop: CancellationToken,
) {
    let Guarding { policy, targets } = guarding;
    let mut guard = Guard::new(policy, now().monotonic);
    loop {
        let began = now().monotonic;
        // A target that does not keep its limit is silent.
        let asked = timeout(policy.timeout, targets.ask(policy.timeout));
        let Some(asked) = stop.run_until_cancelled(asked).await else { return };
        let silent =
            || Answers { references: vec![false; targets.references()], ..Answers::default() };
        let answers = asked.unwrap_or_else(|_| silent());
        let round = Round {
            began,
            ended: now().monotonic,
            local_down: answers.local_down,
            api: answers.api,
            references_up: answers.references.iter().filter(|up| **up).count(),
            references: answers.references.len(),
        };
        let members = clusters.all();
        let evidence: Vec<Evidence> = members.iter().filter_map(|it| it.evidence()).collect();
        let ruling = guard.judge(&round, &evidence);
        report(&clusters, &ruling, &answers, lease.as_ref());
        *clusters.guard.last.lock() = Some(GuardView {
            state: ruling.state,
            ratio: ruling.ratio,
            waiting: ruling.waiting,
            answers,
        });
        apply(&clusters, &members, &ruling);
        let (earliest, latest) = (began + Guard::SPACING, began + ruling.next_in);
        if stop.run_until_cancelled(until(&clusters.guard, earliest, latest)).await.is_none() {
            return;
        }
    }
}

/// Waits for `latest`, or for a member that begins to wait, but not before `earliest`.
async fn until(status: &GuardStatus, earliest: Instant, latest: Instant) {
    tokio::select! {
        () = sleep_until(latest.into()) => {}
        () = status.asked.notified() => sleep_until(earliest.into()).await,
    }
}

fn apply(clusters: &ClusterRegistry, members: &[Arc<MemberCluster>], ruling: &Ruling) {
    let sample: HashSet<u64> = ruling.sample.iter().copied().collect();
    for member in members {
        if !clusters.ownership.is_ours(&member.cluster.uid) {
            continue;
        }
        let now = now();
        if let Some(effect) = member.obey(ruling, now) {
            clusters.noted(member, None, effect);
        }
        if !sample.is_empty() && sample.contains(&health::hash(&member.cluster.uid)) {
            member.probe_anew(now.monotonic);
        }
    }
}

/// Logs and records how the state of the guard changes.
fn report(
    clusters: &ClusterRegistry,
    ruling: &Ruling,
    answers: &Answers,
    lease: Option<&ObjectRef>,
) {
    if ruling.before == ruling.state {
        return;
    }
    let (before, state) = (ruling.before.label(), ruling.state.label());
    let (waiting, percent) = (ruling.waiting, (ruling.ratio * 100.0).round());
    let references = answers.references.len();
    let references_up = answers.references.iter().filter(|up| **up).count();
    let Answers { api, local_down, .. } = *answers;
    clusters.counters.guarded(ruling.state);
    let event = |kind, reason, text: String| {
        if let Some(lease) = lease {
            clusters.recorder.event(lease.clone(), kind, reason, text);
        }
    };
    let signs = format!(
        "{percent} % of the members fail, {references_up} of {references} reference endpoints answer"
    );
    match (ruling.before, ruling.state) {
        (_, GuardState::Partition) => {
            warn!(
                before,
                waiting,
                percent,
                references_up,
                references,
                api,
                local_down,
                "This process seems to be cut off from its member clusters; until that ends none is published as offline"
            );
            let text = format!(
                "this replica seems to be cut off from its member clusters: {signs}; until that ends none is published as offline"
            );
            event(EventType::Warning, "HubPartition", text);
        }
        (_, GuardState::MassOutage) => {
            warn!(
                before,
                waiting,
                percent,
                references_up,
                references,
                api,
                "Many member clusters do not answer while the network of this process works; they are published as offline"
            );
            let text =
                format!("{waiting} member clusters are published as offline at once: {signs}");
            event(EventType::Warning, "MassOutage", text);
        }
        (GuardState::Partition, _) => {
            info!(state, waiting, "This process reaches its member clusters again");
            let text = format!(
                "this replica reaches its member clusters again: {signs}; {waiting} that failed are probed anew"
            );
            event(EventType::Normal, "HubPartitionEnded", text);
        }
        (_, GuardState::Suspect | GuardState::Clear) => {
            info!(
                before,
                state,
                waiting,
                percent,
                references_up,
                references,
                api,
                local_down,
                "The guard of member clusters changed its state"
            );
        }
    }
}
