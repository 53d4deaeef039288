//! The `tracing` layer: hears events and spans, and turns events into lines.

use std::cell::Cell;
use std::sync::Arc;

use tracing::field::Visit;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::fields::{Fields, Verbosity};
use crate::line::{self, Severity};
use crate::output::Output;
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
        self.output.write(Severity::of(*site.level()), tail, line);
        SCRATCH.set(Some(scratch));
    }
}
