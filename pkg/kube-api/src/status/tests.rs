//! One refusal in both encodings, and what is no `Status`.

use super::*;

const JSON: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
    "message":"nodes \"a\" not found","reason":"NotFound",
    "details":{"name":"a","kind":"nodes","uid":"u-1","retryAfterSeconds":3,
        "causes":[{"reason":"FieldValueInvalid","message":"no","field":"spec.x"}]},"code":404}"#;

fn expected() -> Status {
    Status {
        code: 404,
        reason: "NotFound".into(),
        message: "nodes \"a\" not found".into(),
        details: Details {
            name: "a".into(),
            kind: "nodes".into(),
            uid: "u-1".into(),
            retry_after_seconds: 3,
            causes: vec![Cause {
                reason: "FieldValueInvalid".into(),
                message: "no".into(),
                field: "spec.x".into(),
            }],
            ..Details::default()
        },
    }
}

/// A field of bytes: key, length, content.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80);
    [&[number << 3 | 2, length], content].concat()
}

fn text(number: u8, content: &str) -> Vec<u8> {
    bytes(number, content.as_bytes())
}

fn protobuf(kind: &str) -> Vec<u8> {
    let cause = [text(1, "FieldValueInvalid"), text(2, "no"), text(3, "spec.x")].concat();
    let details =
        [text(1, "a"), text(3, "nodes"), bytes(4, &cause), vec![5 << 3, 3], text(6, "u-1")];
    let status = [
        text(2, "Failure"),
        text(3, "nodes \"a\" not found"),
        text(4, "NotFound"),
        bytes(5, &details.concat()),
        vec![6 << 3, 0x94, 0x03],
    ];
    let meta = [text(1, "v1"), text(2, kind)].concat();
    [ENVELOPE.to_vec(), bytes(1, &meta), bytes(2, &status.concat())].concat()
}

#[test]
fn a_refusal_reads_the_same_from_json_and_from_protobuf() {
    assert_eq!(Status::read(JSON.as_bytes()), Some(expected()));
    assert_eq!(Status::read(&protobuf("Status")), Some(expected()));
}

#[test]
fn what_a_gateway_writes_is_no_status() {
    for body in [
        &b"404 page not found"[..],
        b"<html>Not Found</html>",
        b"",
        b"null",
        br#"{"reason":"NotFound","code":404}"#,
        br#"{"kind":"Node","code":404}"#,
        b"k8s\0",
        b"k8s\0\xff\xff",
        &protobuf("Node"),
    ] {
        assert_eq!(Status::read(body), None, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_status_cut_short_anywhere_is_refused_or_empty_and_never_panics() {
    let whole = protobuf("Status");
    for end in 0..whole.len() {
        assert_ne!(Status::read(&whole[..end]), Some(expected()), "{end}");
    }
}

#[test]
fn a_status_may_leave_out_everything_but_its_kind() {
    assert_eq!(Status::read(br#"{"kind":"Status"}"#), Some(Status::default()));
    let nulls = br#"{"kind":"Status","details":{"causes":null}}"#;
    assert_eq!(Status::read(nulls), Some(Status::default()));
}

#[test]
fn not_found_counts_only_for_the_very_object_that_was_asked_for() {
    let status = expected();
    assert!(status.says_not_found("nodes", "a"));
    assert!(!status.says_not_found("nodes", "b"));
    assert!(!status.says_not_found("pods", "a"));
    let other = Status { reason: "Forbidden".into(), ..expected() };
    assert!(!other.says_not_found("nodes", "a"));
    let nameless = Status { details: Details::default(), ..expected() };
    assert!(!nameless.says_not_found("nodes", "a"));
}

#[test]
fn the_transition_time_changes_with_the_status_only() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut conditions = Vec::new();
    let mut set = |holds, message, second| {
        let condition = Condition::new("Ready", holds, "Waiting", message);
        set_status_condition(&mut conditions, condition, at(second));
        set_status_condition(&mut conditions, Condition::new("Other", true, "Fine", ""), at(9));
        assert_eq!(conditions.len(), 2);
        (conditions[0].last_transition_time.clone().unwrap(), conditions[0].message.clone())
    };
    let row = |time: &str, message: &str| (time.to_owned(), message.to_owned());
    assert_eq!(set(false, "for a", 10), row("1970-01-01T00:00:10Z", "for a"));
    assert_eq!(set(false, "for b", 20), row("1970-01-01T00:00:10Z", "for b"));
    assert_eq!(set(true, "", 30), row("1970-01-01T00:00:30Z", ""));
}
