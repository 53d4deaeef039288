//! The guard at work: asks its targets in rounds, and applies what [`health::Guard`] decides to all clusters, so that an
//! outage of this process is not published as an outage of its members.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use events::{EventType, ObjectRef};
use health::{Evidence, Guard, GuardState, Round, Ruling};
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::cluster_registry::ClusterRegistry;
use super::flavour::now;
use super::guard_targets::{Answers, GuardStatus, GuardView, Guarding};
use super::member_cluster::MemberCluster;

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
        let evidence: Vec<Evidence> = members.iter().filter_map(|it| evidence(it)).collect();
        let ruling = guard.judge(&round, &evidence);
        report(&clusters, &ruling, &answers, lease.as_ref());
        clusters.guard.show(GuardView {
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
        () = status.is_asked() => sleep_until(earliest.into()).await,
    }
}

/// The last probe of a member; `None` while it is paused.
fn evidence(member: &MemberCluster) -> Option<Evidence> {
    member.view(|it| if it.paused { None } else { it.member.evidence() })
}

fn apply(clusters: &ClusterRegistry, members: &[Arc<MemberCluster>], ruling: &Ruling) {
    let sample: HashSet<u64> = ruling.sample.iter().copied().collect();
    for member in members {
        if !clusters.ownership.is_ours(&member.cluster.uid) {
            continue;
        }
        let now = now();
        if member.view(|it| it.member.waits()) {
            member.hear(clusters.beats.of(member));
        }
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
        "{percent} % of the members fail, {references_up} of {references} endpoints of --cluster-health-guard-endpoints answer"
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
                "This process seems to be cut off from its member clusters: check the network of this host; until that ends, no member is published as offline"
            );
            let text = format!(
                "this replica seems to be cut off from its member clusters: {signs}; check the network of its host; until that ends, no member is published as offline"
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
                format!("{waiting} member clusters are published as offline together: {signs}");
            event(EventType::Warning, "MassOutage", text);
        }
        (GuardState::Partition, _) => {
            info!(state, waiting, "This process reaches its member clusters again");
            let text = format!(
                "this replica reaches its member clusters again: {signs}; {waiting} failed members are probed again"
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
                "Guard state changed: whether this process may be cut off from its member clusters"
            );
        }
    }
}
