//! SIGTERM and SIGINT ask for an orderly end; the second one ends the process at once
//! (rule:second-signal-ends-at-once).

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// Returns a token that the first signal cancels.
///
/// # Errors
/// A handler could not be installed.
pub(crate) fn shutdown() -> io::Result<CancellationToken> {
    end_at_the_second()?;
    // SIGHUP means nothing here, and its default would be to end.
    flag::register(SIGHUP, Arc::default())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let first = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        info!("Shutting down; a second signal ends at once and leaves the lease to expire");
        first.cancel();
    });
    Ok(token)
}

/// In the signal handler itself, which needs no thread of ours to be able to run. The handlers of
/// a signal run in this order: the first one leaves if the mark is set, the second one sets it.
fn end_at_the_second() -> io::Result<()> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, 1, asked.clone())?;
        flag::register(signal, asked.clone())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
