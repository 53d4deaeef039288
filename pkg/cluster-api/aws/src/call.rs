//! [`Call`]: which call of AWS, for rates and metrics. [`AwsError`]: how a call failed, and
//! whether AWS may have carried it out.

use std::error::Error;
use std::time::SystemTime;

use aws_credential_types::provider::error::CredentialsError;
use aws_network::{Refusal, Refused, classify_read, is_unexpected};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use resilience::wall_now;

use crate::limits::{Class, Service};

/// One call of one API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) class: Class,
    /// AWS's name of it.
    pub(crate) operation: &'static str,
    /// Whether the call may be sent again when its outcome is unknown.
    pub(crate) is_repeatable: bool,
}

impl Call {
    /// A describe call of EC2.
    pub(crate) fn ec2_read(operation: &'static str) -> Self {
        Self { service: Service::Ec2, class: Class::Read, operation, is_repeatable: true }
    }

    /// A describe call of either API of load balancers.
    pub(crate) fn balancer_read(operation: &'static str) -> Self {
        Self { service: Service::LoadBalancers, ..Self::ec2_read(operation) }
    }
}

/// Seconds by which the clock that signs a request may differ from AWS's.
const SIGNATURE_HOLDS: u64 = 300;

/// How a call of AWS failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AwsError {
    /// AWS answered with an error.
    #[error("AWS refused the call: {0}")]
    Refused(Refused),
    /// Without a readable answer: AWS may have carried out the call.
    #[error("outcome of the call is unknown: {reason}")]
    Unanswered {
        /// Why, for people.
        reason: String,
    },
    /// Nothing was sent.
    #[error("cannot send the call: {reason}")]
    NotSent {
        /// Why, for people.
        reason: String,
    },
    /// Nothing was sent: the role whose credentials are used cannot be assumed.
    #[error("cannot assume the role {role}: {error}")]
    NotAssumed {
        /// ARN of the role.
        role: String,
        /// How STS answered.
        error: Box<Self>,
    },
}

impl AwsError {
    /// An answer that lacks something.
    pub(crate) fn without(what: &str) -> Self {
        Self::Unanswered { reason: format!("the answer has no {what}") }
    }

    /// The error that AWS answered with, if it did.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Unanswered { .. } | Self::NotSent { .. } | Self::NotAssumed { .. } => None,
        }
    }

    /// Whether no request has left.
    pub(crate) fn is_not_sent(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::NotAssumed { .. })
    }

    /// AWS's code; empty when it gave none.
    pub fn code(&self) -> &str {
        self.refused().map_or("", |refused| &refused.code)
    }

    /// AWS has refused it as one call too many, without a look at it.
    pub(crate) fn is_throttle(&self) -> bool {
        self.refused().is_some_and(|refused| classify_read(refused) == Refusal::Throttled)
    }

    /// AWS has too much to do: calls have to come more slowly, whether this one was looked at or
    /// not.
    pub(crate) fn asks_for_fewer_calls(&self) -> bool {
        self.is_throttle() || [429, 503].contains(&self.status())
    }

    /// AWS's code, when it says that this program has made a mistake.
    pub(crate) fn unexpected(&self) -> Option<&str> {
        self.refused().filter(|refused| is_unexpected(refused)).map(|refused| &*refused.code)
    }

    /// Whether AWS may have carried out the call.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Refused(refused) => classify_read(refused) == Refusal::Failed,
            Self::Unanswered { .. } => true,
            Self::NotSent { .. } | Self::NotAssumed { .. } => false,
        }
    }

    /// The label `status_code` of metrics.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Refused(refused) => refused.status,
            _ => 0,
        }
    }

    /// Whether nothing of this name, or of this id, exists.
    pub(crate) fn is_not_found(&self) -> bool {
        let code = self.code();
        code.ends_with("NotFound") || code.ends_with("NotFoundException")
    }
}

