//! A [`Member`] that waits for the guard before it is published as unreachable.

use std::time::Instant;

use super::{Effect, Member};
use crate::availability::Found;
use crate::guard::{Evidence, Held, Ruling};
use crate::write_gate::next_probe;
use crate::{Beat, Health, Moment, Policy, Published, Report, Verdict};

impl Member {
    /// The failures have crossed the threshold, and wait for the guard (`rule:our-outage-is-not-theirs`).
    pub(super) fn hold(&mut self, report: &Report) {
        let crossed = self.held.as_ref().map_or(report.started.monotonic, |held| held.crossed);
        self.held = Some(Box::new(Held { crossed, report: report.clone() }));
    }

    /// The probe of this report ends while the guard suspects the network of this process: the time of a silence that it
    /// ends is not observed.
    pub fn excuse(&mut self, report: &Report) {
        if report.finding.verdict() != Verdict::Unreachable {
            self.availability.settle(false, report.started);
        }
    }

    /// Counts the time since the probe before. When the cluster answers after it `waited` for the guard, the
    /// time of its silence is not observed.
    pub(super) fn count(&mut self, report: &Report, waited: bool, policy: &Policy) {
        let is_unreachable = report.finding.verdict() == Verdict::Unreachable;
        let found = match self.health() {
            _ if report.finding.is_ok() => Found::Well,
            _ if self.path_down => Found::InDoubt,
            Some(Health::Unreachable) => Found::Bad,
            _ if is_unreachable && self.guarded => Found::InDoubt,
            _ => Found::Bad,
        };
        self.availability.record(found, report.started, policy.longest_gap());
        if found != Found::InDoubt || self.path_down {
            self.availability.settle(!waited && !self.path_down, report.started);
        }
    }

    /// Applies what the guard has decided.
    pub fn obey(&mut self, ruling: &Ruling, policy: &Policy, now: Moment) -> Option<Effect> {
        if ruling.forgive {
            self.availability.settle(false, now);
            self.forgive(ruling.waiting, policy, now.monotonic);
            return None;
        }
        let before = self.health();
        let held = self.held.as_ref()?;
        if ruling.release.is_some_and(|by| held.crossed <= by) {
            let Held { report, .. } = *self.held.take()?;
            let path_was_down = self.path_down;
            let (change, new_cause) = self.cross(&report, now.monotonic);
            self.availability.settle(!self.path_down, now);
            let path_down = self.path_has_gone_down(path_was_down);
            let flapping = self.note_change(change, before, policy, now.monotonic);
            return Some(Effect { new_cause, flapping, path_down, ..Effect::of(change) });
        }
        // Its Lease speaks for it, whoever is cut off.
        let is_heard = self.beat == Beat::Well;
        if !ruling.publish_partition || is_heard || before == Some(Health::HubPartition) {
            return None;
        }
        self.availability.settle(false, now);
        let change = Published::withdraw(&mut self.published, Health::HubPartition, now);
        self.gate.changed();
        Some(Effect { is_ours: true, ..Effect::of(change) })
    }

    /// The failures were ours: those of a cluster that does not answer yet count from zero, and it is probed
    /// soon, with the `others` that waited.
    fn forgive(&mut self, others: usize, policy: &Policy, now: Instant) {
        let waited = self.held.take().is_some() || self.health() == Some(Health::HubPartition);
        let failed = self.last.is_some_and(|it| it.finding.verdict() == Verdict::Unreachable);
        if failed && self.health() != Some(Health::Unreachable) {
            self.tally.forget_failures();
        }
        if waited {
            let wait = next_probe(self.hash, others, policy.cadence.period);
            self.schedule.no_later_than(now + wait);
        }
    }

    /// The last probe of the member, as evidence about the network; `None` when no request was sent.
    pub fn evidence(&self) -> Option<Evidence> {
        let last = self.last?;
        let answers = match last.finding.verdict() {
            Verdict::Ok | Verdict::Unhealthy => true,
            Verdict::Unreachable => false,
            Verdict::Config => return None,
        };
        Some(Evidence {
            member: self.hash,
            started: last.started.monotonic,
            answers,
            connected: last.connected,
            unreachable_since: self.unreachable_since,
            waits: self.held.is_some(),
        })
    }

    /// Whether it waits for the guard.
    pub fn waits(&self) -> bool {
        self.held.is_some()
    }
}
