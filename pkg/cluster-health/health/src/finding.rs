//! The result of one probe: [`Finding`], and the [`Report`] that the prober hands to the engine. [`classify`] makes a
//! finding of an HTTP answer, and [`PathMemory`] remembers the health path that a server knows.

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

    /// This finding for a probe that had an HTTP response before it failed: the cluster can be reached, whatever broke
    /// afterwards (`rule:an-answer-proves-reachability`).
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
            _ if code == Code::Beat => {
                write!(
                    f,
                    "probes do not reach the cluster, and its Lease says that it is not well: {code}"
                )
            }
            _ if code == Code::Check => {
                write!(
                    f,
                    "{} responded with ok, but the cluster does not pass a check: {code}",
                    self.path
                )
            }
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
    /// When the probe began, the value of `lastProbeTime`.
    pub started: Moment,
    /// How long it took, retries included.
    pub took: Duration,
    /// HTTP attempts made; 0 when no client could be built.
    pub attempts: u8,
    /// How the addresses of the cluster did.
    pub endpoints: Endpoints,
    /// Whether the last attempt opened a connection.
    pub new_connection: bool,
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
    /// The monotonic clock, for intervals and deadlines.
    pub monotonic: Instant,
    /// The wall clock, for conditions, messages and metrics.
    pub wall: Timestamp,
}

/// Judges one HTTP answer to a request for `path`. Health paths must say `ok`, in any case and with
/// any blanks around it; of the authenticated read the status alone counts.
pub fn classify(path: ProbePath, status: u16, body: &[u8]) -> Finding {
    match (status, path) {
        (200, ProbePath::Namespaces) => Finding::ok(path),
        (200, _) if body.trim_ascii().eq_ignore_ascii_case(b"ok") => Finding::ok(path),
        (200, _) => Finding::failed(Code::Body, path),
        (401, _) => Finding::failed(Code::Unauthorized, path),
        (403, _) => Finding::failed(Code::Forbidden, path),
        (other, _) => Finding::failed(Code::Http(other), path),
    }
}

/// How often a server that knew no `/readyz` is asked for it again: it may have been upgraded.
const ASK_AGAIN: Duration = Duration::from_secs(3600);

/// The health path that worked last, kept with the client of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathMemory {
    /// Since when `/healthz` stands in for `/readyz`.
    healthz_since: Option<Instant>,
}

impl PathMemory {
    /// The path to ask for first.
    pub fn path(&self, now: Instant) -> ProbePath {
        match self.healthz_since {
            Some(since) if now.saturating_duration_since(since) < ASK_AGAIN => ProbePath::Healthz,
            _ => ProbePath::Readyz,
        }
    }

    /// Remembers that the server answered at `path`.
    pub fn note(&mut self, path: ProbePath, now: Instant) {
        match path {
            ProbePath::Readyz => self.healthz_since = None,
            ProbePath::Healthz if self.path(now) == ProbePath::Readyz => {
                self.healthz_since = Some(now);
            }
            ProbePath::Healthz | ProbePath::Namespaces => {}
        }
    }
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

#[cfg(test)]
mod classify_tests {
    use super::*;
    use crate::Verdict;

    /// rule:an-answer-proves-reachability
    #[test]
    fn every_answer_but_ok_is_unhealthy_and_none_is_unreachable() {
        let rows: [(ProbePath, u16, &[u8], Option<Code>); 14] = [
            (ProbePath::Readyz, 200, b"ok", None),
            (ProbePath::Readyz, 200, b" OK\r\n", None),
            (ProbePath::Healthz, 200, b"Ok", None),
            (ProbePath::Readyz, 200, b"", Some(Code::Body)),
            (ProbePath::Readyz, 200, b"okay", Some(Code::Body)),
            (ProbePath::Readyz, 200, b"\xff\xfe", Some(Code::Body)),
            (ProbePath::Readyz, 204, b"ok", Some(Code::Http(204))),
            (ProbePath::Readyz, 302, b"ok", Some(Code::Http(302))),
            (ProbePath::Readyz, 401, b"", Some(Code::Unauthorized)),
            (ProbePath::Readyz, 403, b"", Some(Code::Forbidden)),
            (ProbePath::Healthz, 404, b"", Some(Code::Http(404))),
            (ProbePath::Readyz, 429, b"ok", Some(Code::Http(429))),
            (ProbePath::Readyz, 500, b"[-]etcd failed", Some(Code::Http(500))),
            (ProbePath::Namespaces, 200, b"{\"items\":[]}", None),
        ];
        for (path, status, body, code) in rows {
            let finding = classify(path, status, body);
            let verdict = if code.is_none() { Verdict::Ok } else { Verdict::Unhealthy };
            assert_eq!((finding.code(), finding.verdict()), (code, verdict), "{path} {status}");
        }
    }
}

#[cfg(test)]
mod path_memory_tests {
    use super::*;

    #[test]
    fn readyz_is_asked_for_again_after_an_hour_of_healthz() {
        let (mut memory, start) = (PathMemory::default(), Instant::now());
        assert_eq!(memory.path(start), ProbePath::Readyz);
        memory.note(ProbePath::Healthz, start);
        let almost = start + Duration::from_secs(3599);
        memory.note(ProbePath::Healthz, almost);
        assert_eq!(memory.path(almost), ProbePath::Healthz);
        let later = start + ASK_AGAIN;
        assert_eq!(memory.path(later), ProbePath::Readyz);
        memory.note(ProbePath::Healthz, later);
        assert_eq!(memory.path(later + Duration::from_secs(1)), ProbePath::Healthz);
        memory.note(ProbePath::Readyz, later);
        assert_eq!(memory.path(later), ProbePath::Readyz);
    }
}
