//! [`classify`]: from an HTTP answer to a [`Finding`].

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
