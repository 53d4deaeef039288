//! Keeps one controller running: after a failure it starts again, after 1 s at first and 300 s at most
//! (rule:failed-controller-is-restarted). After three failures in a row its health check fails; a run of a minute
//! clears that. A panic that concerns one key stays with that key (`workqueue/src/worker.rs`). The page of a
//! controller shows this, also on a replica that does not run it.

use std::fmt::Write as _;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use client::applicable_for;
use http::StatusCode;
use parking_lot::Mutex;
use prometheus::{IntCounter, IntGauge};
use resilience::panics::contain;
use resilience::{Backoff, Jitter};
use serving::{Access, Page, Pages, reply};
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, warn};

use crate::context::{Context, Failure};
use crate::controller::{Hosted, Runner, Stopped};
use crate::informers::Informers;
use crate::work::{Tasks, WatchedQueues};

/// Pauses before a failed controller is started again.
const PAUSES: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(300), Jitter::Above(0.2));
/// A run that lasted this long clears the record of failures before it.
const HEALTHY_RUN: Duration = Duration::from_secs(60);
/// A task of a run that has ended gets at least this long.
const TASK_GRACE: Duration = Duration::from_secs(1);
/// Restarts after which the controller's health check turns red.
const RED: u32 = 3;

/// One supervised controller.
pub(crate) struct Supervisor {
    pub(crate) runner: Arc<dyn Runner>,
    /// `running_managed_controllers`.
    pub(crate) running: IntGauge,
    pub(crate) restarts: IntCounter,
    pub(crate) state: ControllerHealth,
}

/// State for the health check of a controller; clones share it.
#[derive(Clone)]
pub(crate) struct ControllerHealth {
    failures: Arc<AtomicU32>,
    watched: WatchedQueues,
    /// The tasks of failed runs that could not be ended.
    stuck: Arc<Mutex<Vec<Tasks>>>,
    last: Arc<Mutex<Option<(Instant, String)>>>,
}

impl ControllerHealth {
    /// The state of the controller with these queues.
    pub(crate) fn of(watched: WatchedQueues) -> Self {
        Self { failures: Arc::default(), watched, stuck: Arc::default(), last: Arc::default() }
    }

    /// Lines about its latest failure as a whole, and about its queues.
    pub(crate) fn page_lines(&self) -> Vec<String> {
        let last = self.last.lock().as_ref().map_or_else(
            || "never restarted".to_owned(),
            |(at, why)| format!("last failure {} s ago: {why:?}", at.elapsed().as_secs()),
        );
        [last].into_iter().chain(self.watched.page_lines()).collect()
    }

    /// Red after [`RED`] failures in a row, and while a worker or a failed run's task is stuck.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut stuck = self.stuck.lock();
        stuck.retain(|tasks| !tasks.have_ended());
        if !stuck.is_empty() {
            return Err("a task of a failed run blocks its thread and cannot be stopped".to_owned());
        }
        match self.failures.load(Ordering::Relaxed) {
            few if few < RED => self.watched.check(),
            many => Err(format!("failed {many} times in a row")),
        }
    }
}

impl Supervisor {
    /// Runs the controller until it stops because it was asked to.
    pub(crate) async fn run(self, mut context: Context) -> Stopped {
        loop {
            self.running.set(1);
            let ended = self.one_run(&context).await;
            self.running.set(0);
            let failure = match ended {
                Ok(stopped) => return stopped,
                Err(failure) => failure,
            };
            let failures = self.state.failures.fetch_add(1, Ordering::Relaxed) + 1;
            *self.state.last.lock() = Some((Instant::now(), failure.to_string()));
            // What the failed run sent may still be carried out, so the next list waits for it.
            let pause =
                PAUSES.delay(failures - 1).max(applicable_for(context.settings.write_timeout));
            error!(err = %failure, failures, ?pause, "Controller failed and is started again");
            self.restarts.inc();
            tokio::select! {
                biased;
                // Nothing is known of the failed run's writes.
                () = context.stop.cancelled() => return Stopped { unknown_writes: 1 },
                () = tokio::time::sleep(pause) => {}
            }
            context.informers = context.informers.of_next_run();
        }
    }

