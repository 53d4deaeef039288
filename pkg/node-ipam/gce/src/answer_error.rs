//! Classes of Google's answers that are no success: too many calls, missing right, not found,
//! changed meanwhile, refused (nothing was done), and all else, which may have been carried out.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use crate::call_error::{CallError, VM_BUSY};

/// How much of Google's words is repeated.
const QUOTED: usize = 300;

/// Reasons for "too much at once", which come with 403 or 429, and the one for a VM
/// that is being changed.
const NOT_NOW: [&str; 6] = [
    "rateLimitExceeded",
    "userRateLimitExceeded",
    "quotaExceeded",
    "RATE_LIMIT_EXCEEDED",
    "concurrentOperationsQuotaExceeded",
    VM_BUSY,
];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    error: ErrorBody,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    message: String,
    errors: Vec<Reason>,
    details: Vec<Reason>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reason {
    reason: String,
}

/// Classifies an answer; `what` is what the call was about.
pub(crate) fn classify(
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
    what: &str,
) -> CallError {
    // A proxy may answer something else; the code alone then decides.
    let error = serde_json::from_slice::<Envelope>(body).unwrap_or_default().error;
    let message: String = error.message.chars().take(QUOTED).collect();
    let reasons = error.errors.into_iter().chain(error.details).map(|it| it.reason);
    let mut reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    if let Some(place) = reasons.iter().position(|reason| NOT_NOW.contains(&reason.as_str())) {
        return CallError::Throttled { reason: reasons.swap_remove(place), retry_after };
    }
    let reason = reasons.into_iter().next().unwrap_or_default();
    match status {
        StatusCode::NOT_FOUND => CallError::NotFound { what: what.to_owned() },
        StatusCode::TOO_MANY_REQUESTS => {
            CallError::Throttled { reason: "tooManyRequests".to_owned(), retry_after }
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => CallError::Forbidden { message },
        StatusCode::PRECONDITION_FAILED => CallError::Stale,
        StatusCode::REQUEST_TIMEOUT => CallError::unanswered("Google answered 408"),
        status if status.is_client_error() => {
            CallError::Refused { status: status.as_u16(), reason, message }
        }
        status => CallError::unanswered(format!("Google answered {status} {message}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(status: u16, reason: &str) -> CallError {
        let body = json!({"error": {
            "code": status, "message": "words", "errors": [{"domain": "x", "reason": reason}],
        }});
        let status = StatusCode::from_u16(status).unwrap();
        classify(status, Some(Duration::from_secs(7)), body.to_string().as_bytes(), "vm a")
    }

    #[test]
    fn every_refusal_has_its_class() {
        let not_now = |reason: &str| CallError::Throttled {
            reason: reason.into(),
            retry_after: Some(Duration::from_secs(7)),
        };
        for reason in ["rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"] {
            assert_eq!(class(403, reason), not_now(reason));
        }
        assert_eq!(class(429, ""), not_now("tooManyRequests"));
        assert_eq!(class(400, "resourceNotReady"), not_now("resourceNotReady"));
        assert_eq!(class(403, "forbidden"), CallError::Forbidden { message: "words".into() });
        assert_eq!(class(401, "authError"), CallError::Forbidden { message: "words".into() });
        assert_eq!(class(404, "notFound"), CallError::NotFound { what: "vm a".into() });
        assert_eq!(class(412, "conditionNotMet"), CallError::Stale);
        let (reason, message) = ("invalid".to_owned(), "words".to_owned());
        assert_eq!(class(400, "invalid"), CallError::Refused { status: 400, reason, message });
        for status in [408, 500, 502, 503, 504] {
            assert!(matches!(class(status, "backendError"), CallError::Unanswered { .. }));
        }
    }

    #[test]
    fn the_newer_form_of_a_quota_counts_too_and_no_body_panics() {
        let body =
            json!({"error": {"details": [{"@type": "x"}, {"reason": "RATE_LIMIT_EXCEEDED"}]}});
        let body = body.to_string();
        let class = classify(StatusCode::FORBIDDEN, None, body.as_bytes(), "");
        assert!(matches!(class, CallError::Throttled { retry_after: None, .. }), "{class:?}");
        for body in [&b""[..], b"null", b"[]", b"<html>", b"{\"error\":1}", b"\xff"] {
            for status in 100..600 {
                let status = StatusCode::from_u16(status).unwrap();
                let _class = classify(status, None, body, "");
            }
        }
    }
}
