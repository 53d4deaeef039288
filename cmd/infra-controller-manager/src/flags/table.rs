//! The flags of kube-controller-manager 1.36 that no hosted controller owns, and our own. Controllers
//! bring the tables of theirs.
//!
//! When a flag gets its implementation its verdict changes here, and only here.

mod accepted;
pub(crate) mod generic;
pub(crate) mod observing;
pub(crate) mod serving;

use flags::Spec;

pub(crate) use accepted::ACCEPTED_GROUP;

/// All tables of this crate.
pub const GROUPS: &[&[Spec]] = &[
    generic::FLAGS,
    generic::LEADER_ELECTION,
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
