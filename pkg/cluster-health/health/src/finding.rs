//! The result of one probe: [`Finding`], and the [`Report`] that the prober hands to the engine. [`classify`] makes a
//! finding of an HTTP answer, [`PathMemory`] remembers the health path that a server knows, and [`one_line`] makes text
//! of a server fit for a message.

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
                    "probes do not reach the cluster, and its Lease reports that its /readyz fails: {code}"
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

impl Report {
    /// A finding without a request: no time, no attempt, no address.
    pub fn new(finding: Finding, started: Moment) -> Self {
        Self {
            finding,
            started,
            took: Duration::ZERO,
            attempts: 0,
            endpoints: Endpoints::default(),
            new_connection: false,
            detail: None,
        }
    }
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

/// Characters in the longest message.
pub(crate) const MESSAGE_MAX: usize = 1024;

/// `text` in one line of at most [`MESSAGE_MAX`] characters, without what stands before the `@` of
/// a URL: a user name and password must not appear.
pub fn one_line(text: &str) -> String {
    short_line(text, MESSAGE_MAX)
}

/// [`one_line`] of at most `limit` characters; nothing for a limit of 0.
pub(crate) fn short_line(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(4 * MESSAGE_MAX));
    let printable = |c: char| !c.is_whitespace() && !c.is_control();
    for word in text.split(|c| !printable(c)).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        push_without_login(&mut line, word);
    }
    if let Some((cut, _)) = line.char_indices().nth(limit) {
        let last = line[..cut].char_indices().next_back().map_or(0, |(start, _)| start);
        line.truncate(last);
        if limit > 0 {
            line.push('…');
        }
    }
    line
}

/// Everything between `://` and the last `@` goes, also where a password holds a slash.
fn push_without_login(line: &mut String, word: &str) {
    match word.split_once("://") {
        Some((scheme, rest)) => {
            line.push_str(scheme);
            line.push_str("://");
            line.push_str(rest.rsplit_once('@').map_or(rest, |(_, host)| host));
        }
        None => line.push_str(word),
    }
}

#[cfg(test)]
mod tests;
