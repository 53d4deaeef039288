//! The log line about waiting, in the words people search for, and seldom enough to be read
//! (`rule:waits-are-told`). Written by the gate layer.

use std::time::Duration;

use http::{Method, Uri};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::info;

use crate::throttle::bucket::{Throttle, Wait};

/// Shorter waits are no news at any verbosity.
const NOTABLE: Duration = Duration::from_millis(50);
/// Longer ones are shown to an operator who did not ask.
const LONG: Duration = Duration::from_secs(1);

/// The line's rate is the process's, not a client's.
pub(crate) static WAIT_LOG: WaitLog = WaitLog::new();

/// Writes the line and keeps its rate.
pub(crate) struct WaitLog {
    always: Pace,
    verbose: Pace,
}

impl WaitLog {
    pub(crate) const fn new() -> Self {
        Self {
            always: Pace::new(Duration::from_secs(10)),
            verbose: Pace::new(Duration::from_secs(1)),
        }
    }

    /// Writes a line about `wait` if it is long enough and the last line long enough ago.
    pub(crate) fn report(&self, throttle: &Throttle, wait: &Wait, method: &Method, url: &Uri) {
        if wait.time <= NOTABLE {
            return;
        }
        let line = Line { throttle, wait, method, url };
        let now = Instant::now();
        if wait.time > LONG && self.always.allows(now) {
            line.write_always();
        } else if wait.time > LONG && self.verbose.allows(now) {
            line.write_at_2();
        } else {
            line.write_at_3();
        }
    }
}

/// One line in `every`.
struct Pace {
    every: Duration,
    last: Mutex<Option<Instant>>,
}

impl Pace {
    const fn new(every: Duration) -> Self {
        Self { every, last: Mutex::new(None) }
    }

    fn allows(&self, now: Instant) -> bool {
        let mut last = self.last.lock();
        if last.is_some_and(|last| now.saturating_duration_since(last) < self.every) {
            return false;
        }
        *last = Some(now);
        true
    }
}

struct Line<'a> {
    throttle: &'a Throttle,
    wait: &'a Wait,
    method: &'a Method,
    url: &'a Uri,
}

/// tracing fixes a line's verbosity where it is written, so the three differ in `v` alone.
macro_rules! write_line {
    ($line:expr $(, v = $v:literal)?) => {
        info!(
            $(v = $v,)?
            delay = ?$line.wait.time,
            reason = %$line.reason(),
            verb = %$line.method,
            URL = %$line.url,
            client = $line.throttle.name(),
            bucket = $line.throttle.name(),
            qps = $line.throttle.qps(),
            queue = $line.wait.queue,
            "Waited before sending request"
        )
    };
}

impl Line<'_> {
    fn write_always(&self) {
        write_line!(self);
    }

    fn write_at_2(&self) {
        write_line!(self, v = 2);
    }

    fn write_at_3(&self) {
        write_line!(self, v = 3);
    }

    fn reason(&self) -> String {
        match &self.wait.stopped_by {
            None => "client-side throttling, not priority and fairness".to_owned(),
            Some(uid) => {
                format!("server-side throttling (429 with Retry-After), FlowSchema UID: {uid:?}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
