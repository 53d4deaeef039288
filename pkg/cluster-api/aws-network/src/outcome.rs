//! [`Outcome`]: what the executor knows of a write.

use std::fmt;
use std::net::Ipv4Addr;

/// What AWS answered to a create. Each call fills what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The id (or ARN, or name) of what was created, of an association too.
    pub id: String,
    /// The address that was allocated.
    pub address: Option<Ipv4Addr>,
    /// The DNS name of a load balancer.
    pub dns_name: Option<String>,
}

/// What is known of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done(Answer),
    /// AWS answered with an error code.
    Refused(Refused),
    /// It never left: the fence was closed, or its intent had grown too old.
    NotSent,
    /// No answer, or none that can be read: it may have been carried out.
    Unknown,
}

/// An error answer of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// AWS's code, without the text beside it; empty when the answer is not one of AWS's.
    pub code: String,
    /// The HTTP status.
    pub status: u16,
    /// Seconds by which the local clock is behind AWS (negative: ahead of it), when that is more
    /// than AWS accepts in a signature.
    pub clock_behind: Option<i64>,
}

impl Refused {
    /// A client error with this code.
    pub fn with_code(code: &str) -> Self {
        Self { code: code.to_owned(), status: 400, clock_behind: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_empty() {
            write!(formatter, "HTTP status {}", self.status)?;
        } else {
            formatter.write_str(&self.code)?;
        }
        let Some(behind) = self.clock_behind else { return Ok(()) };
        let (seconds, side) =
            (behind.unsigned_abs(), if behind < 0 { "ahead of" } else { "behind" });
        write!(
            formatter,
            " (local clock is {seconds} s {side} AWS; correct the time of this machine)"
        )
    }
}
