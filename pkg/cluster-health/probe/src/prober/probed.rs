//! [`Probed`]: what a probe found.

use std::time::Duration;

use health::{Endpoints, Finding, Lifetime, ProbePath, Report};

use super::moment::now;
use super::trace::Trace;
use crate::problem::Problem;

/// What a probe found, for the engine and for people.
#[derive(Clone, Debug)]
pub struct Probed {
    /// For the engine.
    pub report: Report,
    /// Every attempt, in the order in which they were made.
    pub attempts: Vec<Trace>,
    /// The lifetime of the certificate that the server showed last.
    pub certificate: Option<Lifetime>,
    /// That of the first of our credentials to end.
    pub credential: Option<Lifetime>,
}

impl Probed {
    /// What is told of a cluster for which no client can be made.
    pub fn of_problem(problem: &Problem) -> Self {
        let report = Report {
            finding: Finding::failed(problem.code(), ProbePath::default()),
            started: now(),
            took: Duration::ZERO,
            attempts: 0,
            endpoints: Endpoints::default(),
            detail: Some(problem.to_string().into()),
        };
        Self { report, attempts: Vec::new(), certificate: None, credential: None }
    }
}
