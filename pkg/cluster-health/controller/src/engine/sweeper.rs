//! The sweeper: once a second it looks for clusters without a probe, tasks that hang, foreign
//! statuses, the number of probes that may be under way, and the limit of open files ([`OpenFiles`]).

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use health::Load;
use resilience::panics::contain_call;
use rustix::process::{Resource, getrlimit};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::cluster_registry::ClusterRegistry;
use super::cluster_view::Difference;
use super::driver;
use super::flavour::now;
use super::member_cluster::MemberCluster;

const EVERY: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub(crate) async fn run(fleet: Arc<ClusterRegistry>, stop: CancellationToken) {
    let mut files = OpenFiles::default();
    let mut rounds = interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        let mut loads: Vec<Load> = Vec::new();
        for member in fleet.all() {
            look_at_contained(&member, &fleet);
            count(&member, &mut loads);
        }
        fleet.permits.follow(&loads);
        files.follow(loads.iter().map(|load| load.members).sum());
    }
}

/// A panic ends the sweep of one cluster and of no other (`rule:panics-end-no-service`).
fn look_at_contained(member: &Arc<MemberCluster>, fleet: &Arc<ClusterRegistry>) {
    if let Err(panic) = contain_call(|| look_at(member, fleet)) {
        let cluster = &*member.cluster.key;
        error!(cluster, %panic, "Sweeping a cluster panicked; the sweeper continues with the next cluster");
    }
}

fn look_at(member: &Arc<MemberCluster>, fleet: &Arc<ClusterRegistry>) {
    // What is not ours any more is given up within seconds.
    if !fleet.ownership.is_ours(&member.cluster.uid) {
        return;
    }
    let now = now();
    if let Some(task) = member.replace_if_stuck(now.monotonic) {
        let cluster = &*member.cluster.key;
        warn!(cluster, "The task of a cluster completed no probe for two rounds and is replaced");
        fleet.counters.restarted("watchdog");
        driver::start(member, fleet, task);
    }
    if let Some(effect) = member.sweep(now) {
        fleet.noted(member, None, effect);
    }
    // rule:foreign-status-is-written-over: what came last may have been of somebody else.
    if let Some(shown) = member.overlooked() {
        fleet.shows(member, shown.fingerprint);
    }
    if fleet.audit {
        audit(member, now.monotonic);
    }
}

fn count(member: &MemberCluster, loads: &mut Vec<Load>) {
    let cadence = member.view(|it| (!it.paused).then_some(it.policy.cadence));
    let Some(cadence) = cadence else { return };
    match loads.iter_mut().find(|load| load.cadence == cadence) {
        Some(load) => load.members += 1,
        None => loads.push(Load { members: 1, cadence }),
    }
}

/// Open files that are not connections to clusters.
const OTHERS: u64 = 1024;

/// Told once, each time that the clusters become too many.
#[derive(Default)]
pub(crate) struct OpenFiles {
    too_few: bool,
}

impl OpenFiles {
    /// Follows the number of clusters.
    pub(crate) fn follow(&mut self, clusters: usize) {
        // None is no limit.
        let Some(limit) = getrlimit(Resource::Nofile).current else { return };
        let needed = needed(clusters);
        let too_few = limit < needed;
        if too_few && !self.too_few {
            warn!(
                limit,
                needed,
                clusters,
                "The process may open too few files: with every cluster silent there are some that it cannot probe; raise the hard limit (LimitNOFILE, ulimit -Hn)"
            );
        }
        self.too_few = too_few;
    }
}

/// A connection that is kept for each cluster, and one that is being opened.
fn needed(clusters: usize) -> u64 {
    u64::try_from(clusters).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(OTHERS)
}

/// Compares one cluster with its object; a difference that has come to last, or has ended, is told.
fn audit(member: &MemberCluster, now: Instant) {
    let stored = member.flavour.stored(&member.cluster);
    let (before, after) = member.compare(stored, now);
    let (flavour, cluster) = (member.flavour.name(), &*member.cluster.key);
    let lasting = |difference: Option<Difference>| difference.filter(Difference::is_lasting);
    match (lasting(before), lasting(after)) {
        (None, Some(it)) => {
            let (ours, stored) = (it.ours.label(), it.stored_label());
            warn!(
                flavour,
                cluster, ours, stored, "Audit: the object says another thing than we would publish"
            );
        }
        (Some(_), None) => {
            info!(flavour, cluster, "Audit: the object and what we would publish no longer differ");
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_clusters_for_the_limit_are_noticed_until_they_are_fewer() {
        let mut files = OpenFiles::default();
        files.follow(usize::MAX);
        let limited = getrlimit(Resource::Nofile).current.is_some();
        assert_eq!(files.too_few, limited);
        files.follow(0);
        assert!(!files.too_few || getrlimit(Resource::Nofile).current < Some(OTHERS));
        assert_eq!(needed(10_000), 21_024);
    }
}
