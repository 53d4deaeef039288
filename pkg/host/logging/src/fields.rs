//! The fields of an event or a span, each value written once in the form both formats share:
//! numbers and booleans bare, everything else in quotes.

use std::fmt::{Debug, Write};
use std::ops::Range;

use tracing::field::{Field, Visit};

use crate::escape::quoted;

/// Names with values, in the order of the call. Reused from event to event.
#[derive(Default)]
pub(crate) struct Fields {
    text: String,
    entries: Vec<(&'static str, Range<usize>)>,
}

impl Fields {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
    }

    /// The value, ready to print.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, range) = self.entries.iter().find(|(known, _)| *known == name)?;
        Some(&self.text[range.clone()])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.entries.iter().map(|(name, range)| (*name, &self.text[range.clone()]))
    }

    /// Adds what `outer` holds and this does not: the nearer value wins.
    pub(crate) fn inherit(&mut self, outer: &Self) {
        for (name, value) in outer.iter() {
            if self.get(name).is_none() {
                self.push(name, |text| text.push_str(value));
            }
        }
    }

    fn set(&mut self, field: &Field, write: impl FnOnce(&mut String)) {
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        self.entries.retain(|(known, _)| *known != name);
        self.push(name, write);
    }

    fn push(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        self.entries.push((name, start..self.text.len()));
    }

    fn bare(&mut self, field: &Field, value: impl std::fmt::Display) {
        self.set(field, |text| {
            // Writing to a String cannot fail.
            write!(text, "{value}").ok();
        });
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // Infinity and NaN are no JSON numbers.
        if value.is_finite() {
            self.bare(field, value);
        } else {
            self.set(field, |text| quoted(text, value));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.bare(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.bare(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.bare(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, |text| quoted(text, value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.set(field, |text| quoted(text, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field, |text| quoted(text, format_args!("{value:?}")));
    }
}

/// Reads the field `v` alone, without a copy of the others.
#[derive(Default)]
pub(crate) struct Verbosity(pub(crate) u8);

impl Visit for Verbosity {
    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "v" {
            self.0 = u8::try_from(value.max(0)).unwrap_or(u8::MAX);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "v" {
            self.0 = u8::try_from(value).unwrap_or(u8::MAX);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
