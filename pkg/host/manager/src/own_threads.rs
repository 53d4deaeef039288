//! [`OwnThreads`]: threads that a controller has for itself while there is much to do for it. All
//! others share those of the process, which are few: more would be woken for every few answers, and
//! find nothing left to do.

use std::num::NonZero;
use std::thread::available_parallelism;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, Span};

use crate::context::Failure;

/// A runtime that begins with its first work and then stays: what it opened, such as a connection,
/// may serve others too.
pub struct OwnThreads {
    name: &'static str,
    /// On a machine with as many cores.
    most: usize,
    runtime: Mutex<Option<Runtime>>,
}

impl OwnThreads {
    /// A runtime without threads. They start with the first work and are called `name`, cut to 15
    /// bytes by most systems.
    pub const fn new(name: &'static str, most: usize) -> Self {
        Self { name, most, runtime: Mutex::new(None) }
    }

    /// Does this work there, and all tasks that it begins. Dropped, it ends the work.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        if resilience::is_simulated() {
            return Ok(work.await);
        }
        let working = self.handle()?.spawn(work.instrument(Span::current()));
        AbortOnDropHandle::new(working).await.map_err(Failure::new)
    }

    fn handle(&self) -> Result<Handle, Failure> {
        let mut runtime = self.runtime.lock();
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let cores = available_parallelism().map_or(1, NonZero::get);
        let made = Builder::new_multi_thread()
            .worker_threads(cores.min(self.most).max(1))
            .thread_name(self.name)
            .on_thread_park(transport::rest_if_busy)
            .enable_all()
            .build()
            .map_err(Failure::new)?;
        Ok(runtime.insert(made).handle().clone())
    }
}

impl Drop for OwnThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.get_mut().take() {
            // It is dropped among the tasks of the process, where nothing may block.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
