use std::io;

use tokio::time::Instant;

use super::*;

fn answered(code: u16, reason: &str) -> Fault {
    let (reason, message) = (reason.to_owned(), String::new());
    Fault::Status { code, reason, message, retry_after: Duration::from_secs(3) }
}

fn unreadable(encoding: Encoding) -> Fault {
    Fault::Undecodable { object: "x".into(), encoding, cause: Box::new(io::Error::other("x")) }
}

#[test]
fn each_failure_has_its_label() {
    for (fault, label) in [
        (Fault::Transport(kube::Error::Service("x".into())), "transport"),
        (Fault::Silent(Duration::ZERO), "silent"),
        (answered(410, ""), "expired"),
        (answered(401, "Unauthorized"), "denied"),
        (answered(403, "Forbidden"), "denied"),
        (answered(429, "TooManyRequests"), "throttled"),
        (answered(500, "InternalError"), "server_error"),
        (answered(504, "Timeout"), "server_error"),
        (answered(404, "NotFound"), "refused"),
        (answered(400, "BadRequest"), "refused"),
        (unreadable(Encoding::Json), "undecodable"),
        (Fault::MessageTooLong(1), "undecodable"),
        (Fault::PageTooLong(1), "page_too_long"),
        (Fault::Incomplete, "incomplete"),
        (Fault::ShortWatch, "short_watch"),
        (Fault::Past { listed: 1, known: 2 }, "past"),
    ] {
        assert_eq!(fault.reason(), label, "{fault}");
    }
}

#[test]
fn a_version_is_expired_by_code_or_by_reason_and_that_is_no_trouble_of_the_server() {
    for (code, reason) in
        [(410, ""), (410, "Expired"), (0, "Expired"), (0, "Gone"), (500, "Expired")]
    {
        let fault = answered(code, reason);
        assert!(fault.is_expired(), "{fault}");
        assert!(!fault.is_outage() && !fault.is_server_error(), "{fault}");
        assert_eq!(fault.reason(), "expired", "{fault}");
    }
    for fault in [answered(404, "NotFound"), answered(500, "InternalError"), Fault::Incomplete] {
        assert!(!fault.is_expired(), "{fault}");
    }
}

#[test]
fn an_outage_is_a_server_that_is_unreachable_silent_throttled_or_in_trouble() {
    let outages = [
        Fault::Transport(kube::Error::Service("x".into())),
        Fault::Silent(Duration::ZERO),
        answered(429, "TooManyRequests"),
        answered(503, "ServiceUnavailable"),
    ];
    assert!(outages.iter().all(Fault::is_outage));
    let others = [answered(403, "Forbidden"), answered(404, "NotFound"), Fault::Incomplete];
    assert!(!others.iter().any(Fault::is_outage));
}

#[test]
fn only_404_is_an_unknown_collection_and_only_an_answer_says_how_long_to_wait() {
    assert!(answered(404, "NotFound").is_not_found());
    assert!(!answered(500, "InternalError").is_not_found() && !Fault::Incomplete.is_not_found());
    assert_eq!(answered(429, "").retry_after(), Duration::from_secs(3));
    assert_eq!(Fault::Incomplete.retry_after(), Duration::ZERO);
}

#[test]
fn another_encoding_helps_where_protobuf_could_not_be_read() {
    assert!(unreadable(Encoding::Protobuf).is_unreadable_protobuf());
    assert!(!unreadable(Encoding::Json).is_unreadable_protobuf());
}

#[test]
fn waits_double_with_jitter_and_stay_under_thirty_seconds() {
    let mut failures = after_failures();
    for low in [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0] {
        let wait = failures.fail(Instant::now()).as_secs_f64();
        assert!((low..low * 2.0).contains(&wait), "{wait} is not in {low}..{}", low * 2.0);
    }
}
