//! [`shrink`]: a shorter plan that violates the same claim.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use crate::plan::{Number, Plan};
use crate::{Report, run};

/// Steps that its runs may take: about a hundred runs, and fewer on AWS.
const STEPS: u64 = 2_000_000;

/// A plan with fewer Nodes, seconds and faults that violates the same claim as the run of this plan.
///
/// # Errors
/// See [`run`].
pub fn shrink(plan: &Plan, report: &Report) -> io::Result<(Plan, Report)> {
    let mut search = Search { plan: plan.clone(), report: report.clone(), steps: 0 };
    while search.plan.nodes > 2 && search.accepts(|plan| plan.nodes -= 1)? {}
    while search.plan.busy > Duration::from_secs(2) && search.accepts(|plan| plan.busy /= 2)? {}
    let mut all: Vec<Number> = search.report.happened.clone();
    let mut size = all.len().div_ceil(2);
    while size > 0 && search.steps < STEPS {
        let mut is_smaller = false;
        for part in all.clone().chunks(size) {
            let rest: BTreeSet<_> = all.iter().filter(|it| !part.contains(it)).copied().collect();
            if search.accepts(|plan| plan.only = Some(rest.clone()))? {
                all = rest.into_iter().collect();
                is_smaller = true;
            }
        }
        if !is_smaller {
            size /= 2;
        }
    }
    Ok((search.plan, search.report))
}

struct Search {
    plan: Plan,
    report: Report,
    steps: u64,
}

impl Search {
    /// Whether the changed plan violates the same claim; it takes the place of the plan then.
    fn accepts(&mut self, change: impl FnOnce(&mut Plan)) -> io::Result<bool> {
        if self.steps >= STEPS {
            return Ok(false);
        }
        let mut plan = self.plan.clone();
        change(&mut plan);
        let report = run(&plan)?;
        self.steps += report.steps;
        let is_same = claim(&report).is_some() && claim(&report) == claim(&self.report);
        if is_same {
            (self.plan, self.report) = (plan, report);
        }
        Ok(is_same)
    }
}

/// The name of the claim that was violated.
fn claim(report: &Report) -> Option<&str> {
    report.violation.as_deref()?.split(':').next()
}
