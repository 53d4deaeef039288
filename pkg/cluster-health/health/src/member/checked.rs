//! The checks of a [`Member`]: when one may run, and what a failed one makes of a probe that is ok.

use std::sync::Arc;
use std::time::Instant;

use super::Member;
use crate::{
    Check, CheckChange, CheckEvidence, CheckReport, CheckStatus, Code, Finding, Moment, Report,
    Status,
};

const UNKNOWN: &str =
    "the checks are not known: --cluster-health-checks-config is not read yet, or cannot be used";

impl Member {
    /// Has these checks from now on. Whether one is gone: then the object has to be written.
    pub fn follow_checks(&mut self, checks: &[Arc<Check>], now: Moment) -> bool {
        let is_gone = self.checks.follow(checks, self.hash, now);
        if is_gone {
            self.gate.outdate();
        }
        is_gone
    }

    /// Makes checks unknown that have not run for too long. Whether there are any: then the object has to be written.
    pub fn lapse_checks(&mut self, now: Moment) -> bool {
        let any = self.checks.lapse(now);
        if any {
            self.gate.outdate();
        }
        any
    }

    /// Its checks could not run up to `now`, for a reason of this process.
    pub fn suspend_checks(&mut self, now: Instant) {
        self.checks.suspend(now);
    }

    /// The check to run now; `None` while one is under way, and while the cluster does
    /// not answer its probes with ok.
    pub fn due_check(&self, now: Instant) -> Option<Arc<Check>> {
        let finding = self.last?.finding;
        let answers = finding.is_ok() || finding.code() == Some(Code::Check);
        answers.then(|| self.checks.due(self.is_unready(), now)).flatten()
    }

    /// A run of this check begins, or waits for its turn.
    pub fn begin_check(&mut self, name: &str, now: Instant) {
        self.checks.begin(name, now);
    }

    /// The run under way has ended without a result.
    pub fn drop_check(&mut self) {
        self.checks.drop_run();
    }

    /// The run under way has ended: its result, and what that changes.
    pub fn complete_check(
        &mut self,
        check: &Arc<Check>,
        evidence: &CheckEvidence,
        now: Moment,
    ) -> (CheckStatus, Option<CheckChange>) {
        self.checks.complete(check, evidence, now)
    }

    /// Has the object written with the checks as they are.
    pub fn outdate(&mut self) {
        self.gate.outdate();
    }

    /// What is published about its checks.
    pub fn check_reports(&self) -> Vec<CheckReport> {
        self.checks.reports()
    }

    /// The report of a probe, after the checks. While it is not known which checks there are, one that came as not ready
    /// stays so: a check may have made it so (`rule:a-restart-changes-nothing`).
    pub fn gated(&self, report: Report, are_known: bool) -> Report {
        if !report.finding.is_ok() {
            return report;
        }
        let is_unready = self.is_unready();
        let why = if are_known {
            self.checks.gate(is_unready)
        } else {
            (is_unready && self.checks.came_unready).then(|| UNKNOWN.to_owned())
        };
        match why {
            Some(why) => {
                let finding = Finding::failed(Code::Check, report.finding.path());
                Report { finding, detail: Some(why.into()), ..report }
            }
            None => report,
        }
    }

    fn is_unready(&self) -> bool {
        self.ready() == Some(Status::False)
    }
}
