//! Running a program as the product is run: output, exit, signals.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::Duration;

use tests::Manager;

const LIMIT: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Manager {
    Manager::bare().program(Path::new("/bin/sh")).args(["-c", script]).env("X", "set").start()
}

#[tokio::test]
async fn output_of_both_kinds_and_the_exit_code_are_seen() {
    let manager = shell("echo out; echo err $X >&2; exit 3");
    assert_eq!(manager.exit(LIMIT).await.code(), Some(3));
    assert_eq!(manager.lines(), ["out", "err set"]);
    assert_eq!(manager.line("err").await, "err set");
}

#[tokio::test]
async fn signals_reach_the_program() {
    let manager =
        shell("trap 'echo asked to end; exit 0' TERM; echo up; while :; do sleep 0.02; done");
    manager.line("up").await;
    manager.pause();
    manager.terminate();
    assert!(manager.is_running());
    manager.resume();
    manager.line("asked to end").await;
    assert_eq!(manager.exit(LIMIT).await.code(), Some(0));

    let manager = shell("echo up; exec sleep 100");
    manager.line("up").await;
    manager.kill();
    assert_eq!(manager.exit(LIMIT).await.signal(), Some(9));
}

#[tokio::test]
async fn dropping_it_kills_it() {
    let manager = shell("echo up; exec sleep 100");
    manager.line("up").await;
    let process = format!("/proc/{}", manager.pid());
    assert!(Path::new(&process).exists());
    drop(manager);
    assert!(!Path::new(&process).exists());
}

#[tokio::test]
#[should_panic = "the manager ended without a line with \"never\""]
async fn awaiting_a_line_ends_with_the_program() {
    shell("echo up").line("never").await;
}
