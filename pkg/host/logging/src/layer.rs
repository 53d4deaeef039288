//! The `tracing` layer: hears events and spans, and turns events into lines.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::field::Visit;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::line::{self, Fields, Format, Verbosity};
use crate::threshold::{self, Threshold};

/// Writes every admitted event as one line.
pub(crate) struct KlogLayer<W> {
    /// None when `RUST_LOG` decides instead.
    threshold: Option<Threshold>,
    output: Arc<Output<W>>,
}

/// Buffers that live from event to event.
#[derive(Default)]
struct Scratch {
    fields: Fields,
    tail: String,
    line: String,
}

thread_local! {
    /// Taken out while in use: a value whose `Debug` logs gets fresh ones.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl<W> KlogLayer<W> {
    pub(crate) fn new(threshold: Option<Threshold>, output: Arc<Output<W>>) -> Self {
        Self { threshold, output }
    }

    fn admits(&self, site: &Metadata<'_>) -> bool {
        self.threshold.as_ref().is_none_or(|threshold| threshold.admits(site))
    }
}

impl<S, W> Layer<S> for KlogLayer<W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn register_callsite(&self, site: &'static Metadata<'static>) -> Interest {
        if self.admits(site) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, site: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.admits(site)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.threshold.as_ref().map(Threshold::level_hint)
    }

    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(known) = context.span(id) {
            let mut fields = Fields::default();
            span.record(&mut fields as &mut dyn Visit);
            known.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(known) = context.span(id)
            && let Some(fields) = known.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let site = event.metadata();
        let mut v = Verbosity::default();
        if site.fields().field("v").is_some() {
            event.record(&mut v);
        }
        if self.threshold.as_ref().is_some_and(|threshold| !threshold.admits_event(site, v.0)) {
            return;
        }
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let Scratch { fields, tail, line } = &mut *scratch;
        fields.clear();
        event.record(fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.inherit(outer);
            }
        }
        tail.clear();
        let v = v.0.max(threshold::of_level(*site.level()));
        line::tail(tail, self.output.format, site, fields, v);
        self.output.write(*site.level(), tail, line);
        SCRATCH.set(Some(scratch));
    }
}

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
    pub(crate) fn write(&self, level: Level, tail: &str, buffer: &mut String) {
        let now = Instant::now();
        // Rather a repeated line than a wait for another thread (rule:logging-never-blocks).
        let (repeated, ended) = if let Some(mut collapse) = self.collapse.try_lock() {
            let is_warning = level == Level::WARN;
            let repeated = if is_warning { collapse.offer(tail, now) } else { Some(0) };
            (repeated, collapse.ended(now))
        } else {
            (Some(0), Vec::new())
        };
        self.write_counts(&ended, buffer);
        if let Some(repeated) = repeated {
            self.write_line(level, tail, repeated, buffer);
        }
    }

    /// Writes every count that is held back.
    pub(crate) fn flush(&self) {
        let held_back = self.collapse.lock().drain();
        self.write_counts(&held_back, &mut String::new());
    }

    fn write_counts(&self, counts: &[(Box<str>, u64)], buffer: &mut String) {
        for (tail, repeated) in counts {
            self.write_line(Level::WARN, tail, *repeated, buffer);
        }
    }

    fn write_line(&self, level: Level, tail: &str, repeated: u64, buffer: &mut String) {
        buffer.clear();
        line::line(buffer, self.format, level, self.pid, tail, repeated);
        let rest = self.rest.as_ref().filter(|_| level > Level::ERROR);
        let sink = rest.unwrap_or(&self.sink);
        // A failure to write the log cannot be logged.
        sink.make_writer().write_all(buffer.as_bytes()).ok();
    }
}

const WINDOW: Duration = Duration::from_secs(10);
/// Different warnings remembered at once. More than that are all written.
const MAX_REMEMBERED: usize = 512;

#[derive(Default)]
pub(crate) struct Collapse {
    windows: HashMap<Box<str>, Window>,
    /// Time before which no window ends.
    next: Option<Instant>,
}

struct Window {
    opened: Instant,
    held_back: u64,
}

impl Collapse {
    /// A warning that wants out. Returns how many equal ones were held back before it, or none
    /// when it is held back itself.
    pub(crate) fn offer(&mut self, tail: &str, now: Instant) -> Option<u64> {
        if let Some(window) = self.windows.get_mut(tail) {
            if now < window.opened + WINDOW {
                window.held_back += 1;
                return None;
            }
            window.opened = now;
            return Some(std::mem::take(&mut window.held_back));
        }
        if self.windows.len() < MAX_REMEMBERED {
            self.windows.insert(tail.into(), Window { opened: now, held_back: 0 });
            self.next.get_or_insert(now + WINDOW);
        }
        Some(0)
    }

    /// The warnings whose window has ended, with what each held back. Those that held nothing back
    /// are forgotten; for the others a new window opens.
    pub(crate) fn ended(&mut self, now: Instant) -> Vec<(Box<str>, u64)> {
        if self.next.is_none_or(|next| now < next) {
            return Vec::new();
        }
        self.windows.retain(|_, window| now < window.opened + WINDOW || window.held_back > 0);
        let mut counts = Vec::new();
        for (tail, window) in &mut self.windows {
            if now >= window.opened + WINDOW {
                window.opened = now;
                counts.push((tail.clone(), std::mem::take(&mut window.held_back)));
            }
        }
        self.next = self.windows.values().map(|window| window.opened + WINDOW).min();
        counts
    }

    /// Everything still held back; the memory is empty afterwards.
    pub(crate) fn drain(&mut self) -> Vec<(Box<str>, u64)> {
        self.next = None;
        let windows = self.windows.drain().filter(|(_, window)| window.held_back > 0);
        windows.map(|(tail, window)| (tail, window.held_back)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn one_line_per_window_with_the_count_on_the_next() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        assert_eq!(collapse.offer("a", start), Some(0));
        for second in 1..10 {
            assert_eq!(collapse.offer("a", at(start, second)), None);
        }
        assert_eq!(collapse.offer("a", at(start, 10)), Some(9));
        assert_eq!(collapse.offer("a", at(start, 11)), None);
        assert_eq!(collapse.offer("a", at(start, 20)), Some(1));
    }

    #[test]
    fn different_warnings_do_not_hold_each_other_back() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        assert_eq!(collapse.offer("a", start), Some(0));
        assert_eq!(collapse.offer("b", start), Some(0));
    }

    #[test]
    fn a_count_comes_out_when_the_warning_itself_never_returns() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        collapse.offer("a", start);
        collapse.offer("a", at(start, 1));
        collapse.offer("quiet", at(start, 1));
        assert!(collapse.ended(at(start, 9)).is_empty());
        assert_eq!(collapse.ended(at(start, 12)), [("a".into(), 1)]);
        assert_eq!(collapse.offer("a", at(start, 13)), None, "the count opened a new window");
        assert_eq!(collapse.drain(), [("a".into(), 1)]);
        assert!(collapse.drain().is_empty());
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_written() {
        let (mut collapse, start) = (Collapse::default(), Instant::now());
        for warning in 0..2 * MAX_REMEMBERED {
            assert_eq!(collapse.offer(&warning.to_string(), start), Some(0));
        }
        assert_eq!(collapse.windows.len(), MAX_REMEMBERED);
        let unremembered = (2 * MAX_REMEMBERED - 1).to_string();
        assert_eq!(collapse.offer(&unremembered, start), Some(0));
        collapse.ended(at(start, 11));
        assert!(collapse.windows.is_empty(), "ended windows make room");
    }
}
