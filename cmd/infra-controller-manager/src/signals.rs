//! SIGTERM and SIGINT ask for an orderly end; the second one ends at once (`host.md` 9.1).

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Returns a token that the first signal cancels.
///
/// # Errors
/// A handler could not be installed.
pub(crate) fn shutdown() -> io::Result<CancellationToken> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    let token = CancellationToken::new();
    let first = token.clone();
    tokio::spawn(async move {
        // SIGHUP means nothing here, and its default would be to end.
        tokio::spawn(async move { while hup.recv().await.is_some() {} });
        either(&mut term, &mut int).await;
        info!("Shutting down");
        first.cancel();
        either(&mut term, &mut int).await;
        warn!("Second signal: ending at once, the lease is left to expire");
        std::process::exit(1);
    });
    Ok(token)
}

async fn either(a: &mut Signal, b: &mut Signal) {
    tokio::select! {
        _ = a.recv() => {}
        _ = b.recv() => {}
    }
}
