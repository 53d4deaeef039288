use proptest::prelude::*;

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

#[test]
fn a_message_is_one_line_without_logins() {
    let rows = [
        ("cannot\n\tconnect  ", "cannot connect"),
        ("a\u{0}b\u{1b}[31m", "a b [31m"),
        ("proxy http://user:pass@host:3128: refused", "proxy http://host:3128: refused"),
        ("via socks5://user:pa/ss@w@host refused", "via socks5://host refused"),
        ("mail me@example.org", "mail me@example.org"),
        ("https://host/path", "https://host/path"),
        ("", ""),
    ];
    for (text, line) in rows {
        assert_eq!(one_line(text), line);
    }
}

#[test]
fn a_long_message_is_cut_at_a_character_and_says_so() {
    let line = one_line(&"é".repeat(MESSAGE_MAX + 40));
    assert_eq!(line.chars().count(), MESSAGE_MAX);
    assert!(line.ends_with("é…"));
    let fits = "é".repeat(MESSAGE_MAX);
    assert_eq!(one_line(&fits), fits);
}

proptest! {
    #[test]
    fn no_text_makes_more_than_one_short_line(text in any::<String>()) {
        let line = one_line(&text);
        prop_assert!(line.chars().count() <= MESSAGE_MAX);
        prop_assert!(!line.chars().any(char::is_control));
    }
}
