//! Captures the log lines of a unit test's own thread. Crates name it under `[dev-dependencies]`
//! only.
//!
//! One subscriber serves the whole test process and writes to the log of the thread. With one per
//! test, `tracing` takes a line that another thread reaches first, without a subscriber, for one
//! that no subscriber wants, and stays silent there.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tokio::time::Instant;

/// One line, without its end, and when it was written.
struct Line {
    at: Instant,
    text: String,
}

/// The lines of one test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Line>>>);

thread_local! {
    static CAPTURED: RefCell<Log> = RefCell::default();
}

/// The lines that this thread has logged, at level `info` and above, since the value was made. Tasks count as
/// far as they run on the same thread, as all do under `#[tokio::test]`.
#[must_use = "the capture ends when this is dropped"]
pub struct Capture {
    log: Log,
}

impl Capture {
    /// Begins to capture; a capture that this thread still holds gets nothing more.
    ///
    /// # Panics
    /// When the process has another global subscriber.
    pub fn begin() -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let writer = || CAPTURED.with_borrow(Log::clone);
            let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer);
            tracing::subscriber::set_global_default(subscriber.finish())
                .expect("nothing else logs in a test");
        });
        // A line that was reached while the subscriber was being installed may still be off.
        tracing::callsite::rebuild_interest_cache();
        let log = Log::default();
        CAPTURED.set(log.clone());
        Self { log }
    }

    /// The lines so far that contain `text`: time, level, spans, message and fields.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<String> {
        self.each(text, |line| line.text.clone())
    }

    /// Times at which these lines were written, by the clock that a test may pause.
    #[must_use]
    pub fn times(&self, text: &str) -> Vec<Instant> {
        self.each(text, |line| line.at)
    }

    fn each<T>(&self, text: &str, give: impl Fn(&Line) -> T) -> Vec<T> {
        self.log.0.lock().iter().filter(|line| line.text.contains(text)).map(give).collect()
    }

    /// Takes all lines so far out of the capture.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        self.log.0.lock().drain(..).map(|line| line.text).collect()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        CAPTURED.take();
    }
}

/// The subscriber writes each line in one piece.
impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
        self.0.lock().push(Line { at: Instant::now(), text });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
