//! Stops single threads of a child process and lets them go on: what a handler that blocks or a
//! task that spins does to a runtime, done from outside to the program as it is shipped.
//!
//! A debugger's means: only the thread that began to trace may go on with it, so it is one of ours.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How often we look whether a thread that stands still has been killed: its process is not gone
/// before we know.
const GLANCE: Duration = Duration::from_millis(20);

/// Threads that stand still until this is dropped.
pub struct Frozen {
    /// Dropping this sender lets the threads continue.
    release: Option<Sender<()>>,
    tracer: Option<JoinHandle<()>>,
}

/// Stops all threads of a child process whose name is as `wanted`, except the main one. Fails when
/// no thread has such a name.
pub fn freeze(process: u32, wanted: impl Fn(&str) -> bool) -> Frozen {
    let threads = threads(process, wanted);
    assert!(!threads.is_empty(), "process {process} has no such thread");
    let (release, released) = channel();
    let (stopped, all_stopped) = channel();
    let tracer = std::thread::spawn(move || {
        for thread in &threads {
            stop(*thread);
        }
        stopped.send(()).expect("the caller waits for the threads");
        stand_still(threads, &released);
    });
    all_stopped.recv().expect("the threads can be stopped: is ptrace allowed here?");
    Frozen { release: Some(release), tracer: Some(tracer) }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.release = None;
        if let Some(tracer) = self.tracer.take()
            && tracer.join().is_err()
        {
            eprintln!("the thread that stopped others has panicked");
        }
    }
}

fn threads(process: u32, wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
    let folder = format!("/proc/{process}/task");
    let entries = fs::read_dir(folder).expect("the process is there").map_while(Result::ok);
    entries
        .filter(|entry| {
            let name = fs::read_to_string(entry.path().join("comm"));
            name.is_ok_and(|name| wanted(name.trim_end()))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // The main one: its end is what others wait for, and our stops would disturb them.
        .filter(|thread| u32::try_from(*thread).is_ok_and(|thread| thread != process))
        .map(Pid::from_raw)
        .collect()
}

fn stop(thread: Pid) {
    ptrace::seize(thread, ptrace::Options::empty()).expect("we may trace our own child");
    ptrace::interrupt(thread).expect("a thread that we trace can be stopped");
    waitpid(thread, Some(WaitPidFlag::__WALL)).expect("it stops");
}

fn stand_still(mut threads: Vec<Pid>, released: &Receiver<()>) {
    while released.recv_timeout(GLANCE) == Err(RecvTimeoutError::Timeout) {
        threads.retain(|thread| !has_ended(*thread));
    }
    for thread in threads {
        match ptrace::detach(thread, None) {
            Ok(()) | Err(Errno::ESRCH) => {} // killed a moment ago
            Err(error) => panic!("cannot let thread {thread} go on: {error}"),
        }
    }
}

fn has_ended(thread: Pid) -> bool {
    let status = waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG));
    matches!(status, Err(_) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
}