impl<E> From<SdkError<E, HttpResponse>> for AwsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        if let Some(not_assumed) = not_assumed(&error) {
            return not_assumed;
        }
        match &error {
            SdkError::ServiceError(answer) => Self::Refused(Refused {
                code: error.code().unwrap_or_default().to_owned(),
                status: answer.raw().status().as_u16(),
                clock_behind: clock_behind(answer.raw(), SystemTime::from(wall_now())),
            }),
            SdkError::ConstructionFailure(_) => Self::NotSent { reason: chain(&error) },
            // A connection is impossible, as with a proxy of an invalid address.
            SdkError::DispatchFailure(failure) if failure.is_user() => {
                Self::NotSent { reason: chain(&error) }
            }
            _ if is_about_credentials(&error) => Self::NotSent { reason: chain(&error) },
            _ => Self::Unanswered { reason: chain(&error) },
        }
    }
}

/// By how many seconds the local clock is behind the date of an answer, when it is more than AWS
/// accepts in a signature.
fn clock_behind(answer: &HttpResponse, now: SystemTime) -> Option<i64> {
    let date = DateTime::from_str(answer.headers().get("date")?, Format::HttpDate).ok()?;
    let behind = date.secs() - DateTime::from(now).secs();
    (behind.unsigned_abs() > SIGNATURE_HOLDS).then_some(behind)
}

/// The error of the role that gives the credentials, if it has caused this one.
fn not_assumed(error: &(dyn Error + 'static)) -> Option<AwsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<AwsError>() {
            return Some(found.clone());
        }
        next = error.source();
    }
    None
}

/// Whether credentials were missing: no request is signed or sent without them.
fn is_about_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<CredentialsError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// An error with all that caused it, in the words that are meant for people. Nothing is shown by
/// `Debug`, which may hold what was sent.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::operation::create_vpc::CreateVpcError;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;

    fn answered(code: Option<&str>, status: u16) -> AwsError {
        let empty = ErrorMetadata::builder();
        let metadata = match code {
            Some(code) => empty.code(code),
            None => empty,
        };
        let error = CreateVpcError::generic(metadata.build());
        let raw = HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::empty());
        AwsError::from(SdkError::service_error(error, raw))
    }

    fn undispatched(source: impl Error + Send + Sync + 'static) -> AwsError {
        let failed = ConnectorError::other(Box::new(source), None);
        AwsError::from(SdkError::<CreateVpcError, _>::dispatch_failure(failed))
    }

    #[test]
    fn a_code_comes_through_and_shows_whether_the_call_may_have_been_carried_out() {
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
        let error = AwsError::from(SdkError::<CreateVpcError, _>::dispatch_failure(failed));
        assert!(
            matches!(&error, AwsError::NotSent { reason } if reason.ends_with("cannot be used")),
            "{error:?}"
        );
    }

    #[test]
    fn without_credentials_nothing_was_sent() {
        let error = undispatched(CredentialsError::not_loaded("missing"));
        assert!(
            matches!(&error, AwsError::NotSent { reason } if reason.ends_with("missing")),
            "{error:?}"
        );
    }

    #[test]
    fn a_role_that_cannot_be_assumed_is_named_with_the_code_of_sts() {
        let error = Box::new(AwsError::Refused(Refused::with_code("AccessDenied")));
        let not_assumed = AwsError::NotAssumed { role: "arn:r".to_owned(), error };
        let error = undispatched(CredentialsError::provider_error(not_assumed));
        assert_eq!(
            error.to_string(),
            "cannot assume the role arn:r: AWS refused the call: AccessDenied"
        );
        assert!(error.is_not_sent() && !error.leaves_doubt());
    }

    #[test]
    fn what_is_not_found_is_known_in_both_spellings() {
        for code in
            ["InvalidVpcID.NotFound", "LoadBalancerNotFound", "TargetGroupNotFoundException"]
        {
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
    fn the_date_of_an_answer_shows_how_far_the_local_clock_is_off() {
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
}
