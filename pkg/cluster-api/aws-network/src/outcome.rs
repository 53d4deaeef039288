//! [`Outcome`]: what is known of a write; and [`Refusal`]: what the error codes of AWS mean, one
//! table for all APIs. The code decides, with the HTTP status and the date of the answer where the
//! code does not say enough, and never the text of the message.

use std::fmt;
use std::net::Ipv4Addr;

use crate::action::{Action, ElbAction};
use crate::plan::Reason;

/// The answer of AWS to a create. Each call sets the fields that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The id (or ARN, or name) of what was created, of an association too.
    pub id: String,
    /// The address that was allocated.
    pub address: Option<Ipv4Addr>,
    /// The DNS name of a load balancer.
    pub dns_name: Option<String>,
}

/// The result of a write, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// AWS carried out the write.
    Done(Answer),
    /// AWS answered with an error code.
    Refused(Refused),
    /// The request was not sent: the fence was closed, or the intent was too old.
    NotSent,
    /// Without a readable answer: AWS may have carried out the write.
    Unknown,
}

/// An error answer of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// AWS's code, without the message; empty when the answer is not one of AWS's.
    pub code: String,
    /// The HTTP status.
    pub status: u16,
    /// Seconds by which the local clock is behind AWS (negative: ahead of it), when that is more
    /// than AWS accepts in a signature.
    pub clock_behind: Option<i64>,
}

impl Refused {
    /// A client error with this code.
    pub fn with_code(code: &str) -> Self {
        Self { code: code.to_owned(), status: 400, clock_behind: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_empty() {
            write!(formatter, "HTTP status {}", self.status)?;
        } else {
            formatter.write_str(&self.code)?;
        }
        let Some(behind) = self.clock_behind else { return Ok(()) };
        let (seconds, side) =
            (behind.unsigned_abs(), if behind < 0 { "ahead of" } else { "behind" });
        write!(
            formatter,
            " (local clock is {seconds} s {side} AWS; correct the time of this machine)"
        )
    }
}

/// The meaning of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The resource to delete is gone: that is success.
    Gone,
    /// The plan does not fit the resources: read again, then decide.
    Outdated,
    /// A resource that the call names exists and is not visible everywhere yet.
    NotVisibleYet,
    /// Something uses what was to be removed.
    InUse,
    /// Too many calls; nothing was done.
    Throttled,
    /// AWS failed; it may have been done.
    Failed,
    /// AWS allows no more of these.
    Quota,
    /// The credentials lack a permission.
    Permission,
    /// The local clock differs from AWS's by more than a signature may.
    Clock,
    /// The client token is used up: this is another attempt.
    TokenReused,
    /// The call is not as the API wants it: a mistake of this program.
    Unexpected,
    /// The code is not in the table. Nothing is known of its cause, so it is tried again.
    Unknown,
    /// The call will be refused until the user changes something. The codes are a closed list.
    Invalid,
}

/// Seconds to which pauses grow while nothing helps.
pub(crate) const LONGEST_PAUSE: u64 = 300;

/// Codes with the same meaning for every call, one row for each meaning; AWS documents most of
/// them under "Common errors" and "Error codes" of each API.
const CODES: [(Refusal, &str); 10] = [
    (
        Refusal::Gone,
        "AccessPointNotFound Gateway.NotAttached ListenerNotFound LoadBalancerNotFound \
         NatGatewayNotFound SubnetNotFound TargetGroupNotFound",
    ),
    (Refusal::NotVisibleYet, "InvalidSecurityGroup InvalidSubnet"),
    (
        Refusal::Outdated,
        "DuplicateListener DuplicateLoadBalancerName DuplicateTargetGroupName \
         InvalidGroup.Duplicate InvalidPermission.Duplicate InvalidSubnet.Conflict \
         Resource.AlreadyAssociated RouteAlreadyExists",
    ),
    (
        Refusal::InUse,
        "DependencyViolation IncorrectState InvalidGroup.InUse InvalidIPAddress.InUse \
         ResourceInUse",
    ),
    (
        Refusal::Throttled,
        "BandwidthLimitExceeded DependencyThrottle EC2Throttled PriorRequestNotComplete \
         RequestLimitExceeded RequestThrottled SlowDown Throttled Throttling TooManyRequests",
    ),
    (Refusal::Failed, "InternalError InternalFailure ServiceUnavailable Unavailable"),
    (Refusal::Clock, "RequestExpired RequestTimeTooSkewed"),
    (
        Refusal::Permission,
        "AccessDenied AuthFailure Blocked ExpiredToken InvalidClientTokenId InvalidSignature \
         MissingAuthenticationToken OptInRequired PendingVerification RegionDisabled \
         SignatureDoesNotMatch UnauthorizedAccess UnauthorizedOperation UnrecognizedClient",
    ),
    (Refusal::Unexpected, "DuplicateTagKeys InvalidAction UnknownParameter"),
    (
        Refusal::Invalid,
        "AvailabilityZoneNotSupported CidrConflict InvalidAMIID.NotFound \
         InvalidConfigurationRequest InvalidKeyPair.NotFound InvalidParameter \
         InvalidParameterCombination InvalidParameterValue InvalidScheme InvalidSubnet.Range \
         InvalidVpc.Range InvalidVpcRange MissingParameter OperationNotPermitted Unsupported \
         UnsupportedOperation ValidationError",
    ),
];

/// The codes of a clock that is off, when the answer's date says that it is: AWS gives them for
/// wrong credentials too.
const OF_SIGNATURES: [&str; 3] = ["AuthFailure", "InvalidSignature", "SignatureDoesNotMatch"];

