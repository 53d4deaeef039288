//! The log lines about waiting, in the words people search for, and seldom enough to be read
//! (`rule:waits-are-told`). Written by the gate layer.

use std::time::Duration;

use http::{Method, Uri};
use resilience::LogGate;
use tokio::time::Instant;
use tracing::info;

use crate::throttle::bucket::{Throttle, Wait};

/// Shorter waits are no news at any verbosity.
const NOTABLE: Duration = Duration::from_millis(50);
/// Longer ones are shown to an operator who did not ask.
pub(crate) const LONG: Duration = Duration::from_secs(1);

/// The lines' rate is the process's, not a client's.
pub(crate) static WAIT_LOG: WaitLog = WaitLog::new();

/// Writes the lines and keeps their rate.
pub(crate) struct WaitLog {
    begun: LogGate,
    always: LogGate,
    verbose: LogGate,
}

/// The request that waits.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    pub(crate) throttle: &'a Throttle,
    pub(crate) method: &'a Method,
    pub(crate) url: &'a Uri,
}

impl WaitLog {
    pub(crate) const fn new() -> Self {
        Self {
            begun: LogGate::new(Duration::from_secs(10)),
            always: LogGate::new(Duration::from_secs(10)),
            verbose: LogGate::new(Duration::from_secs(1)),
        }
    }

    /// Tells of a wait that has become long and goes on. `LONG` after its beginning, since a
    /// controller that stands still must be explained while it does.
    pub(crate) fn goes_on(&self, waiting: Waiting<'_>) {
        if self.begun.pass(Instant::now()).is_none() {
            return;
        }
        let pause = waiting.throttle.paused();
        let schema = pause.as_ref().map(|(_, flow_schema)| &**flow_schema);
        info!(
            left = pause.as_ref().map(|(left, _)| tracing::field::debug(*left)),
            reason = %reason(schema),
            verb = %waiting.method,
            URL = %waiting.url,
            client = waiting.throttle.name(),
            qps = waiting.throttle.qps(),
            "Waiting before sending request"
        );
    }

    /// Tells of `wait` now that it is over, if it was long enough and the last line long enough
    /// ago.
    pub(crate) fn ended(&self, waiting: Waiting<'_>, wait: &Wait) {
        if wait.time <= NOTABLE {
            return;
        }
        let line = Line { waiting, wait };
        let now = Instant::now();
        if wait.time > LONG && self.always.pass(now).is_some() {
            line.write_always();
        } else if wait.time > LONG && self.verbose.pass(now).is_some() {
            line.write_at_2();
        } else {
            line.write_at_3();
        }
    }
}

struct Line<'a> {
    waiting: Waiting<'a>,
    wait: &'a Wait,
}

/// tracing fixes a line's verbosity where it is written, so the three differ in `v` alone.
macro_rules! write_line {
    ($line:expr $(, v = $v:literal)?) => {
        info!(
            $(v = $v,)?
            delay = ?$line.wait.time,
            reason = %reason($line.wait.stopped_by.as_deref()),
            verb = %$line.waiting.method,
            URL = %$line.waiting.url,
            client = $line.waiting.throttle.name(),
            qps = $line.waiting.throttle.qps(),
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
}

fn reason(stopped_by: Option<&str>) -> String {
    match stopped_by {
        None => "client-side throttling, not priority and fairness".to_owned(),
        Some(uid) => {
            format!("server-side throttling (429 with Retry-After), FlowSchema UID: {uid:?}")
        }
    }
}

#[cfg(test)]
mod tests;
