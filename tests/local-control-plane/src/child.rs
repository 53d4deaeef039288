//! A child process that never outlives us: killed on drop, and by the [`watchdog`]
//! when we die without dropping.
//!
//! Called by [`crate::control_plane`] and `tests::process`. The child leads a process group of
//! its own, so Ctrl-C in the terminal reaches us only, and we decide how the child ends.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::{PATIENCE, stalls, watchdog};

/// A running (or ended) child process.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    exit: watch::Receiver<Option<ExitStatus>>,
    waiter: Option<JoinHandle<()>>,
}

impl Child {
    /// Starts `program`. `setup` may add arguments, environment, and where output goes; the
    /// program's stdin is at end-of-file.
    ///
    /// The program is exec'ed by a shell that first waits for a line from us, sent once the
    /// watchdog knows the process: there is no moment at which dying would leave it behind.
    pub fn spawn(program: &Path, setup: impl FnOnce(&mut Command)) -> anyhow::Result<Self> {
        stalls::watch();
        let mut command = Command::new("sh");
        command.args(["-c", r#"read -r _ && exec "$@""#, "sh"]).arg(program);
        setup(&mut command);
        let mut process = command
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = process.id();
        watchdog::kill_at_exit(pid);
        let mut gate = process.stdin.take().expect("stdin was asked for");
        gate.write_all(b"go\n").with_context(|| format!("cannot start {}", program.display()))?;

        let (ended, exit) = watch::channel(None);
        let waiter = std::thread::spawn(move || {
            let status = process.wait().expect("our own child can be waited for");
            watchdog::spare(pid);
            ended.send_replace(Some(status));
        });
        Ok(Self { pid, exit, waiter: Some(waiter) })
    }

    /// The process number, also of its process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The exit status, or `None` while the process runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Waits, without limit, until it has ended.
    pub async fn exited(&self) -> ExitStatus {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await.expect("the waiter always reports");
        status.expect("just checked")
    }

    /// Sends a signal to the process; nothing happens when it has ended.
    pub fn signal(&self, signal: Signal) {
        if self.exit_status().is_some() {
            return;
        }
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).expect("a process number");
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => panic!("cannot send {signal:?} to process {pid}: {error}"),
        }
    }

    /// SIGSTOP, and waits until all of its threads stand still: they go on until each of them has
    /// had its turn to hear the signal.
    pub fn halt(&self) {
        self.signal(Signal::STOP);
        let deadline = Instant::now() + PATIENCE;
        while self.exit_status().is_none() && !stands_still(self.pid) {
            assert!(Instant::now() < deadline, "process {} does not stop", self.pid);
            std::thread::sleep(Duration::from_millis(1)); // nothing announces it
        }
    }
}

/// Whether every thread of a process is stopped, or has ended.
fn stands_still(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        // One that has ended meanwhile has no state.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_none_or(|state| "TtZX".contains(state))
    })
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(waiter) = self.waiter.take()
            && waiter.join().is_err()
        {
            eprintln!("the thread that waits for process {} has panicked", self.pid);
        }
    }
}
