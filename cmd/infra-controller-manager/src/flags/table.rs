//! Every flag of kube-controller-manager 1.36 that no hosted controller owns, and ours
//! (rule:command-line-as-kube-controller-manager). A table per part of the program; controllers
//! bring their own.
//!
//! When a flag gets its implementation its verdict changes here, and only here.

mod accepted;
mod accepted_storage;
mod accepted_workloads;
pub(crate) mod delegation;
pub(crate) mod generic;
pub(crate) mod leader;
pub(crate) mod observing;
pub(crate) mod program;
pub(crate) mod serving;
mod verdicts;

use flags::Spec;

pub(crate) use verdicts::ACCEPTED_GROUP;

/// All tables of this crate.
pub const GROUPS: &[&[Spec]] = &[
    generic::FLAGS,
    leader::FLAGS,
    serving::FLAGS,
    delegation::AUTHENTICATION,
    delegation::AUTHORIZATION,
    observing::METRICS,
    observing::LOGS,
    observing::DEBUGGING,
    program::FLAGS,
    accepted::CLOUD,
    accepted::NODES,
    accepted::SIGNING,
    accepted::MISCELLANEOUS,
    accepted_workloads::WORKLOADS,
    accepted_workloads::ENDPOINTS,
    accepted_workloads::HOUSEKEEPING,
    accepted_workloads::AUTOSCALING,
    accepted_storage::ATTACHING,
    accepted_storage::VOLUMES,
];
