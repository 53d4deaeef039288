//! Signals change the whole process, so the tests send them to a child: this test program again.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);
const CHILD: &str = "signals::tests::a_process_whose_runtime_is_wedged";

#[test]
#[ignore = "the child of the tests below"]
fn a_process_whose_runtime_is_wedged() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _token = shutdown().unwrap();
        println!("ready");
        std::thread::sleep(PATIENCE); // nothing else runs on this runtime from here on
    });
}

/// The child, once it has installed its handlers.
fn wedged() -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended early");
    }
    // Kept open, or the child could not end its test.
    std::mem::forget(output);
    child
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn code_of(mut child: Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5)); // a child can only be polled
    }
    child.kill().unwrap();
    panic!("the child has not ended");
}

#[test]
fn the_second_signal_ends_a_process_that_cannot_do_anything_any_more() {
    for second in [Signal::TERM, Signal::INT] {
        let mut child = wedged();
        send(&child, Signal::TERM);
        std::thread::sleep(Duration::from_millis(50)); // that nothing happens can only be waited for
        assert!(child.try_wait().unwrap().is_none(), "the first signal only asks");
        send(&child, second);
        let start = Instant::now();
        assert_eq!(code_of(child), Some(1));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

#[test]
fn sighup_means_nothing() {
    let mut child = wedged();
    send(&child, Signal::HUP);
    std::thread::sleep(Duration::from_millis(50)); // that nothing happens can only be waited for
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}
