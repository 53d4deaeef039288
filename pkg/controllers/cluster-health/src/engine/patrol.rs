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

use super::fleet::Fleet;
use super::open_files::OpenFiles;
use super::prober::now;
use super::watched::Watched;
use super::{audit, driver};

const EVERY: Duration = Duration::from_secs(1);

/// Goes its rounds until `stop`.
pub(crate) async fn run(fleet: Arc<Fleet>, stop: CancellationToken) {
    let mut files = OpenFiles::default();
    let mut rounds = interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        let mut loads: Vec<Load> = Vec::new();
        for watched in fleet.all() {
            look_at_contained(&watched, &fleet);
            count(&watched, &mut loads);
        }
        fleet.permits.follow(&loads);
        files.follow(loads.iter().map(|load| load.members).sum());
    }
}

/// A panic over one cluster ends the look at that one (`rule:panics-end-no-service`).
fn look_at_contained(watched: &Arc<Watched>, fleet: &Arc<Fleet>) {
    if let Err(panic) = contain_call(|| look_at(watched, fleet)) {
        let cluster = &*watched.cluster.key;
        error!(cluster, %panic, "The patrol panicked over a cluster and goes on with the next");
    }
}

fn look_at(watched: &Arc<Watched>, fleet: &Arc<Fleet>) {
    // What is not ours any more is given up within seconds.
    if !fleet.ownership.is_ours(&watched.cluster.uid) {
        return;
    }
    let now = now();
    if let Some(task) = watched.replace_if_stuck(now.monotonic) {
        let cluster = &*watched.cluster.key;
        warn!(cluster, "The task of a cluster completed no probe for two rounds and is replaced");
        fleet.counters.restarted("watchdog");
        driver::start(watched, fleet, task);
    }
    if let Some(effect) = watched.sweep(now) {
        fleet.noted(watched, None, effect);
    }
    // rule:foreign-status-is-written-over: what came last may have been of somebody else.
    if let Some(shown) = watched.overlooked() {
        fleet.shows(watched, shown.fingerprint);
    }
    if fleet.audit {
        audit::look_at(watched, now.monotonic);
    }
}

fn count(watched: &Watched, loads: &mut Vec<Load>) {
    let cadence = watched.glance(|it| (!it.paused).then_some(it.policy.cadence));
    let Some(cadence) = cadence else { return };
    match loads.iter_mut().find(|load| load.cadence == cadence) {
        Some(load) => load.members += 1,
        None => loads.push(Load { members: 1, cadence }),
    }
}
