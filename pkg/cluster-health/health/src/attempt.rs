//! The exchange between [`crate::Attempts`] and the prober: settings, the next step, its outcome.

use std::time::{Duration, Instant};

use crate::{Code, Endpoints, Finding, ProbePath};

/// Settings with which a probe starts.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Wall time for everything.
    pub budget: Duration,
    /// Addresses of the cluster, at least one; at most 64 are tried.
    pub endpoints: u8,
    /// The one that answered last.
    pub first_endpoint: u8,
    /// Whether a connection to that one is open.
    pub connected: bool,
    /// The health path that worked last.
    pub path: ProbePath,
    /// Whether a healthy answer is followed by an authenticated read.
    pub authenticated_read: bool,
}

/// The connection that an attempt uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// A connection that was open before this attempt.
    Open,
    /// A new one; any other to the cluster is dropped.
    New,
}

/// One request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the address.
    pub endpoint: u8,
    /// An open connection, or a new one.
    pub connection: Connection,
    /// The path that is requested.
    pub path: ProbePath,
    /// When to begin.
    pub not_before: Instant,
    /// When to give up.
    pub deadline: Instant,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An HTTP answer, judged by [`crate::classify`].
    Answered {
        /// The judgement.
        finding: Finding,
        /// Whether there is another credential by now than the one that was sent.
        newer_credential: bool,
    },
    /// The attempt got no answer.
    Failed(Code),
}

/// The next step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make this attempt.
    Try(Attempt),
    /// The probe is over.
    Done(Conclusion),
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The finding of the whole probe.
    pub finding: Finding,
    /// How the addresses did.
    pub(crate) endpoints: Endpoints,
    /// The address that answered, to begin with next time.
    pub answered: Option<u8>,
    /// Attempts made.
    pub attempts: u8,
}
