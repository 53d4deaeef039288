//! [`GceError`]: how a call of Google Compute Engine failed, as far as it counts for what comes next,
//! and which answers say so: too many calls, missing right, not found, changed meanwhile, refused
//! (nothing was done), and all others, which may have been carried out.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

/// Google's word for a VM that is being changed by somebody else.
pub(crate) const VM_BUSY: &str = "resourceNotReady";

/// How a call of Google failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GceError {
    /// The VM, zone or operation does not exist.
    #[error("cannot find {what} on Google Compute Engine")]
    NotFound {
        /// The object that was asked for.
        what: String,
    },
    /// One call too many, or the VM is busy with another change. Nothing was done.
    #[error("cannot call Google Compute Engine: {reason}; the call is repeated later")]
    Throttled {
        /// Google's word for it.
        reason: String,
        /// How long Google wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// A right or a valid credential is missing. Nothing was done.
    #[error(
        "cannot call Google Compute Engine: permission denied: {message}; grant the permissions \
         that ALLOCATORS.md lists"
    )]
    Forbidden {
        /// Google's words.
        message: String,
    },
    /// Somebody else has changed the interface meanwhile. Nothing was done.
    #[error(
        "cannot change the network interface: another client changed it at the same time; the \
         change is repeated later"
    )]
    Stale,
    /// Google has looked at the call and does not want it. Nothing was done.
    #[error("Google Compute Engine refused the request: {status} {reason}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Google's `reason`; empty when it is absent.
        reason: String,
        /// Google's words.
        message: String,
    },
    /// The operation began and came to nothing.
    #[error("Google Compute Engine could not complete the operation: {code}: {message}")]
    Failed {
        /// Google's word for it.
        code: String,
        /// Google's words.
        message: String,
    },
    /// The answer is missing or unreadable: the call may have been carried out.
    #[error("outcome of the call is unknown: {reason}")]
    Unanswered {
        /// Why, for people.
        reason: String,
    },
    /// Whoever wanted it said no when it was about to be sent.
    #[error("cannot send the call: it was cancelled")]
    Withdrawn,
    /// The call is a write, and the client is one of a dry run. Nothing was sent.
    #[error(
        "cannot send the call: --dry-run writes nothing to Google Compute Engine; run without \
         --dry-run"
    )]
    DryRun,
    /// Nothing was sent.
    #[error("cannot send the call: {reason}")]
    NotSent {
        /// Why, for people.
        reason: String,
    },
}

impl GceError {
    pub(crate) fn unanswered(reason: impl ToString) -> Self {
        Self::Unanswered { reason: reason.to_string() }
    }

    pub(crate) fn not_sent(reason: impl ToString) -> Self {
        Self::NotSent { reason: reason.to_string() }
    }

    /// Whether all calls have to slow down, and not only those about one VM.
    pub(crate) fn slows_all(&self) -> bool {
        matches!(self, Self::Throttled { reason, .. } if reason != VM_BUSY)
    }

    /// The label `code` of metrics.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::NotFound { .. } => "404".to_owned(),
            Self::Throttled { reason, .. } => reason.clone(),
            Self::Forbidden { .. } => "403".to_owned(),
            Self::Stale => "412".to_owned(),
            Self::Refused { status, .. } => status.to_string(),
            Self::Failed { .. } => "failed".to_owned(),
            Self::Unanswered { .. } => "unanswered".to_owned(),
            Self::Withdrawn => "withdrawn".to_owned(),
            Self::DryRun => "dry_run".to_owned(),
            Self::NotSent { .. } => "not_sent".to_owned(),
        }
    }
}

