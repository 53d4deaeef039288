//! The line's words and its rate, on a paused clock.

use crate::call::throttle_layer::*;
use log_capture::Capture;
use prometheus::Registry;

use crate::throttle::ThrottleMetrics;

fn throttle() -> Throttle {
    let m = ThrottleMetrics::new(&Registry::new()).unwrap();
    Throttle::new("node-ipam", 1.0, 1, &m).unwrap().unwrap()
}

fn wait(millis: u64) -> Wait {
    Wait { time: Duration::from_millis(millis), queue: 3, stopped_by: None }
}

fn waiting<'a>(throttle: &'a Throttle, method: &'a Method, url: &'a Uri) -> Waiting<'a> {
    Waiting { throttle, method, url }
}

fn url() -> Uri {
    Uri::from_static("https://api:6443/api/v1/nodes/a")
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_reported_in_the_words_people_search_for() {
    let captured = Capture::begin();
    WaitLog::new().ended(waiting(&throttle(), &Method::PATCH, &url()), &wait(1_500));
    let line = captured.take().pop().unwrap();
    for part in [
        "Waited before sending request",
        "delay=1.5s",
        "reason=client-side throttling, not priority and fairness",
        "verb=PATCH",
        "URL=https://api:6443/api/v1/nodes/a",
        "client=\"node-ipam\"",
        "qps=1.0",
        "queue=3",
    ] {
        assert!(line.contains(part), "no {part:?} in {line:?}");
    }
    assert!(!line.contains(" v="), "shown at the default verbosity: {line:?}");
}

#[tokio::test(start_paused = true)]
async fn the_servers_throttling_is_named_as_such() {
    let captured = Capture::begin();
    let wait = Wait { stopped_by: Some("uid-1".into()), ..wait(2_000) };
    WaitLog::new().ended(waiting(&throttle(), &Method::GET, &url()), &wait);
    let line = captured.take().pop().unwrap();
    assert!(line.contains("server-side throttling"), "{line:?}");
    assert!(line.contains("FlowSchema UID: \"uid-1\""), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn long_waits_make_one_line_in_10_s_and_more_only_at_higher_verbosity() {
    let captured = Capture::begin();
    let (log, throttle) = (WaitLog::new(), throttle());
    // Twenty long waits a second for 21 s.
    for _ in 0..420 {
        log.ended(waiting(&throttle, &Method::PATCH, &url()), &wait(3_000));
        tokio::time::advance(Duration::from_millis(50)).await;
    }
    let lines = captured.take();
    let count = |v: &str| lines.iter().filter(|l| l.contains(v)).count();
    let at_default = lines.len() - count(" v=2 ") - count(" v=3 ");
    assert_eq!(at_default, 3, "one at 0, 10 and 20 s");
    assert!((18..=21).contains(&count(" v=2 ")), "{}", count(" v=2 "));
}

#[tokio::test(start_paused = true)]
async fn short_waits_are_reported_at_verbosity_3_and_tiny_ones_never() {
    let captured = Capture::begin();
    let (log, throttle) = (WaitLog::new(), throttle());
    log.ended(waiting(&throttle, &Method::GET, &url()), &wait(50));
    assert_eq!(captured.take(), Vec::<String>::new());
    log.ended(waiting(&throttle, &Method::GET, &url()), &wait(51));
    log.ended(waiting(&throttle, &Method::GET, &url()), &wait(1_000));
    let lines = captured.take();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|l| l.contains(" v=3 ")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_going_to_be_long_is_reported_while_it_lasts() {
    let captured = Capture::begin();
    let (log, throttle) = (WaitLog::new(), throttle());
    throttle.pause(Duration::from_secs(60), "uid-1");
    tokio::time::advance(LONG).await;
    for _ in 0..3 {
        log.goes_on(waiting(&throttle, &Method::PATCH, &url()));
    }
    let lines = captured.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["Waiting before sending request", "left=59s", "FlowSchema UID: \"uid-1\""] {
        assert!(lines[0].contains(part), "no {part:?} in {lines:?}");
    }
}
