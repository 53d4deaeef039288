use std::time::Duration;

use serde_json::json;

use super::*;
use crate::Outcome;
use crate::testing::refusal;

fn error(why: Why) -> Error {
    Error { verb: "change", object: "widgets ns/a".into(), why }
}

fn open(last: Why) -> Why {
    Why::Open { last: Box::new(last), settled_at: None }
}

#[test]
fn each_error_has_an_outcome_and_a_word_for_the_metric() {
    let broken = CallError::Transport { source: "x".into(), settled_at: None };
    let bad_gateway = Why::Doubtful { status: StatusCode::BAD_GATEWAY, settled_at: None };
    for (why, outcome, label) in [
        (Why::Call(CallError::Fenced), Outcome::NotWritten, "not_sent"),
        (Why::Call(CallError::Withdrawn), Outcome::NotWritten, "not_sent"),
        (Why::Call(CallError::NotSent("x".into())), Outcome::NotWritten, "not_sent"),
        (Why::Call(CallError::Timeout { settled_at: None }), Outcome::Unknown, "unknown"),
        (Why::Call(broken), Outcome::Unknown, "unknown"),
        (bad_gateway, Outcome::Unknown, "unknown"),
        (open(Why::Gone), Outcome::Unknown, "unknown"),
        (Why::Conflict { attempts: 5 }, Outcome::NotWritten, "conflict"),
        (Why::Exists, Outcome::NotWritten, "conflict"),
        (Why::Gone, Outcome::NotWritten, "gone"),
        (Why::Deleting, Outcome::NotWritten, "gone"),
        (Why::Throttled { retry_after: None }, Outcome::NotWritten, "throttled"),
        (Why::Key, Outcome::NotWritten, "refused"),
        (Why::Unreadable(DecodeError { field: "x".into() }), Outcome::Written, "unreadable"),
        (Why::Decode(DecodeError { field: "x".into() }), Outcome::NotWritten, "unreadable"),
    ] {
        let error = error(why);
        assert_eq!((error.outcome(), error.label()), (outcome, label), "{error}");
    }
}

#[test]
fn the_pause_that_the_server_asks_for_is_found_under_an_open_attempt_too() {
    let asked = Some(Duration::from_secs(2));
    let throttled = || Why::Throttled { retry_after: asked };
    assert_eq!(error(throttled()).retry_after(), asked);
    assert_eq!(error(open(throttled())).retry_after(), asked);
    assert_eq!(error(Why::Gone).retry_after(), None);
}

#[test]
fn an_error_names_the_verb_the_object_and_the_reason() {
    let text = error(Why::Gone).to_string();
    assert_eq!(text, "cannot change widgets ns/a: the object does not exist any more");
}

fn answer(code: u16, body: &[u8]) -> Answer {
    Answer {
        status: StatusCode::from_u16(code).unwrap(),
        retry_after: (code == 429).then_some(Duration::from_secs(3)),
        date: None,
        body: body.to_vec().into(),
        settled_at: None,
    }
}

fn said(code: u16, reason: &str, name: &str) -> Vec<u8> {
    refusal(code, reason, name).1.to_string().into_bytes()
}

#[test]
fn each_answer_to_a_write_has_its_meaning_and_its_outcome() {
    let uid = json!({"kind": "Status", "details": {"causes": [{"field": "metadata.uid"}]}});
    let field = json!({"kind": "Status", "details": {"causes": [{"field": "spec.sizes"}]}});
    let owner = json!({"reason": "FieldManagerConflict", "field": ".status.phase"});
    let owned = json!({"kind": "Status", "reason": "Conflict", "details": {"causes": [owner]}});
    let rows: &[(u16, Vec<u8>, &str, Outcome)] = &[
        (200, b"<html>".to_vec(), "Doubtful", Outcome::Unknown),
        (302, vec![], "Doubtful", Outcome::Unknown),
        (400, vec![], "Refused", Outcome::NotWritten),
        (401, vec![], "Refused", Outcome::NotWritten),
        (403, said(403, "Forbidden", "a"), "Refused", Outcome::NotWritten),
        (404, said(404, "NotFound", "a"), "Gone", Outcome::NotWritten),
        (404, said(404, "NotFound", "b"), "Refused", Outcome::NotWritten),
        // The kind is not served.
        (404, b"404 page not found".to_vec(), "Refused", Outcome::NotWritten),
        (408, vec![], "Doubtful", Outcome::Unknown),
        (409, said(409, "Conflict", "a"), "Conflict", Outcome::NotWritten),
        (409, said(409, "AlreadyExists", "a"), "Exists", Outcome::NotWritten),
        (409, owned.to_string().into_bytes(), "Owned", Outcome::NotWritten),
        (422, uid.to_string().into_bytes(), "Conflict", Outcome::NotWritten),
        (422, field.to_string().into_bytes(), "Refused", Outcome::NotWritten),
        (429, vec![], "Throttled", Outcome::NotWritten),
        (500, vec![], "Doubtful", Outcome::Unknown),
        (502, b"<html>".to_vec(), "Doubtful", Outcome::Unknown),
        (504, said(504, "Timeout", "a"), "Doubtful", Outcome::Unknown),
    ];
    for (code, body, meaning, outcome) in rows {
        let why = of_write(&answer(*code, body), "widgets", "a").unwrap_err();
        assert!(format!("{why:?}").starts_with(meaning), "{code}: {why:?}, not {meaning}");
        assert_eq!(why.outcome(), *outcome, "{code} {why:?}");
    }
}

#[test]
fn a_read_leaves_nothing_open_whatever_is_answered() {
    for code in [200, 302, 404, 408, 500, 503] {
        let why = of_read(&answer(code, b"<html>"), "widgets", "a").unwrap_err();
        assert_eq!(why.outcome(), Outcome::NotWritten, "{code} {why:?}");
    }
}

#[test]
fn a_refusal_says_what_the_server_said_and_not_endlessly() {
    let long = json!({"kind": "Status", "message": "é".repeat(5000)});
    let why = of_write(&answer(403, long.to_string().as_bytes()), "widgets", "a").unwrap_err();
    let Why::Refused { message, .. } = why else { panic!("{why:?}") };
    assert_eq!(message.chars().count(), MESSAGE);
    let why = of_write(&answer(403, b""), "widgets", "a").unwrap_err();
    assert!(why.to_string().ends_with("(403 Forbidden): Forbidden"), "{why}");
}
