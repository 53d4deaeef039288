//! The task of one cluster, which waits until a probe is due, makes it and takes the result in, or looks at its Lease; and
//! the sweeper, which once a second looks for clusters without a probe, tasks that hang, foreign
//! statuses, the number of probes that may be under way, and the limit of open files ([`OpenFiles`]).

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use health::{Code, EvidenceSource, Finding, Load, Moment, ProbePath, Report};
use resilience::panics::{contain, contain_call};
use rustix::process::{Resource, getrlimit};
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::cluster_registry::ClusterRegistry;
use super::difference::Difference;
use super::flavour::now;
use super::member_cluster::MemberCluster;
use super::probes::Job;

/// Between a first panic in a task and its next attempt; doubled with each that follows at once.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);
/// Until a cluster that is not ours is looked at again, if it is not given up before.
const NOT_OURS: Duration = Duration::from_secs(1);
/// A prober gets this much less time than its task, so that the prober reports what took so long.
const HEAD_START: Duration = Duration::from_millis(20);

/// Starts the task in charge of `watched`, which ends with `task`.
pub(crate) fn start(
    member: &Arc<MemberCluster>,
    clusters: &Arc<ClusterRegistry>,
    task: CancellationToken,
) {
    let (member, tasks) = (Arc::clone(member), clusters.tasks.clone());
    let clusters = Arc::clone(clusters);
    tasks.spawn(resilience::task(async move {
        tokio::select! {
            // Asked first: a task that was replaced does nothing more.
            biased;
            () = task.cancelled() => {}
            _ = keep_going(&member, &clusters, &task) => {}
        }
    }));
}

/// A panic ends nothing but the probe in which it happened (`rule:stuck-tasks-are-replaced`).
async fn keep_going(
    member: &MemberCluster,
    clusters: &ClusterRegistry,
    task: &CancellationToken,
) -> Infallible {
    let mut panics = 0;
    loop {
        let began = tokio::time::Instant::now();
        let Err(panic) = contain(probe_for_ever(member, clusters, task)).await;
        let cluster = &*member.cluster.key;
        error!(cluster, %panic, "The task of a member panicked; restarting it");
        clusters.counters.restarted("panic");
        let period = member.view(|it| it.policy.cadence.period);
        panics = if began.elapsed() < period { panics + 1 } else { 1 };
        sleep(pause_after(panics, period)).await;
        member.restart(task);
    }
}

/// A cluster whose probes all panic is probed once per period, and not more often.
fn pause_after(panics: u32, period: Duration) -> Duration {
    let doubled = PAUSE_AFTER_PANIC * (1 << panics.saturating_sub(1).min(16));
    doubled.min(period).max(PAUSE_AFTER_PANIC)
}

async fn probe_for_ever(
    member: &MemberCluster,
    clusters: &ClusterRegistry,
    task: &CancellationToken,
) -> Infallible {
    loop {
        member.until_due().await;
        let is_ours = || clusters.ownership.is_ours(&member.cluster.uid);
        if member.evidence_source() == EvidenceSource::Beats {
            if !is_ours() {
                sleep(NOT_OURS).await;
                continue;
            }
            let (heard, lease) = clusters.beats.alone(member);
            match member.look(task, heard, &lease) {
                Some(effect) => clusters.noted(member, None, effect),
                None => yield_now().await,
            }
            continue;
        }
        member.queue();
        let permit = clusters.permits.acquire().await;
        member.admit();
        let busy = member.busy();
        if !is_ours() {
            drop((permit, busy));
            // It is given up by now, or will be ours again in a moment.
            sleep(NOT_OURS).await;
            continue;
        }
        let Some(job) = member.begin(task) else {
            yield_now().await;
            continue;
        };
        clusters.counters.started(member.flavour.name(), job.lag);
        // Apart from the task, which is small while no probe is under way.
        let probing = Box::pin(job.void.run_until_cancelled(while_it(is_ours, probe(&job))));
        let report = probing.await;
        drop((permit, busy));
        match report {
            Some(Some(report)) => {
                let report = member.gated(report, &clusters.checks);
                member.hear(clusters.beats.of(member));
                if !clusters.guard.is_clear() {
                    member.excuse(&report);
                }
                if let Some(effect) = member.complete(&job, &report) {
                    clusters.completed(member, &report, effect);
                }
            }
            Some(None) => member.restart(task),
            None => {}
        }
    }
}

