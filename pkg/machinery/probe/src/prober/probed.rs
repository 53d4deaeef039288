//! [`Probed`]: what a probe found.

use std::time::Duration;

use health::{Endpoints, Finding, Moment, ProbePath, Report};
use jiff::Timestamp;

use super::trace::Trace;
use crate::problem::Problem;

/// What a probe found, for the engine and for people.
#[derive(Clone, Debug)]
pub struct Probed {
    /// For the engine.
    pub report: Report,
    /// Every attempt, in the order in which they were made.
    pub attempts: Vec<Trace>,
    /// The end of the validity of the certificate that the server showed last.
    pub certificate_expires: Option<Timestamp>,
    /// When the first of our credentials ends.
    pub credential_expires: Option<Timestamp>,
}

impl Probed {
    /// The report of a cluster for which no client can be made.
    pub fn of_problem(problem: &Problem, started: Moment) -> Report {
        Report {
            finding: Finding::failed(problem.code(), ProbePath::default()),
            started,
            took: Duration::ZERO,
            attempts: 0,
            endpoints: Endpoints::default(),
            detail: Some(problem.to_string().into()),
        }
    }
}
