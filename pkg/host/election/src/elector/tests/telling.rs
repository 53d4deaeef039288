//! The log lines about a lease that cannot be acquired, and how often they appear.

use log_capture::Capture;

use super::*;

/// The seconds since `began` at which something with this text was logged.
fn seconds(captured: &Capture, began: Instant, text: &str) -> Vec<f64> {
    captured.times(text).iter().map(|at| (*at - began).as_secs_f64()).collect()
}

const SECOND: Duration = Duration::from_secs(1);
const REFUSED: Fault =
    Fault { before: Duration::ZERO, after: Duration::ZERO, request_lost: true, answer_lost: false };
const HANGS: Fault = Fault {
    before: Duration::from_secs(3600),
    after: Duration::ZERO,
    request_lost: false,
    answer_lost: false,
};

#[tokio::test(start_paused = true)]
async fn a_failure_to_acquire_that_goes_on_is_reported_again_each_minute() {
    let (captured, began) = (Capture::begin(), Instant::now());
    let server = Server::default();
    let _a = Running::start("a", server.store(|_| REFUSED));
    tokio::time::sleep(179 * SECOND).await;
    assert!(server.calls().len() > 300, "{} tries", server.calls().len());
    let told = seconds(&captured, began, "Cannot acquire the lease yet, will keep trying");
    assert_eq!(told, [0.0, 60.0, 120.0]);
}

#[tokio::test(start_paused = true)]
async fn another_failure_and_one_that_comes_back_are_reported_at_once() {
    let (captured, began) = (Capture::begin(), Instant::now());
    let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
    let plan = move |_| match began.elapsed().as_secs() {
        0..10 | 12..20 => REFUSED,
        20.. => HANGS,
        _ => Fault::default(), // the ghost is seen
    };
    let _a = Running::start("a", server.store(plan));
    tokio::time::sleep(40 * SECOND).await;
    assert_eq!(seconds(&captured, began, "connection reset"), [0.0, 12.0]);
    assert_eq!(captured.with("no answer in time").len(), 1);
}
