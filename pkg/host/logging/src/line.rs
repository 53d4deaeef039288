//! The two formats of a line.
//!
//! A line is a head with the time, and a *tail*: all that is the same when the same call site says
//! the same again. Collapsing repeats compares tails.

use std::fmt::{self, Debug, Display, Write};
use std::ops::Range;
use std::path::Path;

use jiff::Zoned;
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};

/// The letter and the word of klog for a level. Debug and trace are information of higher verbosity.
fn severity(level: Level) -> (char, &'static str) {
    match level {
        Level::ERROR => ('E', "error"),
        Level::WARN => ('W', "warning"),
        _ => ('I', "info"),
    }
}

/// Fields with a place of their own in a line; `v` steers, and only JSON shows it.
const PLACED: [&str; 5] = ["message", "err", "error", "logger", "v"];
/// Keys of the JSON object that a field of an event must not repeat.
const OURS: [&str; 5] = ["ts", "caller", "msg", "level", "repeated"];

/// Appends what does not depend on the time. `v` is the verbosity of the event.
pub(crate) fn tail(out: &mut String, format: Format, site: &Metadata<'_>, fields: &Fields, v: u8) {
    // Writing to a String cannot fail.
    match format {
        Format::Text => text_tail(out, site, fields).ok(),
        Format::Json => json_tail(out, site, fields, v).ok(),
    };
}

fn text_tail(out: &mut String, site: &Metadata<'_>, fields: &Fields) -> fmt::Result {
    let file = path(site).file_name().unwrap_or_default().display();
    let line = site.line().unwrap_or_default();
    write!(out, "{file}:{line}] {}", message(fields))?;
    for (name, value) in [("err", err(fields)), ("logger", fields.get("logger"))] {
        if let Some(value) = value {
            write!(out, " {name}={value}")?;
        }
    }
    plain(fields).try_for_each(|(name, value)| write!(out, " {name}={value}"))
}

fn json_tail(out: &mut String, site: &Metadata<'_>, fields: &Fields, v: u8) -> fmt::Result {
    let (_, severity) = severity(*site.level());
    let path = path(site);
    let file = path.file_name().unwrap_or_default().display();
    let line = site.line().unwrap_or_default();
    write!(out, r#""caller":"{}/{file}:{line}","msg":{}"#, package(path), message(fields))?;
    if *site.level() > Level::WARN {
        write!(out, r#","v":{v}"#)?;
    }
    for (name, value) in [("logger", fields.get("logger")), ("err", err(fields))] {
        if let Some(value) = value {
            write!(out, r#","{name}":{value}"#)?;
        }
    }
    write!(out, r#","level":"{severity}""#)?;
    plain(fields).try_for_each(|(name, value)| {
        let mark = if OURS.contains(&name) { "_" } else { "" };
        write!(out, r#","{name}{mark}":{value}"#)
    })
}

/// Appends a whole line, its end included. `repeated` counts the equal lines held back before it.
pub(crate) fn line(
    out: &mut String,
    format: Format,
    level: Level,
    pid: u32,
    tail: &str,
    repeated: u64,
) {
    let now = Zoned::now();
    let (letter, _) = severity(level);
    match format {
        Format::Text => {
            let micros = now.subsec_nanosecond() / 1000;
            write!(
                out,
                "{letter}{:02}{:02} {:02}:{:02}:{:02}.{micros:06} {pid:>7} {tail}",
                now.month(),
                now.day(),
                now.hour(),
                now.minute(),
                now.second(),
            )
            .ok();
            if repeated > 0 {
                write!(out, " repeated={repeated}").ok();
            }
        }
        Format::Json => {
            let micros = now.timestamp().as_microsecond();
            write!(out, r#"{{"ts":{}.{:03},{tail}"#, micros / 1000, micros % 1000).ok();
            if repeated > 0 {
                write!(out, r#","repeated":{repeated}"#).ok();
            }
            out.push('}');
        }
    }
    out.push('\n');
}

/// The line about lines that were dropped.
pub(crate) fn lost_lines(format: Format, count: u64) -> String {
    const MESSAGE: &str = r#""Log lines were dropped: standard error was not read in time""#;
    let tail = match format {
        Format::Text => format!("queue.rs:0] {MESSAGE} count={count}"),
        Format::Json => format!(
            r#""caller":"logging/queue.rs:0","msg":{MESSAGE},"level":"warning","count":{count}"#
        ),
    };
    let mut out = String::new();
    line(&mut out, format, Level::WARN, std::process::id(), &tail, 0);
    out
}

fn message(fields: &Fields) -> &str {
    fields.get("message").unwrap_or("\"\"")
}

fn err(fields: &Fields) -> Option<&str> {
    fields.get("err").or_else(|| fields.get("error"))
}

fn path<'a>(site: &Metadata<'a>) -> &'a Path {
    Path::new(site.file().unwrap_or("unknown"))
}

fn plain(fields: &Fields) -> impl Iterator<Item = (&'static str, &str)> {
    fields.iter().filter(|(name, _)| !PLACED.contains(name))
}

/// The folder that tells apart the many `mod.rs` and `error.rs`: the nearest but `src`.
fn package(path: &Path) -> &str {
    let folders = path.parent().into_iter().flat_map(Path::ancestors);
    let mut names = folders.filter_map(|folder| folder.file_name()?.to_str());
    names.find(|name| *name != "src").unwrap_or(".")
}

/// `--logging-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// klog's lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Appends `value` in quotes. Quotes, backslashes and control characters are escaped as in JSON,
/// which klog's text readers understand too: no value can break a line, end its own quotes, or
/// send commands to a terminal.
pub(crate) fn quoted(out: &mut String, value: impl Display) {
    out.push('"');
    // Fails only when the value's own Display does: what it wrote until then stays.
    write!(Escaping(out), "{value}").ok();
    out.push('"');
}

struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, char) in text.char_indices() {
            if !needs_escape(char) {
                continue;
            }
            self.0.push_str(&text[plain..at]);
            plain = at + char.len_utf8();
            match char {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                other => write!(self.0, "\\u{:04x}", u32::from(other))?,
            }
        }
        self.0.push_str(&text[plain..]);
        Ok(())
    }
}

/// The line and paragraph separators end lines for some readers.
fn needs_escape(char: char) -> bool {
    matches!(char, '"' | '\\' | '\u{2028}' | '\u{2029}') || char.is_control()
}

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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_value_cannot_leave_its_quotes_or_its_line() {
        let mut out = String::new();
        quoted(&mut out, "a\"b\\c\nd\re\tf\u{1b}[31m\u{85}\u{2028}é");
        assert_eq!(out, r#""a\"b\\c\nd\re\tf\u001b[31m\u0085\u2028é""#);
        assert!(serde_json::from_str::<String>(&out).is_ok(), "the same text is JSON");
    }
}
