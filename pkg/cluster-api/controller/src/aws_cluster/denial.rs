//! [`Denial`]: why AWS is not accessible to who asks. Pure.

use aws::CallError;
use aws_network::{Refusal, classify_read};

/// Why AWS is not accessible.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether a failure of a read is about who asks.
pub(super) fn denial(error: &CallError) -> Option<Denial> {
    let reason = match error {
        // No read is held back by anything but credentials that are not there.
        CallError::NotSent { .. } => "CredentialsNotFound",
        CallError::Refused(refused) => match classify_read(refused) {
            Refusal::Permission => "PermissionDenied",
            Refusal::Clock => "ClockSkew",
            _ => return None,
        },
        CallError::Unanswered { .. } => return None,
    };
    Some(Denial { reason, message: error.to_string() })
}
