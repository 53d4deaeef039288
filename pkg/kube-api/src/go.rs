//! Conventions of Go that show in the API of Kubernetes: null for what is empty, names of platforms,
//! and durations, read and printed as `time.Duration` does, so that a value copied out of a log or of
//! another manager's `/configz` is a valid flag.

use std::env::consts::{ARCH, OS};
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use thiserror::Error;

/// For `#[serde(deserialize_with = …)]`: `null` is the value's default. Go writes `null` for an
/// empty list or map.
///
/// # Errors
/// What the value itself cannot be read for.
pub fn null_is_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The platform of this program as `GOOS/GOARCH`, such as `linux/amd64`.
pub fn platform() -> String {
    format!("{OS}/{}", architecture(ARCH))
}

/// Go's name of an architecture, by Rust's.
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// Go's units and their length in nanoseconds; both code points for micro are legal.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Digits after the point that can still matter: an hour has 3.6e12 ns.
const FRACTION_DIGITS: usize = 18;

/// Why a text is not a duration of Go.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// The text is not a list of numbers with units.
    #[error("not a duration; use a number and a unit, such as 10s, 1m30s or 1.5h")]
    Malformed,
    /// A number without unit where only `0` may stand alone.
    #[error("missing unit in duration; write {0}s, {0}m or {0}h")]
    MissingUnit(String),
    /// A unit Go does not know.
    #[error("unknown unit {0:?} in duration; the units are ns, us, ms, s, m and h")]
    UnknownUnit(String),
    /// More nanoseconds than 64 bits hold.
    #[error("value out of range for a duration")]
    OutOfRange,
}

/// A signed number of nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(i64);

impl GoDuration {
    /// Nanoseconds; negative durations exist on the command line.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Converts to a [`Duration`](std::time::Duration); a negative duration becomes zero, so callers that must refuse it check first.
    pub fn to_std(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl From<Duration> for GoDuration {
    /// Spans over 292 years end at what Go can hold.
    fn from(span: Duration) -> Self {
        Self(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(DurationError::Malformed);
        }
        let out_of_range = || DurationError::OutOfRange;
        let mut total: u128 = 0;
        let mut left = rest;
        while !left.is_empty() {
            let (nanos, after) = element(left)?;
            total = total.checked_add(nanos).ok_or_else(out_of_range)?;
            left = after;
        }
        let total = i128::try_from(total).map_err(|_| out_of_range())?;
        let signed = if negative { -total } else { total };
        i64::try_from(signed).map(Self).map_err(|_| out_of_range())
    }
}

/// One `12.5h` at the start of `text`: its nanoseconds and what follows.
fn element(text: &str) -> Result<(u128, &str), DurationError> {
    let whole_end = digits(text);
    let mut number_end = whole_end;
    let mut fraction = "";
    if text[whole_end..].starts_with('.') {
        let start = whole_end + 1;
        number_end = start + digits(&text[start..]);
        fraction = &text[start..number_end];
    }
    if whole_end == 0 && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let tail = &text[number_end..];
    let unit_end = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
    let name = &tail[..unit_end];
    if name.is_empty() {
        return Err(DurationError::MissingUnit(text[..number_end].to_owned()));
    }
    let unit = UNITS.iter().find(|(known, _)| *known == name).map(|(_, length)| *length);
    let unit = unit.ok_or_else(|| DurationError::UnknownUnit(name.to_owned()))?;
    let whole: u128 = match &text[..whole_end] {
        "" => 0,
        digits => digits.parse().map_err(|_| DurationError::OutOfRange)?,
    };
    let nanos = whole
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(part(fraction, unit)))
        .ok_or(DurationError::OutOfRange)?;
    Ok((nanos, &tail[unit_end..]))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The nanoseconds of `0.<fraction>` units, rounded down.
fn part(fraction: &str, unit: u128) -> u128 {
    let kept = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let numerator: u128 = kept.parse().unwrap_or(0);
    let scale = 10_u128.pow(u32::try_from(kept.len()).unwrap_or(0));
    numerator * unit / scale
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_char('-')?;
        }
        match nanos {
            ..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_decimal(f, nanos, 1_000, "\u{b5}s"),
            1_000_000..1_000_000_000 => write_decimal(f, nanos, 1_000_000, "ms"),
            _ => {
                let minutes = nanos / 60_000_000_000;
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write_decimal(f, nanos % 60_000_000_000, 1_000_000_000, "s")
            }
        }
    }
}

/// `nanos / unit` without trailing zeros, then the unit.
fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let rest = nanos % unit;
    if rest > 0 {
        let width = unit.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        write!(f, ".{}", fraction.trim_end_matches('0'))?;
    }
    f.write_str(name)
}

#[cfg(test)]
mod tests;
