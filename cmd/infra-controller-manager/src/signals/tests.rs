//! Signals change the whole process, so the tests send them to a child: this test program again.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);
const CHILD: &str = "signals::tests::a_process_whose_runtime_is_wedged";

#[test]
#[ignore = "the child of the tests below"]
fn a_process_whose_runtime_is_wedged() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _token = shutdown().unwrap();
        let asked = Arc::new(AtomicBool::new(false));
        flag::register(SIGTERM, Arc::clone(&asked)).unwrap();
        println!("ready");
        // Nothing else runs on this runtime from here on.
        while !asked.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        println!("asked");
        std::thread::sleep(PATIENCE);
    });
}

/// The child, once it has installed its handlers, and what it prints: without a reader it could not
/// end its test.
fn wedged() -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    until_said(&mut output, "ready");
    (child, output)
}

fn until_said(output: &mut BufReader<ChildStdout>, word: &str) {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended early");
    }
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
        let (mut child, mut output) = wedged();
        send(&child, Signal::TERM);
        // Two that wait for the process together would be one.
        until_said(&mut output, "asked");
        assert!(child.try_wait().unwrap().is_none(), "the first signal only asks");
        send(&child, second);
        assert_eq!(code_of(child), Some(1));
    }
}

#[test]
fn sighup_means_nothing() {
    let (mut child, _output) = wedged();
    send(&child, Signal::HUP);
    std::thread::sleep(Duration::from_millis(50)); // that nothing happens can only be waited for
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}
