//! Where lines go: one write per line, so that lines of several threads do not mix.

use std::io::Write;
use std::time::Instant;

use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

use crate::Format;
use crate::collapse::Collapse;
use crate::line::{self, Severity};

/// The sink with the memory of repeated warnings.
pub(crate) struct Output<W> {
    pub(crate) format: Format,
    pid: u32,
    sink: W,
    /// For all but errors, when those are to stand apart.
    rest: Option<W>,
    collapse: Mutex<Collapse>,
}

impl<W> Output<W>
where
    W: for<'w> MakeWriter<'w>,
{
    pub(crate) fn new(format: Format, sink: W, rest: Option<W>) -> Self {
        Self { format, pid: std::process::id(), sink, rest, collapse: Mutex::default() }
    }

    /// Writes the line, unless it repeats a warning. `buffer` saves the allocation.
    pub(crate) fn write(&self, severity: Severity, tail: &str, buffer: &mut String) {
        let now = Instant::now();
        // Rather a repeated line than a wait for another thread (rule:nobody-waits-for-the-log).
        let (repeated, ended) = if let Some(mut collapse) = self.collapse.try_lock() {
            let repeated = match severity {
                Severity::Warning => collapse.offer(tail, now),
                Severity::Info | Severity::Error => Some(0),
            };
            (repeated, collapse.ended(now))
        } else {
            (Some(0), Vec::new())
        };
        self.write_counts(&ended, buffer);
        if let Some(repeated) = repeated {
            self.write_line(severity, tail, repeated, buffer);
        }
    }

    /// Writes every count that is held back.
    pub(crate) fn flush(&self) {
        let held_back = self.collapse.lock().drain();
        self.write_counts(&held_back, &mut String::new());
    }

    fn write_counts(&self, counts: &[(Box<str>, u64)], buffer: &mut String) {
        for (tail, repeated) in counts {
            self.write_line(Severity::Warning, tail, *repeated, buffer);
        }
    }

    fn write_line(&self, severity: Severity, tail: &str, repeated: u64, buffer: &mut String) {
        buffer.clear();
        line::line(buffer, self.format, severity, self.pid, tail, repeated);
        let sink = match severity {
            Severity::Error => &self.sink,
            Severity::Warning | Severity::Info => self.rest.as_ref().unwrap_or(&self.sink),
        };
        // A log that cannot be written has nobody to tell.
        sink.make_writer().write_all(buffer.as_bytes()).ok();
    }
}
