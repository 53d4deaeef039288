//! The task of one cluster: waits until a probe is due, makes it and takes the result in. [`Job`] is
//! one probe to make, [`BusyTasks`] counts the probes under way.

use super::probes::Job;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use health::{Code, Endpoints, Finding, Moment, ProbePath, Report};
use resilience::panics::contain;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::cluster_registry::ClusterRegistry;
use super::member_cluster::MemberCluster;

/// Between a first panic in a task and its next attempt; doubled with each that follows at once.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);
/// Until a cluster that is not ours is looked at again, if it is not given up before.
const NOT_OURS: Duration = Duration::from_secs(1);
/// What a prober gets less than the task, so that it is the one who says what took so long.
const HEAD_START: Duration = Duration::from_millis(20);

/// Starts the task in charge of `watched`, which ends with `task`.
pub(crate) fn start(
    member: &Arc<MemberCluster>,
    fleet: &Arc<ClusterRegistry>,
    task: CancellationToken,
) {
    let (member, tasks) = (Arc::clone(member), fleet.tasks.clone());
    let fleet = Arc::clone(fleet);
    tasks.spawn(async move {
        tokio::select! {
            // Asked first: a task that was replaced does nothing more.
            biased;
            () = task.cancelled() => {}
            _ = keep_going(&member, &fleet, &task) => {}
        }
    });
}

/// A panic ends nothing but the probe in which it happened (`rule:stuck-tasks-are-replaced`).
async fn keep_going(
    member: &MemberCluster,
    fleet: &ClusterRegistry,
    task: &CancellationToken,
) -> Infallible {
    let mut panics = 0;
    loop {
        let began = tokio::time::Instant::now();
        let Err(panic) = contain(probe_for_ever(member, fleet, task)).await;
        let cluster = &*member.cluster.key;
        error!(cluster, %panic, "The task of a cluster panicked; restarting it");
        fleet.counters.restarted("panic");
        let period = member.view(|it| it.policy.cadence.period);
        panics = if began.elapsed() < period { panics + 1 } else { 1 };
        sleep(pause_after(panics, period)).await;
        member.restart(task);
    }
}

/// What panics each time is asked as often as any cluster, and not more often
/// (`rule:panics-slow-a-task-down`).
fn pause_after(panics: u32, period: Duration) -> Duration {
    let doubled = PAUSE_AFTER_PANIC * (1 << panics.saturating_sub(1).min(16));
    doubled.min(period).max(PAUSE_AFTER_PANIC)
}

async fn probe_for_ever(
    member: &MemberCluster,
    fleet: &ClusterRegistry,
    task: &CancellationToken,
) -> Infallible {
    loop {
        member.until_due().await;
        member.queue();
        let permit = fleet.permits.acquire().await;
        member.admit();
        let busy = member.busy();
        let is_ours = || fleet.ownership.is_ours(&member.cluster.uid);
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
        fleet.counters.started(member.flavour.name(), job.lag);
        let report = job.void.run_until_cancelled(while_it(is_ours, probe(&job))).await;
        drop((permit, busy));
        match report {
            Some(Some(report)) => {
                if let Some(effect) = member.complete(&job, &report) {
                    fleet.completed(member, &report, effect);
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

/// No probe outlives its time, whatever the prober does (`rule:probes-end-in-time`).
async fn probe(job: &Job) -> Report {
    let budget = job.timeout.saturating_sub(HEAD_START.min(job.timeout / 20));
    let began = tokio::time::Instant::now();
    let report = timeout(job.timeout, job.prober.probe(budget)).await;
    let report = report.unwrap_or_else(|_| timed_out(job.started, job.timeout));
    Report { started: job.started, took: began.elapsed(), ..report }
}

/// What is said of a probe that its prober did not end.
pub(crate) fn timed_out(started: Moment, took: Duration) -> Report {
    Report {
        finding: Finding::failed(Code::Timeout, ProbePath::Readyz),
        started,
        took,
        attempts: 1,
        endpoints: Endpoints::default(),
        detail: None,
    }
}
