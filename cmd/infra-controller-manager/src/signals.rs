//! Signals and limits of the process. SIGTERM and SIGINT stop it in order; the second signal ends it
//! in the signal handler itself, with code 1, whatever its threads do. The limit of open files is
//! raised, and memory cannot be dumped (rule:memory-is-not-dumped).

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Returns a token that the first signal cancels.
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
        info!(
            "Shutting down; a second signal ends the process at once without a release of the lease"
        );
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

/// Sets the limits. What cannot be set is told and does not stop the start: the program works, with
/// less room or less well protected.
pub(crate) fn set_limits() {
    match raise_open_files() {
        Ok(limit) => info!(v = 1, open_files = limit, "Limit of open files is set"),
        Err(error) => warn!(err = %error, "Cannot raise the limit of open files"),
    }
    if let Err(error) = keep_memory_private() {
        warn!(err = %error, "Cannot disable core dumps, which would contain credentials");
    }
}

/// The soft limit becomes the hard one, which is returned; `None` is no limit.
fn raise_open_files() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

fn keep_memory_private() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(test)]
mod process_limits_tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    /// rule:memory-is-not-dumped
    #[test]
    fn as_many_files_as_can_be_may_be_open_and_no_memory_is_dumped() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum }).unwrap();
        set_limits();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        set_limits();
    }
}

#[cfg(test)]
mod tests;
