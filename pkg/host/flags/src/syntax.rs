//! The value syntaxes of pflag, one function per syntax, text in, typed value
//! out.
//!
//! [`crate::Value`] picks the function by [`crate::Kind`]; the other users are tests
//! and code that prints durations the Go way.

pub mod composite;
pub mod number;

use std::net::{IpAddr, Ipv4Addr};

use kube_api::go::DurationError;
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

#[cfg(test)]
mod tests;
