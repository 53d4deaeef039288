//! Running a program as the product is run: output, exit, signals.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::Duration;

use tests::Process;

const LIMIT: Duration = tests::PATIENCE;

fn shell(script: &str) -> Process {
    Process::bare().program(Path::new("/bin/sh")).args(["-c", script]).env("X", "set").start()
}

#[tokio::test]
async fn output_of_both_kinds_and_the_exit_code_are_seen() {
    let process = shell("echo out; echo err $X >&2; exit 3");
    assert_eq!(process.exit(LIMIT).await.code(), Some(3));
    assert_eq!(process.lines(), ["out", "err set"]);
    assert_eq!(process.line("err").await, "err set");
}

#[tokio::test]
async fn signals_reach_the_program() {
    let process =
        shell("trap 'echo asked to end; exit 0' TERM; echo up; while :; do sleep 0.02; done");
    process.line("up").await;
    process.pause();
    process.terminate();
    assert!(process.is_running());
    process.resume();
    process.line("asked to end").await;
    assert_eq!(process.exit(LIMIT).await.code(), Some(0));

    let process = shell("echo up; exec sleep 100");
    process.line("up").await;
    process.kill();
    assert_eq!(process.exit(LIMIT).await.signal(), Some(9));
}

#[tokio::test]
async fn dropping_it_kills_it() {
    let process = shell("echo up; exec sleep 100");
    process.line("up").await;
    let entry = format!("/proc/{}", process.pid());
    assert!(Path::new(&entry).exists());
    drop(process);
    assert!(!Path::new(&entry).exists());
}

#[tokio::test]
#[should_panic = "the process ended without a line with \"never\""]
async fn awaiting_a_line_ends_with_the_program() {
    shell("echo up").line("never").await;
}
