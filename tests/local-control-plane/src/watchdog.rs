//! Cleans up when this process dies without doing so itself (SIGKILL, Ctrl-C, abort).
//!
//! One `sh` per process reads orders from a pipe whose other end only we hold (it is
//! close-on-exec). When we die, however that happens, the kernel closes our end, the shell reads
//! end-of-file, kills the given processes and removes the given files. It sits in
//! a process group of its own, so that the terminal's Ctrl-C does not end it before us.
//!
//! Called by [`crate::child`] and [`crate::temp_dir`].

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use parking_lot::Mutex;

/// Orders are lines: `kill PID`, `spare PID`, `remove DIR`. A killed PID is the leader of its
/// process group. Directories are kept as positional parameters since their names may hold blanks.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=
while IFS= read -r line; do
  what=${line#* }
  case $line in
    kill\ *) pids="$pids $what" ;;
    spare\ *)
      rest=
      for pid in $pids; do [ "$pid" = "$what" ] || rest="$rest $pid"; done
      pids=$rest ;;
    remove\ *) set -- "$@" "$what" ;;
  esac
done
for pid in $pids; do kill -s KILL -- "-$pid"; done
for dir do
  tries=0
  # What was killed may still be writing its last file.
  while [ -e "$dir" ] && [ "$tries" -lt 50 ]; do
    rm -rf "$dir"
    tries=$((tries + 1))
    sleep 0.1
  done
done
"#;

/// Kill the process group of `leader` when this process dies.
pub fn kill_at_exit(leader: u32) {
    order(&format!("kill {leader}"));
}

/// The process has been waited for; its number may be reused by another.
pub fn spare(leader: u32) {
    order(&format!("spare {leader}"));
}

/// Remove the directory when this process dies. Harmless when it is gone by then.
pub fn remove_at_exit(dir: &Path) {
    order(&format!("remove {}", dir.display()));
}

fn order(line: &str) {
    static PIPE: OnceLock<Mutex<ChildStdin>> = OnceLock::new();
    let mut pipe = PIPE.get_or_init(|| Mutex::new(start())).lock();
    writeln!(pipe, "{line}").expect("the watchdog shell has died; was it killed?");
}

#[expect(clippy::zombie_processes, reason = "it outlives us, which is its purpose")]
fn start() -> ChildStdin {
    let mut shell = Command::new("sh")
        .args(["-c", SCRIPT, "icm-watchdog"])
        // No inherited output: a reader of our output (`| tee`) must not wait for the watchdog.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()
        .expect("cannot start sh, the watchdog over child processes");
    shell.stdin.take().expect("stdin was asked for")
}