/// An operation of a zone, as far as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Operation {
    pub(crate) name: String,
    status: String,
    error: Option<Failure>,
    http_error_status_code: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Failure {
    errors: Vec<Cause>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Cause {
    code: String,
    message: String,
}

impl Operation {
    /// The result of the operation; `None` while it runs.
    pub(crate) fn outcome(&self) -> Option<Result<(), GceError>> {
        if self.status != "DONE" {
            return None;
        }
        if self.error.is_none() && self.http_error_status_code.is_none() {
            return Some(Ok(()));
        }
        let cause = self.error.iter().flat_map(|error| &error.errors).next();
        let Cause { code, message } = cause.cloned().unwrap_or_default();
        let message = message.chars().take(300).collect();
        Some(Err(GceError::Failed { code, message }))
    }
}

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
) -> GceError {
    // A proxy may answer something else; the code alone then decides.
    let error = serde_json::from_slice::<Envelope>(body).unwrap_or_default().error;
    let message: String = error.message.chars().take(QUOTED).collect();
    let reasons = error.errors.into_iter().chain(error.details).map(|it| it.reason);
    let mut reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
    if let Some(place) = reasons.iter().position(|reason| NOT_NOW.contains(&reason.as_str())) {
        return GceError::Throttled { reason: reasons.swap_remove(place), retry_after };
    }
    let reason = reasons.into_iter().next().unwrap_or_default();
    match status {
        StatusCode::NOT_FOUND => GceError::NotFound { what: what.to_owned() },
        StatusCode::TOO_MANY_REQUESTS => {
            GceError::Throttled { reason: "tooManyRequests".to_owned(), retry_after }
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => GceError::Forbidden { message },
        StatusCode::PRECONDITION_FAILED => GceError::Stale,
        StatusCode::REQUEST_TIMEOUT => GceError::unanswered("Google answered 408"),
        status if status.is_client_error() => {
            GceError::Refused { status: status.as_u16(), reason, message }
        }
        status => GceError::unanswered(format!("Google answered {status} {message}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(operation: Value) -> Option<Result<(), GceError>> {
        serde_json::from_value::<Operation>(operation).unwrap().outcome()
    }

    #[test]
    fn an_operation_that_is_done_has_worked_only_without_any_error() {
        let causes = json!({"errors": [{"code": "IP_IN_USE", "message": "by b"}]});
        for status in ["PENDING", "RUNNING", ""] {
            assert_eq!(outcome(json!({"status": status, "error": causes})), None);
        }
        assert_eq!(outcome(json!({"name": "op", "status": "DONE"})), Some(Ok(())));
        let failed = outcome(json!({"status": "DONE", "error": causes}));
        let (code, message) = ("IP_IN_USE".into(), "by b".into());
        assert_eq!(failed, Some(Err(GceError::Failed { code, message })));
        for other in [json!({"error": {}}), json!({"httpErrorStatusCode": 400})] {
            let mut operation = json!({"status": "DONE"});
            operation.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
            assert!(outcome(operation).unwrap().is_err(), "{other}");
        }
    }

    fn class(status: u16, reason: &str) -> GceError {
        let body = json!({"error": {
            "code": status, "message": "words", "errors": [{"domain": "x", "reason": reason}],
        }});
        let status = StatusCode::from_u16(status).unwrap();
        classify(status, Some(Duration::from_secs(7)), body.to_string().as_bytes(), "vm a")
    }

    #[test]
    fn every_refusal_has_its_class() {
        let not_now = |reason: &str| GceError::Throttled {
            reason: reason.into(),
            retry_after: Some(Duration::from_secs(7)),
        };
        for reason in ["rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"] {
            assert_eq!(class(403, reason), not_now(reason));
        }
        assert_eq!(class(429, ""), not_now("tooManyRequests"));
        assert_eq!(class(400, "resourceNotReady"), not_now("resourceNotReady"));
        assert_eq!(class(403, "forbidden"), GceError::Forbidden { message: "words".into() });
        assert_eq!(class(401, "authError"), GceError::Forbidden { message: "words".into() });
        assert_eq!(class(404, "notFound"), GceError::NotFound { what: "vm a".into() });
        assert_eq!(class(412, "conditionNotMet"), GceError::Stale);
        let (reason, message) = ("invalid".to_owned(), "words".to_owned());
        assert_eq!(class(400, "invalid"), GceError::Refused { status: 400, reason, message });
        for status in [408, 500, 502, 503, 504] {
            assert!(matches!(class(status, "backendError"), GceError::Unanswered { .. }));
        }
    }

    #[test]
    fn the_newer_form_of_a_quota_counts_too_and_no_body_panics() {
        let body =
            json!({"error": {"details": [{"@type": "x"}, {"reason": "RATE_LIMIT_EXCEEDED"}]}});
        let body = body.to_string();
        let class = classify(StatusCode::FORBIDDEN, None, body.as_bytes(), "");
        assert!(matches!(class, GceError::Throttled { retry_after: None, .. }), "{class:?}");
        for body in [&b""[..], b"null", b"[]", b"<html>", b"{\"error\":1}", b"\xff"] {
            for status in 100..600 {
                let status = StatusCode::from_u16(status).unwrap();
                let _class = classify(status, None, body, "");
            }
        }
    }
}
