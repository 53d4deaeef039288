//! Starts the planned controllers, some at once and some when this process leads, and stops them.

use std::time::Duration;

use events::Broadcaster;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::options::{HostOptions, Hosted};
use crate::wiring::Wiring;
use crate::{StartError, Stopped};

/// How the controllers ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All work is done and every write's outcome is known.
    Clean,
    /// All work is done, but the server may still carry out so many writes.
    UnknownWrites(usize),
    /// These did not end in time.
    TimedOut(Vec<&'static str>),
}

/// The running controllers.
pub struct Host {
    background: CancellationToken,
    running: Running,
    broadcasters: Vec<Broadcaster>,
    wiring: Wiring,
}

/// Their tasks.
struct Running {
    stop: CancellationToken,
    controllers: FuturesUnordered<JoinHandle<(&'static str, Stopped)>>,
    names: Vec<&'static str>,
    shutdown_timeout: Duration,
}

/// Time for events that are still on their way.
const EVENT_FLUSH: Duration = Duration::from_secs(2);

impl Host {
    /// Starts these controllers; returns without waiting for caches.
    ///
    /// # Errors
    /// A client or a metric could not be made.
    pub fn start(options: &HostOptions, hosted: Vec<Hosted>) -> Result<Self, StartError> {
        let background = CancellationToken::new();
        let wiring = Wiring::new(options, &background)?;
        let running = Running::new(options.shutdown_timeout);
        let mut host = Self { background, running, broadcasters: Vec::new(), wiring };
        host.start_more(options, hosted)?;
        Ok(host)
    }

    /// Starts these controllers beside those that run, as when this process begins to lead.
    ///
    /// # Errors
    /// A client could not be made.
    pub fn start_more(
        &mut self,
        options: &HostOptions,
        hosted: Vec<Hosted>,
    ) -> Result<(), StartError> {
        let mut delay = Duration::ZERO;
        for hosted in hosted {
            let stop = &self.running.stop;
            let (context, broadcaster) = self.wiring.context(options, &hosted, stop)?;
            self.broadcasters.push(broadcaster);
            self.running.names.push(hosted.name);
            self.running.controllers.push(self.wiring.spawn(options, hosted, context, delay));
            delay += options.start_interval.mul_f64(rand::random_range(1.0..2.0));
        }
        Ok(())
    }

    /// Stops all controllers and waits for them, telling of stragglers, then flushes events.
    pub async fn stop(mut self) -> Ended {
        let ended = self.running.stop().await;
        // Side by side: one that waits for its server must not take the time of the others.
        join_all(self.broadcasters.drain(..).map(|events| events.flush(EVENT_FLUSH))).await;
        self.background.cancel();
        ended
    }
}

impl Running {
    fn new(shutdown_timeout: Duration) -> Self {
        let (stop, controllers) = (CancellationToken::new(), FuturesUnordered::new());
        Self { stop, controllers, names: Vec::new(), shutdown_timeout }
    }

    async fn stop(&mut self) -> Ended {
        self.stop.cancel();
        let mut unknown = 0;
        let limit = self.shutdown_timeout;
        let began = tokio::time::Instant::now();
        let third = if limit.is_zero() { Duration::from_secs(10) } else { limit / 3 };
        // A limit of nanoseconds is legal, a timer without a period is not.
        let third = third.max(Duration::from_millis(1));
        let mut reminder = tokio::time::interval_at(began + third, third);
        loop {
            tokio::select! {
                next = self.controllers.next() => match next {
                    Some(Ok((name, stopped))) => {
                        self.names.retain(|waiting| *waiting != name);
                        unknown += stopped.unknown_writes;
                    }
                    // Its task ended in a panic of the supervisor itself: nothing is known.
                    Some(Err(_)) => unknown += 1,
                    None if unknown == 0 => return Ended::Clean,
                    None => return Ended::UnknownWrites(unknown),
                },
                _ = reminder.tick() => {
                    if !limit.is_zero() && began.elapsed() >= limit {
                        return Ended::TimedOut(std::mem::take(&mut self.names));
                    }
                    warn!(waiting = ?self.names, "Controllers have not stopped yet");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
