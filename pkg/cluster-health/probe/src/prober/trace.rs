//! [`Trace`]: what one attempt did.

use std::time::Duration;

use health::{Finding, ProbePath};

use crate::clock::Timings;

/// What one attempt did, for people.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Host and port.
    pub address: Box<str>,
    /// What was asked for.
    pub path: ProbePath,
    /// Whether the connection was open before.
    pub reused: bool,
    /// How long after the beginning of the probe it began.
    pub after: Duration,
    /// How long it took.
    pub took: Duration,
    /// Where that time went.
    pub timings: Timings,
    /// What it found by itself.
    pub finding: Finding,
    /// Why there was no answer, in one line without secrets.
    pub detail: Option<Box<str>>,
}
