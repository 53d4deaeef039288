//! [`classify`]: from an HTTP answer to a finding. [`PathMemory`]: which health path a server knows.

use std::time::{Duration, Instant};

use crate::{Code, Finding, ProbePath};

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
