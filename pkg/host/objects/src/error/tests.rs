//! What callers read from an error.

use super::*;

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
