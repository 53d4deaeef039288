//! What the error codes of AWS mean. The code alone decides, never the text beside it.

use crate::action::Action;
use crate::elb_action::ElbAction;
use crate::part::Reason;

/// What a refusal means for what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// What was to be removed is gone: that is success.
    Gone,
    /// What was planned does not fit what there is: read again, then decide.
    Outdated,
    /// What the call names exists and is not visible everywhere yet.
    NotVisibleYet,
    /// Something uses what was to be removed.
    InUse,
    /// Too many calls; nothing was done.
    Throttled,
    /// AWS failed; it may have been done.
    Failed,
    /// AWS allows no more of these.
    Quota,
    /// These credentials may not do this.
    Permission,
    /// The client token was used with other parameters: this is another attempt.
    TokenReused,
    /// The call will be refused until somebody changes something.
    Invalid,
}

/// Seconds to which pauses grow while nothing helps.
pub(crate) const LONGEST_PAUSE: u64 = 300;

/// Codes for something that does not exist.
const NOT_FOUND: [&str; 5] = [
    "Gateway.NotAttached",
    "NatGatewayNotFound",
    "LoadBalancerNotFound",
    "TargetGroupNotFound",
    "ListenerNotFound",
];

const OUTDATED: [&str; 8] = [
    "Resource.AlreadyAssociated",
    "RouteAlreadyExists",
    "InvalidGroup.Duplicate",
    "InvalidPermission.Duplicate",
    "InvalidSubnet.Conflict",
    "DuplicateLoadBalancerName",
    "DuplicateTargetGroupName",
    "DuplicateListener",
];

const IN_USE: [&str; 5] = [
    "DependencyViolation",
    "InvalidIPAddress.InUse",
    "InvalidGroup.InUse",
    "ResourceInUse",
    "IncorrectState",
];

const THROTTLED: [&str; 5] = [
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "DependencyThrottle",
];

const FAILED: [&str; 4] = ["InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable"];

const QUOTA: [&str; 12] = [
    "VpcLimitExceeded",
    "SubnetLimitExceeded",
    "InternetGatewayLimitExceeded",
    "AddressLimitExceeded",
    "NatGatewayLimitExceeded",
    "RouteTableLimitExceeded",
    "SecurityGroupLimitExceeded",
    "RulesPerSecurityGroupLimitExceeded",
    "TooManyLoadBalancers",
    "InstanceLimitExceeded",
    "VcpuLimitExceeded",
    "InsufficientInstanceCapacity",
];

const PERMISSION: [&str; 7] = [
    "UnauthorizedOperation",
    "AccessDenied",
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "ExpiredToken",
    "OptInRequired",
];

/// What a refusal of this action with this code means. An empty code, of an answer that is none of
/// AWS's, is a failure.
pub fn classify(code: &str, action: &Action) -> Refusal {
    // The older API spells some of its codes with this ending, and the newer ones without.
    let code = code.strip_suffix("Exception").filter(|bare| is_not_found(bare)).unwrap_or(code);
    if is_not_found(code) {
        return absent(code, action);
    }
    match code {
        "" => Refusal::Failed,
        "IdempotentParameterMismatch" => Refusal::TokenReused,
        // An address that a NAT gateway has is refused as if it were another account's.
        "AuthFailure" if matches!(action, Action::ReleaseAddress { .. }) => Refusal::InUse,
        "InvalidSubnet" => Refusal::NotVisibleYet,
        // There is no route to replace.
        "InvalidParameterValue" if matches!(action, Action::ReplaceRoute { .. }) => {
            Refusal::Outdated
        }
        _ if OUTDATED.contains(&code) => Refusal::Outdated,
        _ if IN_USE.contains(&code) => Refusal::InUse,
        _ if THROTTLED.contains(&code) => Refusal::Throttled,
        _ if FAILED.contains(&code) => Refusal::Failed,
        _ if QUOTA.contains(&code) => Refusal::Quota,
        _ if PERMISSION.contains(&code) => Refusal::Permission,
        _ => Refusal::Invalid,
    }
}

/// What the refusal of a describe call with this code means.
pub fn classify_read(code: &str) -> Refusal {
    // A read names nothing that we have made, so any action will do that makes nothing either.
    classify(code, &Action::DeleteTags { resources: Vec::new(), keys: Vec::new() })
}

fn is_not_found(code: &str) -> bool {
    NOT_FOUND.contains(&code) || code.ends_with(".NotFound")
}

/// What it means that something which the call names does not exist.
fn absent(code: &str, action: &Action) -> Refusal {
    // The user names key pair and image; nothing makes them appear.
    if ["InvalidKeyPair.NotFound", "InvalidAMIID.NotFound"].contains(&code) {
        return Refusal::Invalid;
    }
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
            Self::Gone | Self::Outdated | Self::TokenReused => Reason::Refused,
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
            | Self::TokenReused => 5,
            Self::InUse | Self::Throttled => 10,
            Self::Permission => 60,
            Self::Quota => 120,
            Self::Invalid => 600,
        }
    }

    /// Seconds to which that time grows while it is refused again and again
    /// (`rule:what-is-refused-is-tried-later-each-time`).
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