    /// The runner is called with a token and tasks of its own, which end with it.
    async fn one_run(&self, process: &Context) -> Result<Stopped, Failure> {
        let mut context = process.clone();
        context.stop = process.stop.child_token();
        context.work.tasks = Tasks::new(context.work.panics.clone());
        let (stop, tasks) = (context.stop.clone(), context.work.tasks.clone());
        let write_timeout = context.settings.write_timeout;
        let watched = self.watch_run(context);
        let mut ended = self.until_healthy(watched).await;
        stop.cancel();
        if let Ok(stopped) = &mut ended {
            stopped.unknown_writes += end_orderly(&tasks, write_timeout).await;
            // rule:no-release-with-open-writes
            process.work.open_writes.settled().await;
        } else if !tasks.end_within(write_timeout).await {
            error!(
                "A task of the failed run blocks its thread and cannot be stopped; the \
                 controller restarts without it"
            );
            self.state.stuck.lock().push(tasks);
        }
        ended
    }

    /// Until the runner ends, or something that it relies on.
    async fn watch_run(&self, context: Context) -> Result<Stopped, Failure> {
        let (informers, tasks) = (context.informers.clone(), context.work.tasks.clone());
        let panics = context.work.panics.clone();
        let runner = Arc::clone(&self.runner);
        let panicked = |panic| {
            panics.count();
            Err(Failure::Panicked(panic))
        };
        tokio::select! {
            biased;
            ended = contain(async { runner.run(context).await }) => ended.unwrap_or_else(panicked),
            panic = tasks.panicked() => Err(Failure::Panicked(panic)),
            cause = informers.void() => {
                if informers.have_panicked() {
                    panics.count();
                }
                Err(Failure::Void(cause.to_owned()))
            }
        }
    }

    /// Waits for the end of a run. Once that has lasted long enough, the failures before it are
    /// forgotten and the health check is green again.
    async fn until_healthy<T>(&self, run: impl Future<Output = T>) -> T {
        tokio::pin!(run);
        match tokio::time::timeout(HEALTHY_RUN, &mut run).await {
            Ok(ended) => ended,
            Err(_) => {
                self.state.failures.store(0, Ordering::Relaxed);
                run.await
            }
        }
    }
}

/// Waits for the tasks of a run that has ended as it was asked to, and cuts off those that have not
/// ended within the time of a write (rule:no-release-with-open-writes). How many writes may
/// still leave: one, if something cannot be cut off.
async fn end_orderly(tasks: &Tasks, write_timeout: Duration) -> usize {
    if timeout(write_timeout.max(TASK_GRACE), tasks.ended()).await.is_ok() {
        return 0;
    }
    warn!(started_at = ?tasks.places(), "Tasks did not stop with their controller and are cancelled");
    if !tasks.end_within(Duration::ZERO).await {
        error!(started_at = ?tasks.places(), "Tasks block their thread and cannot be cancelled; \
            continuing without them");
        return 1;
    }
    sleep(applicable_for(write_timeout)).await;
    0
}

/// Where it is.
pub(crate) fn debug_path(controller: &str) -> String {
    format!("/debug/controllers/{controller}/")
}

/// The page of a controller that is at work here. Keeps no cache alive.
pub(crate) fn debug_page(
    controller: &'static str,
    health: ControllerHealth,
    informers: &Informers,
) -> Page {
    let caches = informers.page_lines();
    Page::new(debug_path(controller), Access::Authorized, move |_| {
        ready(reply::text(StatusCode::OK, text(controller, &health, caches())))
    })
}

fn text(controller: &str, health: &ControllerHealth, caches: Vec<String>) -> String {
    let state = health.check().err().unwrap_or_else(|| "ok".to_owned());
    let mut text = format!("{controller}\nhealth: {state}\n");
    for line in health.page_lines().into_iter().chain(caches) {
        writeln!(text, "{line}").ok();
    }
    text
}

/// Adds a page for each path that these controllers will serve; theirs take its place.
pub fn reserve_pages(pages: &Pages, controllers: &[Hosted]) {
    for Hosted { name, runner, .. } in controllers {
        let own = runner.pages().iter().map(|&path| path.to_owned());
        for path in own.chain([debug_path(name)]) {
            let text = format!(
                "{name} does not run in this process: another replica leads, the controller is \
                 starting, or its kind is not served yet. See the log.\n"
            );
            pages.add(Page::new(path, Access::Authorized, move |_| {
                std::future::ready(reply::text(StatusCode::SERVICE_UNAVAILABLE, text.clone()))
            }));
        }
    }
}

#[cfg(test)]
mod tests;
