//! The patrol: once a second it looks for clusters that nobody probed for long, for tasks that
//! hang, for statuses that somebody else wrote while we did, at how many probes may be under way,
//! and whether enough files may be open for them.

use std::sync::Arc;
use std::time::Duration;

use health::Load;
use panics::contain_call;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::cluster_registry::ClusterRegistry;
use super::member_cluster::MemberCluster;
use super::open_files::OpenFiles;
use super::prober::now;
use super::{audit, driver};

const EVERY: Duration = Duration::from_secs(1);

/// Goes its rounds until `stop`.
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

/// A panic over one cluster ends the look at that one (`rule:panics-end-no-service`).
fn look_at_contained(member: &Arc<MemberCluster>, fleet: &Arc<ClusterRegistry>) {
    if let Err(panic) = contain_call(|| look_at(member, fleet)) {
        let cluster = &*member.cluster.key;
        error!(cluster, %panic, "The patrol panicked over a cluster and goes on with the next");
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
        audit::look_at(member, now.monotonic);
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
