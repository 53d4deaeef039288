//! The line's words and its rate, on a paused clock.

use std::io;
use std::sync::Arc;

use prometheus::Registry;
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::throttle::metrics::ThrottleMetrics;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    fn take(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.0.lock());
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }
}

fn capture() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

fn throttle() -> Throttle {
    let m = ThrottleMetrics::new(&Registry::new()).unwrap();
    Throttle::new("node-ipam", 1.0, 1, &m).unwrap().unwrap()
}

fn wait(millis: u64) -> Wait {
    Wait { time: Duration::from_millis(millis), queue: 3, stopped_by: None }
}

fn url() -> Uri {
    Uri::from_static("https://api:6443/api/v1/nodes/a")
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_told_in_the_words_people_search_for() {
    let (lines, _guard) = capture();
    WaitLog::new().report(&throttle(), &wait(1_500), &Method::PATCH, &url());
    let line = lines.take().pop().unwrap();
    for part in [
        "Waited before sending request",
        "delay=1.5s",
        "reason=client-side throttling, not priority and fairness",
        "verb=PATCH",
        "URL=https://api:6443/api/v1/nodes/a",
        "client=\"node-ipam\"",
        "bucket=\"node-ipam\"",
        "qps=1.0",
        "queue=3",
    ] {
        assert!(line.contains(part), "no {part:?} in {line:?}");
    }
    assert!(!line.contains(" v="), "shown at the default verbosity: {line:?}");
}

#[tokio::test(start_paused = true)]
async fn the_servers_throttling_is_named_as_such() {
    let (lines, _guard) = capture();
    let wait = Wait { stopped_by: Some("uid-1".into()), ..wait(2_000) };
    WaitLog::new().report(&throttle(), &wait, &Method::GET, &url());
    let line = lines.take().pop().unwrap();
    assert!(line.contains("server-side throttling"), "{line:?}");
    assert!(line.contains("FlowSchema UID: \"uid-1\""), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn long_waits_make_one_line_in_10_s_and_more_only_at_higher_verbosity() {
    let (lines, _guard) = capture();
    let (log, throttle) = (WaitLog::new(), throttle());
    // Twenty long waits a second for 21 s.
    for _ in 0..420 {
        log.report(&throttle, &wait(3_000), &Method::PATCH, &url());
        tokio::time::advance(Duration::from_millis(50)).await;
    }
    let lines = lines.take();
    let count = |v: &str| lines.iter().filter(|l| l.contains(v)).count();
    let at_default = lines.len() - count(" v=2 ") - count(" v=3 ");
    assert_eq!(at_default, 3, "one at 0, 10 and 20 s");
    assert!((18..=21).contains(&count(" v=2 ")), "{}", count(" v=2 "));
}

#[tokio::test(start_paused = true)]
async fn short_waits_are_told_at_verbosity_3_and_tiny_ones_never() {
    let (lines, _guard) = capture();
    let (log, throttle) = (WaitLog::new(), throttle());
    log.report(&throttle, &wait(50), &Method::GET, &url());
    assert_eq!(lines.take(), Vec::<String>::new());
    log.report(&throttle, &wait(51), &Method::GET, &url());
    log.report(&throttle, &wait(1_000), &Method::GET, &url());
    let lines = lines.take();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|l| l.contains(" v=3 ")), "{lines:?}");
}
