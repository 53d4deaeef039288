//! The result of one probe: [`Finding`], and the [`Report`] that the prober hands to the engine. [`Moment`] is a time on both clocks.

use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::code::{Code, Verdict};

/// The path that a probe requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProbePath {
    /// Asked for first.
    #[default]
    Readyz,
    /// For servers that know no `/readyz`.
    Healthz,
    /// The authenticated read after a healthy answer: it proves the credential, its rights and the
    /// storage behind the server.
    Namespaces,
}

impl ProbePath {
    /// Path and query of the request.
    pub const fn request(self) -> &'static str {
        match self {
            Self::Namespaces => "/api/v1/namespaces?limit=1",
            other => other.as_str(),
        }
    }

    /// The path as it stands in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Readyz => "/readyz",
            Self::Healthz => "/healthz",
            Self::Namespaces => "/api/v1/namespaces",
        }
    }
}

impl fmt::Display for ProbePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Verdict, code and path of one probe. A code is there exactly when the verdict is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    verdict: Verdict,
    code: Option<Code>,
    path: ProbePath,
}

impl Finding {
    /// The server said `ok` at `path`.
    pub const fn ok(path: ProbePath) -> Self {
        Self { verdict: Verdict::Ok, code: None, path }
    }

    /// The probe failed for `code`, and nothing more is known of the server.
    pub const fn failed(code: Code, path: ProbePath) -> Self {
        Self { verdict: code.verdict(), code: Some(code), path }
    }

    /// This failure in a probe that had an HTTP response before: the cluster can be reached,
    /// whatever broke afterwards (`rule:an-answer-proves-reachability`).
    #[must_use]
    pub const fn after_a_response(self) -> Self {
        match self.verdict {
            Verdict::Unreachable => Self { verdict: Verdict::Unhealthy, ..self },
            Verdict::Ok | Verdict::Unhealthy | Verdict::Config => self,
        }
    }

    /// The conclusion.
    pub const fn verdict(self) -> Verdict {
        self.verdict
    }

    /// Why it failed; `None` when it did not.
    pub const fn code(self) -> Option<Code> {
        self.code
    }

    /// The last path that was asked for.
    pub const fn path(self) -> ProbePath {
        self.path
    }

    /// True when this process could not send a request: it says nothing about the cluster
    /// (`rule:what-we-could-not-ask-changes-nothing`).
    pub const fn is_void(self) -> bool {
        matches!(self.code, Some(Code::OwnLimit))
    }

    /// True when the server said `ok`.
    pub const fn is_ok(self) -> bool {
        self.verdict.is_ok()
    }
}

/// One sentence for a condition.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = self.code else {
            return write!(f, "{} responded with ok", self.path);
        };
        match self.verdict {
            Verdict::Ok | Verdict::Unhealthy => {
                write!(f, "{} responded without ok: {code}", self.path)
            }
            Verdict::Unreachable => write!(f, "cluster is not reachable: {code}"),
            Verdict::Config => write!(f, "cluster cannot be probed: {code}"),
        }
    }
}

/// One completed probe.
#[derive(Clone, Debug)]
pub struct Report {
    /// Verdict, code and path.
    pub finding: Finding,
    /// When it began, which is what `lastProbeTime` tells.
    pub started: Moment,
    /// How long it took, retries included.
    pub took: Duration,
    /// HTTP attempts made; 0 when no client could be built.
    pub attempts: u8,
    /// How the addresses of the cluster did.
    pub endpoints: Endpoints,
    /// Detail for people, such as the missing key and its Secret. Holds no secret; the publisher
    /// shortens it for a condition.
    pub detail: Option<Box<str>>,
}

/// How many addresses of a cluster answered when each was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Addresses that gave no response.
    pub down: u8,
    /// Addresses there are.
    pub total: u8,
}

/// One point in time on the monotonic clock, by which everything is decided, and on the wall clock,
/// which is only ever shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// For intervals and deadlines.
    pub monotonic: Instant,
    /// For conditions, messages and metrics.
    pub wall: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_told_in_one_sentence_with_its_code() {
        let path = ProbePath::Readyz;
        let rows = [
            (Finding::ok(ProbePath::Healthz), "/healthz responded with ok"),
            (Finding::failed(Code::Http(503), path), "/readyz responded without ok: http-503"),
            (Finding::failed(Code::Timeout, path), "cluster is not reachable: timeout"),
            (Finding::failed(Code::CaParse, path), "cluster cannot be probed: ca-parse"),
            (
                Finding::failed(Code::Timeout, ProbePath::Namespaces).after_a_response(),
                "/api/v1/namespaces responded without ok: timeout",
            ),
        ];
        for (finding, sentence) in rows {
            assert_eq!(finding.to_string(), sentence);
        }
    }

    /// rule:an-answer-proves-reachability
    #[test]
    fn a_cluster_that_answered_once_in_a_probe_is_not_unreachable() {
        let lost = Finding::failed(Code::Reset, ProbePath::Namespaces);
        assert_eq!(lost.verdict(), Verdict::Unreachable);
        assert_eq!(lost.after_a_response().verdict(), Verdict::Unhealthy);
        let malformed = Finding::failed(Code::BadEndpoint, ProbePath::Readyz);
        assert_eq!(malformed.after_a_response(), malformed);
    }

    #[test]
    fn a_finding_is_small() {
        assert!(size_of::<Finding>() <= 8);
    }
}
