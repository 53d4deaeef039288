//! Keeps one controller running: a failed run is followed by a fresh one (`host.md` 9.4).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use backoff::{Backoff, Jitter};
use panics::contain;
use prometheus::{IntCounter, IntGauge};
use tracing::error;

use crate::{Context, Failure, Runner, Stopped};

/// Pauses before a failed controller is started again.
const PAUSES: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(300), Jitter::Above(0.2));
/// A run that lasted this long clears the record of failures before it.
const HEALTHY_RUN: Duration = Duration::from_secs(60);
/// Restarts after which the controller's health check turns red.
const RED: u32 = 3;

/// One supervised controller.
pub(crate) struct Supervisor {
    pub(crate) name: &'static str,
    pub(crate) runner: Arc<dyn Runner>,
    /// `running_managed_controllers`.
    pub(crate) running: IntGauge,
    pub(crate) restarts: IntCounter,
    /// Failures in a row, shown by [`check`].
    pub(crate) failures: Arc<AtomicU32>,
}

impl Supervisor {
    /// Runs the controller until it stops because it was asked to.
    pub(crate) async fn run(self, mut context: Context) -> Stopped {
        loop {
            self.running.set(1);
            // The runner is called again with a fresh context only, so nothing torn is seen.
            let run = contain(one_run(self.runner.clone(), context.clone()));
            let ended = self.forgive(run).await.unwrap_or_else(|panic| {
                context.panics.inc();
                Err(Failure::new(format!("it panicked: {panic}")))
            });
            self.running.set(0);
            let failure = match ended {
                Ok(stopped) => return stopped,
                Err(failure) => failure,
            };
            let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
            // What the failed run sent may still be carried out, so the next list waits for it.
            let pause = PAUSES.delay(failures - 1).max(context.patch_timeout);
            error!(logger = self.name, err = %failure, failures, pause = ?pause,
                "Controller failed and is started again");
            self.restarts.inc();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Nothing is known of the failed run's writes.
                () = context.stop.cancelled() => return Stopped { unknown_writes: 1 },
            }
            context.informers = context.informers.fresh();
        }
    }

    /// Waits for the end of a run; when it lasts long enough, the failures before it are forgotten
    /// and the health check is green again.
    async fn forgive<T>(&self, run: impl Future<Output = T>) -> T {
        let mut run = pin!(run);
        match tokio::time::timeout(HEALTHY_RUN, &mut run).await {
            Ok(ended) => ended,
            Err(_) => {
                self.failures.store(0, Ordering::Relaxed);
                run.await
            }
        }
    }
}

async fn one_run(runner: Arc<dyn Runner>, context: Context) -> Result<Stopped, Failure> {
    let informers = context.informers.clone();
    tokio::select! {
        ended = runner.run(context) => ended,
        () = informers.broken() => Err(Failure::new("a watch that it relies on panicked")),
    }
}

/// The controller's health: red after [`RED`] failures in a row.
pub(crate) fn check(failures: &AtomicU32) -> Result<(), String> {
    match failures.load(Ordering::Relaxed) {
        few if few < RED => Ok(()),
        many => Err(format!("failed {many} times in a row")),
    }
}

#[cfg(test)]
mod tests;
