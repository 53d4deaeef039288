//! A capture holds its own thread's lines, and all of them.

use std::thread;
use std::time::Duration;

use super::*;

fn say(what: &str) {
    tracing::warn!(what, "said");
}

#[tokio::test(start_paused = true)]
async fn a_capture_holds_the_lines_of_its_thread_and_their_times() {
    let began = Instant::now();
    let captured = Capture::begin();
    say("at once");
    thread::spawn(|| say("elsewhere")).join().expect("it only logs");
    tokio::time::sleep(Duration::from_secs(60)).await;
    say("a minute later");
    let reported: Vec<_> = captured.times("said").iter().map(|at| *at - began).collect();
    assert_eq!(reported, [Duration::ZERO, Duration::from_secs(60)]);
    assert_eq!(captured.take().len(), 2);
    assert!(captured.take().is_empty());
}

#[test]
fn a_line_that_was_reached_before_any_capture_is_captured_afterwards() {
    let silent = || tracing::warn!("reached early");
    silent();
    let captured = Capture::begin();
    silent();
    assert_eq!(captured.with("reached early").len(), 1);
}

#[test]
fn captures_of_one_thread_follow_each_other() {
    let first = Capture::begin();
    say("one");
    drop(first);
    say("nowhere");
    let second = Capture::begin();
    say("two");
    assert_eq!(second.take().len(), 1);
}