/// The meaning of a code for any call.
fn meaning(refused: &Refused) -> Refusal {
    let code = bare(&refused.code);
    if refused.clock_behind.is_some() && OF_SIGNATURES.contains(&code) {
        return Refusal::Clock;
    }
    if let Some((meaning, _)) =
        CODES.iter().find(|(_, codes)| codes.split(' ').any(|it| it == code))
    {
        return *meaning;
    }
    match code {
        "IdempotentParameterMismatch" | "IdempotentInstanceTerminated" => Refusal::TokenReused,
        _ if code.ends_with(".NotFound") => Refusal::Gone,
        _ if code.ends_with(".Malformed") => Refusal::Invalid,
        _ if is_quota(code) => Refusal::Quota,
        _ if refused.status == 429 => Refusal::Throttled,
        _ if code.is_empty() || refused.status >= 500 => Refusal::Failed,
        _ => Refusal::Unknown,
    }
}

/// Whether a code, of a NAT gateway that has failed too, says that AWS allows or has no more.
pub(crate) fn is_quota(code: &str) -> bool {
    code.ends_with("LimitExceeded")
        || code.starts_with("TooMany")
        || code.starts_with("Insufficient")
}

/// A code without what only some of the APIs add to it.
fn bare(code: &str) -> &str {
    let code = code.strip_prefix("Client.").unwrap_or(code);
    code.strip_suffix("Exception").unwrap_or(code)
}

/// The meaning of a refusal of this action.
pub(crate) fn classify(refused: &Refused, action: &Action) -> Refusal {
    match (meaning(refused), action) {
        (Refusal::Gone, _) => absent(action),
        // An address that a NAT gateway has is refused as if it were another account's.
        (Refusal::Permission, Action::ReleaseAddress { .. })
            if bare(&refused.code) == "AuthFailure" =>
        {
            Refusal::InUse
        }
        // An earlier read may not show that the VPC has the CIDR already.
        (Refusal::Invalid, Action::AssociateCidr { .. })
            if bare(&refused.code) == "CidrConflict" =>
        {
            Refusal::Outdated
        }
        // There is no route to replace.
        (Refusal::Invalid, Action::ReplaceRoute { .. })
            if bare(&refused.code) == "InvalidParameterValue" =>
        {
            Refusal::Outdated
        }
        // The VPC or its internet gateway may not be visible everywhere yet.
        (Refusal::Invalid, Action::CreateRegionalNatGateway { .. })
            if offer(refused, action) == Offer::Doubtful =>
        {
            Refusal::NotVisibleYet
        }
        (meaning, _) => meaning,
    }
}

/// What a refusal says about whether AWS offers regional NAT gateways. No other call says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// AWS does not offer it here, or does not know the parameters.
    Missing,
    /// A code for any wrong parameter: the offer is missing, or AWS does not see what the call names.
    Doubtful,
    /// The refusal is about something else.
    Unknown,
}

/// What a refusal of this action says about regional NAT gateways.
pub(crate) fn offer(refused: &Refused, action: &Action) -> Offer {
    if !matches!(action, Action::CreateRegionalNatGateway { .. }) {
        return Offer::Unknown;
    }
    match bare(&refused.code) {
        "UnknownParameter" | "Unsupported" | "UnsupportedOperation" => Offer::Missing,
        "MissingParameter" => Offer::Doubtful,
        code if code.starts_with("InvalidParameter") => Offer::Doubtful,
        _ => Offer::Unknown,
    }
}

/// The meaning of a refusal of a describe call.
pub fn classify_read(refused: &Refused) -> Refusal {
    meaning(refused)
}

/// Whether AWS's code says that our program has made a mistake.
pub fn is_unexpected(refused: &Refused) -> bool {
    let is_mismatch = bare(&refused.code) == "IdempotentParameterMismatch";
    is_mismatch || meaning(refused) == Refusal::Unexpected
}

/// The meaning of an answer that a resource named by the call does not exist.
fn absent(action: &Action) -> Refusal {
    match action {
        // Some of what they name may be left, or be something else by now.
        Action::ReplaceRoute { .. }
        | Action::ReplaceAssociation { .. }
        | Action::DescribeIngress { .. }
        | Action::RevokeIngress { .. }
        | Action::Elb(ElbAction::DetachSubnets { .. } | ElbAction::DeleteListeners { .. }) => {
            Refusal::Outdated
        }
        _ if action.is_removal() => Refusal::Gone,
        _ => Refusal::NotVisibleYet,
    }
}

impl Refusal {
    /// How it is reported.
    pub fn reason(self) -> Reason {
        match self {
            Self::InUse => Reason::InUse,
            Self::Throttled => Reason::Throttled,
            Self::Failed | Self::NotVisibleYet => Reason::Unavailable,
            Self::Quota => Reason::QuotaExceeded,
            Self::Permission => Reason::PermissionDenied,
            Self::Clock => Reason::ClockSkew,
            Self::Gone | Self::Outdated | Self::TokenReused | Self::Unexpected | Self::Unknown => {
                Reason::Refused
            }
            Self::Invalid => Reason::InvalidConfiguration,
        }
    }

    /// Seconds until it is worth another try.
    pub fn pause(self) -> u64 {
        match self {
            Self::Gone
            | Self::Outdated
            | Self::NotVisibleYet
            | Self::Failed
            | Self::TokenReused
            | Self::Unexpected
            | Self::Unknown => 5,
            Self::InUse | Self::Throttled => 10,
            Self::Permission | Self::Clock => 60,
            Self::Quota => 120,
            Self::Invalid => 600,
        }
    }

    /// Seconds to which that time grows while it is refused again and again.
    pub fn longest_pause(self) -> u64 {
        match self {
            // What it waits for goes by itself, within minutes.
            Self::InUse => 60,
            Self::Quota | Self::Invalid => 600,
            _ => LONGEST_PAUSE,
        }
    }
}

#[cfg(test)]
mod tests;
