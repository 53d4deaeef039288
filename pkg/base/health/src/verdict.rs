//! [`Verdict`]: what a probe concludes about a cluster.

use std::fmt;

/// The conclusion of one probe. An HTTP response of any kind proves that the cluster can be reached
/// (`rule:an-answer-proves-reachability`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The server answered that it is ready.
    Ok,
    /// There was an HTTP response, and it was another one.
    Unhealthy,
    /// There was no HTTP response.
    Unreachable,
    /// No request could be made: the object or what it refers to cannot be used.
    Config,
}

impl Verdict {
    /// All of them, for whoever counts by verdict.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Unhealthy, Self::Unreachable, Self::Config];

    /// The label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unhealthy => "unhealthy",
            Self::Unreachable => "unreachable",
            Self::Config => "config",
        }
    }

    /// True for [`Verdict::Ok`] alone.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