/// Goes no step further once the cluster is not ours: a process that stood still must not send the
/// rest of a probe when it goes on (`rule:a-share-ends-by-time`).
async fn while_it<T>(is_ours: impl Fn() -> bool, probe: impl Future<Output = T>) -> Option<T> {
    let mut probe = pin!(probe);
    let step =
        poll_fn(
            |context| {
                if is_ours() { probe.as_mut().poll(context).map(Some) } else { Poll::Ready(None) }
            },
        );
    step.await
}

/// Makes one probe, which ends in time whatever the prober does.
async fn probe(job: &Job) -> Report {
    let budget = job.timeout.saturating_sub(HEAD_START.min(job.timeout / 20));
    let began = tokio::time::Instant::now();
    let report = timeout(job.timeout, job.prober.probe(budget)).await;
    let report = report.unwrap_or_else(|_| timed_out(job.started, job.timeout));
    Report { started: job.started, took: began.elapsed(), ..report }
}

/// The report of a probe that its prober did not end in time.
pub(crate) fn timed_out(started: Moment, took: Duration) -> Report {
    let finding = Finding::failed(Code::Timeout, ProbePath::Readyz);
    Report { took, attempts: 1, new_connection: true, ..Report::new(finding, started) }
}

const EVERY: Duration = Duration::from_secs(1);

/// Runs until `stop`.
pub(crate) async fn sweep(clusters: Arc<ClusterRegistry>, stop: CancellationToken) {
    let mut files = OpenFiles::default();
    let mut rounds = interval(EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        let mut loads: Vec<Load> = Vec::new();
        for member in clusters.all() {
            look_at_contained(&member, &clusters);
            count(&member, &mut loads);
        }
        clusters.permits.follow(&loads);
        files.follow(loads.iter().map(|load| load.members).sum());
    }
}

/// A panic ends the sweep of one cluster and of no other (`rule:panics-end-no-service`).
fn look_at_contained(member: &Arc<MemberCluster>, clusters: &Arc<ClusterRegistry>) {
    if let Err(panic) = contain_call(|| look_at(member, clusters)) {
        let cluster = &*member.cluster.key;
        error!(cluster, %panic, "Looking for members without a probe panicked at this one; going on with the next");
    }
}

fn look_at(member: &Arc<MemberCluster>, clusters: &Arc<ClusterRegistry>) {
    // What is not ours any more is given up within seconds.
    if !clusters.ownership.is_ours(&member.cluster.uid) {
        return;
    }
    let now = now();
    if let Some(task) = member.replace_if_stuck(now.monotonic) {
        let cluster = &*member.cluster.key;
        warn!(cluster, "No probe of the member ended for two periods; restarting its task");
        clusters.counters.restarted("watchdog");
        start(member, clusters, task);
    }
    if let Some(effect) = member.sweep(now) {
        clusters.noted(member, None, effect);
    }
    // The last status may be of another controller.
    if let Some(shown) = member.view(|it| it.overlooked) {
        clusters.shows(member, shown.fingerprint);
    }
    if clusters.audit {
        audit(member, now.monotonic);
    }
}

fn count(member: &MemberCluster, loads: &mut Vec<Load>) {
    let cadence = member.view(|it| {
        let is_probed = !it.paused && it.policy.evidence != EvidenceSource::Beats;
        is_probed.then_some(it.policy.cadence)
    });
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
                "The limit of open files is too low: if no member answers, some members cannot be probed; raise the hard limit (LimitNOFILE, ulimit -Hn)"
            );
        }
        self.too_few = too_few;
    }
}

/// A connection that is kept for each cluster, and one that is being opened.
fn needed(clusters: usize) -> u64 {
    u64::try_from(clusters).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(OTHERS)
}

/// Compares one cluster with its object; logs a difference that has lasted long enough, or has ended.
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
                cluster,
                ours,
                stored,
                "Audit: the stored health differs from the result of the probes"
            );
        }
        (Some(_), None) => {
            info!(
                flavour,
                cluster, "Audit: the stored health equals the result of the probes again"
            );
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
