//! Flags that are taken and have no effect.

use flags::{Kind, Spec, Verdict};

/// Help section of flags without effect.
pub(crate) const ACCEPTED_GROUP: &str = "accepted for compatibility";

pub(super) const fn accepted(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Spec {
    Spec::honoured(ACCEPTED_GROUP, name, kind, default, help).with_verdict(Verdict::Accepted)
}
