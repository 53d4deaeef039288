//! The two formats of a line (rule:log-lines-as-klog).
//!
//! A line is a head with the time, and a *tail*: all that is the same when the same call site says
//! the same again. Collapsing repeats compares tails.

use std::fmt::{self, Write};
use std::path::Path;

use jiff::Zoned;
use tracing::{Level, Metadata};

use crate::Format;
use crate::fields::Fields;

/// How grave a line is, in klog's words. Debug and trace are information of higher verbosity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub(crate) fn of(level: Level) -> Self {
        match level {
            Level::ERROR => Self::Error,
            Level::WARN => Self::Warning,
            _ => Self::Info,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Info => 'I',
            Self::Warning => 'W',
            Self::Error => 'E',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
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
    let severity = Severity::of(*site.level());
    let path = path(site);
    let file = path.file_name().unwrap_or_default().display();
    let line = site.line().unwrap_or_default();
    write!(out, r#""caller":"{}/{file}:{line}","msg":{}"#, package(path), message(fields))?;
    if severity == Severity::Info {
        write!(out, r#","v":{v}"#)?;
    }
    for (name, value) in [("logger", fields.get("logger")), ("err", err(fields))] {
        if let Some(value) = value {
            write!(out, r#","{name}":{value}"#)?;
        }
    }
    write!(out, r#","level":"{}""#, severity.name())?;
    plain(fields).try_for_each(|(name, value)| {
        let mark = if OURS.contains(&name) { "_" } else { "" };
        write!(out, r#","{name}{mark}":{value}"#)
    })
}

/// Appends a whole line, its end included. `repeated` counts the equal lines held back before it.
pub(crate) fn line(
    out: &mut String,
    format: Format,
    severity: Severity,
    pid: u32,
    tail: &str,
    repeated: u64,
) {
    let now = Zoned::now();
    let letter = severity.letter();
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
    const MESSAGE: &str = r#""Lines of the log were dropped: nobody read it in time""#;
    let tail = match format {
        Format::Text => format!("queue.rs:0] {MESSAGE} count={count}"),
        Format::Json => format!(
            r#""caller":"logging/queue.rs:0","msg":{MESSAGE},"level":"warning","count":{count}"#
        ),
    };
    let mut out = String::new();
    line(&mut out, format, Severity::Warning, std::process::id(), &tail, 0);
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
