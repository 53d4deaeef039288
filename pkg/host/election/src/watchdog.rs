//! The dead man's switch: ends the process when the lease was not renewed in time.
//!
//! Started by [`crate::thread`] beside the lease thread. It is the backstop for the case that
//! every async runtime is wedged (rule:lease-watchdog), so it uses none: a plain thread, a blocking
//! sleep, an atomic read. While things work, the ordinary path (report `Lost`, wait for writes in
//! flight, exit 1) is always earlier.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use resilience::BootInstant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::config::WATCHDOG_POLL;
use crate::term::Term;

/// The way out of the process; injected by tests. `process::exit` runs the C library's exit
/// handlers: one that waits for a lock of a stuck thread would hold it up. Nothing here registers
/// any; `_exit`, which runs none, would take `unsafe`, which is forbidden.
pub(crate) type Exit = Arc<dyn Fn(i32) + Send + Sync>;

/// Watches `term` for as long as it has a limit or anyone else holds it.
pub(crate) fn start(term: Arc<Term>, exit: Exit) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("lease-watchdog".to_owned()).spawn(move || guard(&term, &exit))
}

fn guard(term: &Arc<Term>, exit: &Exit) {
    // A lost lease keeps its limit though the elector is gone: the process still has to end.
    while term.is_limited() || Arc::strong_count(term) > 1 {
        if term.overdue(BootInstant::now()) {
            last_words("lease-watchdog: the leader lease was not renewed in time, exiting\n");
            exit(1);
            return;
        }
        thread::sleep(WATCHDOG_POLL);
    }
}

/// Writes `line` to file descriptor 2 if that cannot block: a full pipe must not keep a leader
/// alive, and the lock of `eprintln!` may be held by the very thread that is stuck.
pub(crate) fn last_words(line: &str) {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    let ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|n| n == 1);
    if ready && fds[0].revents().contains(PollFlags::OUT) {
        // Nobody is left to tell when this fails.
        rustix::io::write(&stderr, line.as_bytes()).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn watched(term: &Arc<Term>) -> (mpsc::Receiver<i32>, JoinHandle<()>) {
        let (exits, seen) = mpsc::channel();
        let exit: Exit = Arc::new(move |code| exits.send(code).unwrap());
        (seen, start(Arc::clone(term), exit).unwrap())
    }

    #[test]
    fn a_leader_that_stops_renewing_is_ended_with_code_1_and_not_before_its_limit() {
        let term = Arc::new(Term::new());
        let start = BootInstant::now();
        term.renew(start, Duration::from_millis(250));
        let (exits, _thread) = watched(&term);
        assert_eq!(exits.recv_timeout(PATIENCE), Ok(1));
        assert!(start.elapsed() >= Duration::from_millis(250));
    }

    #[test]
    fn a_lost_lease_ends_the_process_even_when_the_elector_is_gone() {
        let term = Arc::new(Term::new());
        term.renew(BootInstant::now(), PATIENCE);
        term.lose(Duration::from_millis(50));
        let (exits, _thread) = watched(&term);
        drop(term);
        assert_eq!(exits.recv_timeout(PATIENCE), Ok(1));
    }

    #[test]
    fn standbys_and_released_leaders_are_let_live_and_the_thread_ends_with_them() {
        let term = Arc::new(Term::new());
        let (exits, thread) = watched(&term);
        term.renew(BootInstant::now(), PATIENCE);
        term.end();
        drop(term);
        thread.join().unwrap();
        assert!(exits.try_recv().is_err());
    }
}
