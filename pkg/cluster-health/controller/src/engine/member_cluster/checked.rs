//! The checks of a [`MemberCluster`]: which it has by its labels, and what a run of one does to it.

use std::sync::Arc;
use std::time::Instant;

use health::{CheckChange, CheckEvidence, CheckStatus, Moment, Report};
use tracing::warn;

use super::super::flavour::now;
use super::super::probes::CheckRun;
use super::{MemberCluster, MemberState};
use crate::check_document::ConfiguredChecks;

impl MemberCluster {
    /// Takes in which checks there are. The caller considers whether its object has to be written.
    pub(crate) fn select_checks(&self, checks: &ConfiguredChecks) {
        let _is_gone = self.follow_checks(&mut self.state.lock(), checks);
    }

    /// The report of a probe after the checks: one that gates readiness and failed makes an ok probe a failure.
    pub(crate) fn gated(&self, report: Report, checks: &ConfiguredChecks) -> Report {
        let mut state = self.state.lock();
        // What is gone is written with the end of the probe.
        let _is_gone = self.follow_checks(&mut state, checks);
        state.member.gated(report, checks.are_known())
    }

    /// Takes in which checks there are, and for how long they have not run while they `may_run`, and begins the run of one
    /// that is due. The first is whether its object has to be written.
    pub(crate) fn look_at_checks(
        &self,
        checks: &ConfiguredChecks,
        may_run: bool,
        now: Moment,
    ) -> (bool, Option<CheckRun>) {
        let mut state = self.state.lock();
        let is_gone = self.follow_checks(&mut state, checks);
        if !may_run {
            state.member.suspend_checks(now.monotonic);
        }
        let is_outdated = is_gone | state.member.lapse_checks(now);
        (is_outdated, if may_run { begin_check(&mut state, now.monotonic) } else { None })
    }

    /// The run under way has ended without a result.
    pub(crate) fn drop_check(&self) {
        self.state.lock().member.drop_check();
    }

    /// Takes in the end of a run: its result, and what that changes. `None` when the cluster is reached in another way
    /// by now.
    pub(crate) fn complete_check(
        &self,
        run: &CheckRun,
        evidence: &CheckEvidence,
        now: Moment,
    ) -> Option<(CheckStatus, Option<CheckChange>)> {
        let mut state = self.state.lock();
        if !state.prober.as_ref().is_some_and(|prober| Arc::ptr_eq(prober, &run.prober)) {
            state.member.drop_check();
            return None;
        }
        Some(state.member.complete_check(&run.check, evidence, now))
    }

    /// Has its object written with its checks as they are.
    pub(crate) fn outdate(&self) {
        self.state.lock().member.outdate();
    }

    fn follow_checks(&self, state: &mut MemberState, checks: &ConfiguredChecks) -> bool {
        let Some((generation, document)) = checks.newer_than(state.checks_of) else {
            return false;
        };
        let (selected, ignored) = document.of_member(self.flavour.name(), &state.labels);
        let is_gone = state.member.follow_checks(&selected, now());
        state.checks_of = generation;
        if ignored > 0 {
            let cluster = &*self.cluster.key;
            warn!(
                cluster,
                ignored,
                "More than 8 checks select a member; the last ones of the ConfigMap do not run for it"
            );
        }
        is_gone
    }
}

/// Begins the run of a check that is due.
fn begin_check(state: &mut MemberState, now: Instant) -> Option<CheckRun> {
    let check = state.member.due_check(now)?;
    let prober = state.prober.clone().filter(|_| !state.paused)?;
    state.member.begin_check(&check.name, now);
    Some(CheckRun { check, prober, queued: now })
}
