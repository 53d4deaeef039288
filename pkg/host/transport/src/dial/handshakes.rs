//! Threads for the TLS handshakes of probes. To judge the certificate of a server takes milliseconds
//! of CPU at worst, in the middle of a handshake and without a pause: on the threads of the prober
//! it would hold up all other probes (`rule:handshakes-hold-up-no-probe`).

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::available_parallelism;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

/// On a machine with as many cores: thousands of members are reached at the start.
const THREADS: usize = 4;

/// Begins with the first handshake and then stays.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Runs a handshake on those threads. Dropped, it ends the handshake.
///
/// # Errors
/// No thread can be started.
pub(super) async fn apart<T: Send + 'static>(
    handshake: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let mut task = JoinSet::new();
    task.spawn_on(handshake, &handle()?);
    match task.join_next().await {
        Some(Ok(outcome)) => Ok(outcome),
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        Some(Err(_)) | None => Err(io::Error::other("the process ends")),
    }
}

fn handle() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock();
    if let Some(runtime) = &*runtime {
        return Ok(runtime.handle().clone());
    }
    let cores = available_parallelism().map_or(1, NonZero::get);
    // Sockets and clocks stay with the runtime that opened them.
    let made = Builder::new_multi_thread()
        .worker_threads(cores.min(THREADS))
        .thread_name("handshakes")
        .build()?;
    Ok(runtime.insert(made).handle().clone())
}
