use aws_sdk_ec2::operation::create_vpc::CreateVpcError;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::ErrorMetadata;

use super::*;

fn answered(code: Option<&str>, status: u16) -> CallError {
    let empty = ErrorMetadata::builder();
    let metadata = match code {
        Some(code) => empty.code(code),
        None => empty,
    };
    let error = CreateVpcError::generic(metadata.build());
    let raw = HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::empty());
    CallError::from(SdkError::service_error(error, raw))
}

fn undispatched(source: impl Error + Send + Sync + 'static) -> CallError {
    let failed = ConnectorError::other(Box::new(source), None);
    CallError::from(SdkError::<CreateVpcError, _>::dispatch_failure(failed))
}

#[test]
fn a_code_comes_through_and_tells_whether_the_call_may_have_been_carried_out() {
    for (code, status, is_throttle, leaves_doubt) in [
        (Some("VpcLimitExceeded"), 400, false, false),
        (Some("RequestLimitExceeded"), 503, true, false),
        (Some("Throttling"), 400, true, false),
        (Some("InternalError"), 500, false, true),
        (Some("Unavailable"), 503, false, true),
        (None, 502, false, true),
        (Some("NewFangled"), 400, false, false),
        (Some("NewFangled"), 500, false, true),
        (None, 429, true, false),
    ] {
        let error = answered(code, status);
        assert_eq!((error.code(), error.status()), (code.unwrap_or_default(), status));
        assert_eq!(
            (error.is_throttle(), error.leaves_doubt()),
            (is_throttle, leaves_doubt),
            "{code:?}"
        );
    }
}

#[test]
fn a_connection_that_fails_leaves_doubt() {
    let error = undispatched(std::io::Error::other("reset"));
    assert!(error.leaves_doubt(), "{error:?}");
    assert!(error.to_string().ends_with("reset"), "{error}");
}

#[test]
fn where_there_can_be_no_connection_nothing_was_sent() {
    let failed = ConnectorError::user("HTTPS_PROXY cannot be used".into());
    let error = CallError::from(SdkError::<CreateVpcError, _>::dispatch_failure(failed));
    assert!(
        matches!(&error, CallError::NotSent { reason } if reason.ends_with("cannot be used")),
        "{error:?}"
    );
}

#[test]
fn without_credentials_nothing_was_sent() {
    let error = undispatched(CredentialsError::not_loaded("there are none"));
    assert!(
        matches!(&error, CallError::NotSent { reason } if reason.ends_with("there are none")),
        "{error:?}"
    );
}

#[test]
fn what_is_not_found_is_known_in_both_spellings() {
    for code in ["InvalidVpcID.NotFound", "LoadBalancerNotFound", "TargetGroupNotFoundException"] {
        assert!(answered(Some(code), 400).is_not_found(), "{code}");
    }
    assert!(!answered(Some("AccessDenied"), 403).is_not_found());
}

#[test]
fn an_answer_of_too_many_requests_slows_all_calls_whatever_its_code() {
    for (code, status) in [(None, 429), (Some("Unavailable"), 503), (Some("NewFangled"), 429)] {
        assert!(answered(code, status).asks_for_fewer_calls(), "{code:?}");
    }
    assert!(!answered(Some("InternalError"), 500).asks_for_fewer_calls());
}

#[test]
fn the_date_of_an_answer_tells_how_far_the_local_clock_is_off() {
    let now = DateTime::from_str("Thu, 01 Jan 2026 00:10:00 GMT", Format::HttpDate).unwrap();
    let now = SystemTime::try_from(now).unwrap();
    let behind = |date: Option<&'static str>| {
        let mut raw = HttpResponse::new(StatusCode::try_from(403).unwrap(), SdkBody::empty());
        if let Some(date) = date {
            raw.headers_mut().insert("date", date);
        }
        clock_behind(&raw, now)
    };
    assert_eq!(behind(Some("Thu, 01 Jan 2026 00:15:01 GMT")), Some(301));
    assert_eq!(behind(Some("Thu, 01 Jan 2026 00:04:59 GMT")), Some(-301));
    assert_eq!(behind(Some("Thu, 01 Jan 2026 00:05:00 GMT")), None);
    assert_eq!((behind(Some("yesterday")), behind(None)), (None, None));
}

#[test]
fn only_codes_of_our_own_mistakes_are_unexpected() {
    assert_eq!(answered(Some("UnknownParameter"), 400).unexpected(), Some("UnknownParameter"));
    assert_eq!(answered(Some("NewFangled"), 400).unexpected(), None);
}
