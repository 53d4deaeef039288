//! Every flag of kube-controller-manager 1.36 that no hosted controller owns, and ours
//! (rule:command-line-as-kube-controller-manager). A table per part of the program; controllers
//! bring their own.
//!
//! When a flag gets its implementation its verdict changes here, and only here.

mod accepted;
pub(crate) mod generic;
pub(crate) mod leader;
pub(crate) mod observing;
pub(crate) mod serving;

use flags::{Kind, Spec, Verdict};

/// All tables of this crate.
pub const GROUPS: &[&[Spec]] = &[
    generic::FLAGS,
    leader::LEADER_ELECTION,
    serving::FLAGS,
    serving::AUTHENTICATION,
    serving::AUTHORIZATION,
    observing::METRICS,
    observing::LOGS,
    observing::DEBUGGING,
    generic::PROGRAM,
    accepted::CLOUD,
    accepted::NODES,
    accepted::SIGNING,
    accepted::MISCELLANEOUS,
    accepted::WORKLOADS,
    accepted::ENDPOINTS,
    accepted::HOUSEKEEPING,
    accepted::AUTOSCALING,
    accepted::ATTACHING,
    accepted::VOLUMES,
];

/// Help section of flags without effect.
pub(crate) const ACCEPTED_GROUP: &str = "accepted for compatibility";

const fn accepted(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Spec {
    Spec::honoured(ACCEPTED_GROUP, name, kind, default, help).with_verdict(Verdict::Accepted)
}
