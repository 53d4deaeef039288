//! The value syntaxes of pflag, one function per syntax, text in, typed value out. Numbers are in Go's
//! notations: whole numbers with base prefix and `_`, floats, byte quantities. `composite` has those
//! with parts. [`crate::Value`] picks the function by [`crate::Kind`].

pub mod composite;

use std::net::{IpAddr, Ipv4Addr};

use kube_api::go::DurationError;
use kube_api::quantity::Quantity;
use thiserror::Error;

/// Why a text is not a value of its kind. Shown after `invalid argument "x" for "--f" flag: `.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SyntaxError {
    /// None of Go's twelve boolean words.
    #[error("not a boolean; use true or false (also 1, t, T, True, TRUE, 0, f, F, False, FALSE)")]
    Bool,
    /// A text that is no whole number.
    #[error("not a whole number")]
    Integer,
    /// A text that is no decimal number.
    #[error("not a number")]
    Float,
    /// A number its type cannot hold.
    #[error("value out of range for {0}")]
    OutOfRange(&'static str),
    /// A text that is no duration of Go.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// A text that is no IPv4 or IPv6 address.
    #[error("not an IP address")]
    Ip,
    /// A quote inside an unquoted CSV field.
    #[error("a \" is inside an unquoted field; quote the whole field and double the inner \"")]
    BareQuote,
    /// A quoted CSV field that does not end, or goes on after its closing quote.
    #[error("a quoted field is not closed, or text follows its closing \"")]
    UnclosedQuote,
    /// An unquoted line break in a list.
    #[error("a list must be on one line")]
    LineBreak,
    /// A map entry without `=`.
    #[error("{0:?} must be formatted as key=value")]
    KeyValue(String),
    /// A feature gate without a boolean.
    #[error("{0:?} must be formatted as Gate=true or Gate=false")]
    Gate(String),
    /// Not `cert,key`.
    #[error("expected comma separated certificate and key file paths")]
    CertKey,
    /// `cert,key:` with nothing after the colon.
    #[error("the list of names after the colon is empty")]
    NoNames,
    /// Not `[kube=]MAJOR.MINOR`.
    #[error("{0:?} is not a version; use MAJOR.MINOR or kube=MAJOR.MINOR, such as kube=1.36")]
    ComponentVersion(String),
    /// A text that is no byte count.
    #[error("not a quantity; use a number with an optional suffix, such as 4096, 64Ki or 1M")]
    Quantity,
    /// Not `pattern=N`.
    #[error("{0:?} does not have the pattern=N format")]
    VModule(String),
    /// `--version=` something else.
    #[error("use --version, --version=raw, or --version=vX.Y.Z... to override what is reported")]
    Version,
}

/// Go's boolean words, exactly.
pub fn boolean(text: &str) -> Result<bool, SyntaxError> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err(SyntaxError::Bool),
    }
}

/// An address literal without zone or port. Blank means all addresses, which `0.0.0.0` stands for.
pub fn ip(text: &str) -> Result<IpAddr, SyntaxError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
    text.parse::<IpAddr>().map(|ip| ip.to_canonical()).map_err(|_| SyntaxError::Ip)
}

/// A whole number of at most `bits` bits, in Go's base-0 notation: `10`, `0x10`, `0o10`, `010`
/// (octal as well), `0b10`, `1_000`.
pub fn integer(text: &str, bits: u32) -> Result<i64, SyntaxError> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = base(digits);
    let digits = without_separators(digits, radix != 10)?;
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(SyntaxError::Integer);
    }
    let type_name = if bits == 32 { "int32" } else { "int" };
    let out_of_range = || SyntaxError::OutOfRange(type_name);
    let magnitude = i128::from_str_radix(&digits, radix).map_err(|_| out_of_range())?;
    let signed = if negative { -magnitude } else { magnitude };
    let limit = 1_i128 << (bits - 1);
    if (-limit..limit).contains(&signed) {
        i64::try_from(signed).map_err(|_| out_of_range())
    } else {
        Err(out_of_range())
    }
}

/// The radix that the prefix asks for, and what follows the prefix.
fn base(digits: &str) -> (u32, &str) {
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    }
}

/// Drops `_` where Go allows it: between digits and right behind a base prefix.
fn without_separators(digits: &str, prefixed: bool) -> Result<String, SyntaxError> {
    if digits.contains("__") || digits.ends_with('_') || (digits.starts_with('_') && !prefixed) {
        return Err(SyntaxError::Integer);
    }
    Ok(digits.replace('_', ""))
}

/// A log level: decimal digits only, no sign.
pub fn verbosity(text: &str) -> Result<i64, SyntaxError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SyntaxError::Integer);
    }
    text.parse::<i32>().map(i64::from).map_err(|_| SyntaxError::OutOfRange("a log level"))
}

/// A decimal number below `max` in size. `inf` and `nan` are numbers here, as in Go; a flag that
/// cannot live with them refuses them in its validation.
pub fn float(text: &str, max: f64, type_name: &'static str) -> Result<f64, SyntaxError> {
    let number: f64 = text.parse().map_err(|_| SyntaxError::Float)?;
    let spelt_infinite = text.to_ascii_lowercase().contains("inf");
    if number.abs() > max && !spelt_infinite {
        return Err(SyntaxError::OutOfRange(type_name));
    }
    Ok(number)
}

/// A Kubernetes quantity in whole bytes, parts of a byte rounded up; at most 2^63-1.
pub fn quantity(text: &str) -> Result<i64, SyntaxError> {
    let quantity: Quantity = text.parse().map_err(|_| SyntaxError::Quantity)?;
    Ok(i64::try_from(quantity.as_whole()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
