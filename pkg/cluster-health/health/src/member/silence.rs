//! A [`Member`] without an answer. Its failures have crossed the threshold: it waits for the guard, and its Lease, if it
//! renews one, decides what is published (`rule:our-outage-is-not-theirs`). Or no probe was completed for too long, or
//! none could be made, or it is paused.

use std::time::Instant;

use super::{Effect, Member};
use crate::finding::one_line;
use crate::guard::{Evidence, Held, Ruling};
use crate::published::{Change, Published};
use crate::schedule::Cause;
use crate::thresholds::Tally;
use crate::write_gate::next_probe;
use crate::{Beat, Code, Finding, Health, Moment, Policy, Report, Verdict};

impl Member {
    /// Whether probes do not reach the cluster, which still renews its Lease.
    pub fn is_path_down(&self) -> bool {
        self.path_down
    }

    /// What its Lease said at the last probe.
    pub fn beat(&self) -> Beat {
        self.beat
    }

    /// Publishes silence, unless the Lease says otherwise.
    pub(super) fn cross(
        &mut self,
        report: &Report,
        policy: &Policy,
        now: Instant,
    ) -> (Change, bool) {
        // It waits for no guard any more.
        self.held = None;
        match self.beat {
            Beat::Absent | Beat::Silent => self.publish(report, now),
            Beat::Unwell => {
                let finding = Finding::failed(Code::Beat, report.finding.path());
                self.publish(&Report { finding, ..report.clone() }, now)
            }
            // One lost probe of a cluster that is not ready by its answers is no path that is down.
            Beat::Well
                if self.published.as_ref().is_some_and(is_unready_by_answer)
                    && self.lost < policy.thresholds.failure =>
            {
                self.keep(report);
                (Change::Nothing, false)
            }
            Beat::Well => {
                self.path_down = true;
                // For the guard its silence is explained.
                self.unreachable_since.get_or_insert(now);
                self.keep(report);
                let is_unknown = match &self.published {
                    // No answer says how it is.
                    None => true,
                    Some(published) => match published.health {
                        Health::HubPartition => true,
                        // The Lease takes back what it alone said.
                        Health::NotReady => !is_unready_by_answer(published),
                        _ => false,
                    },
                };
                let change = if is_unknown {
                    Published::withdraw(&mut self.published, Health::Unknown, report.started)
                } else {
                    Change::Nothing
                };
                (change, false)
            }
        }
    }

    /// The failures have crossed the threshold, and wait for the guard.
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
            let (change, new_cause) = self.cross(&report, policy, now.monotonic);
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
            self.lost = 0;
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

    /// Publishes `Unknown` when no probe was completed for too long
    /// (`rule:unwatched-clusters-become-unknown`).
    pub fn sweep(&mut self, policy: &Policy, now: Moment) -> Option<Effect> {
        if self.stale_at(policy)? > now.monotonic {
            return None;
        }
        let before = self.health();
        let change = Published::withdraw(&mut self.published, Health::Unknown, now);
        if let Some(published) = &mut self.published {
            published.detail.clone_from(&self.obstacle);
        }
        (self.held, self.unreachable_since, self.path_down) = (None, None, false);
        let flapping = self.note_change(change, before, policy, now.monotonic);
        self.causes.begin(None);
        Some(Effect { flapping, ..Effect::of(change) })
    }

    /// Publishes `Unknown` with the reason `why`, because it cannot be observed. The next result is
    /// published at once.
    pub fn publish_unknown(&mut self, why: &str, now: Moment) -> Change {
        self.tally = Tally::default();
        self.causes.begin(None);
        (self.held, self.unreachable_since, self.path_down) = (None, None, false);
        let change = Published::withdraw(&mut self.published, Health::Unknown, now);
        if let Some(published) = &mut self.published {
            published.detail = Some(one_line(why).into());
        }
        change
    }

    /// When it becomes unknown if no probe is completed until then.
    pub(crate) fn stale_at(&self, policy: &Policy) -> Option<Instant> {
        match &self.published {
            Some(published) if published.health == Health::Unknown => None,
            Some(_) => Some(self.silent_since() + policy.stale_after()),
            None => Some(self.judged_from + policy.first_grace()),
        }
    }

    fn silent_since(&self) -> Instant {
        self.completed.map_or(self.judged_from, |at| at.max(self.judged_from))
    }

    /// `rule:what-we-could-not-ask-changes-nothing`
    pub(super) fn learn_nothing(&mut self, policy: &Policy, now: Instant, draw: f64) -> Effect {
        self.task_began = now;
        self.availability.skip();
        let regular = self.cause == Cause::Regular;
        self.schedule.complete(regular, policy.cadence.interval(self.is_confirming(), draw));
        Effect::NONE
    }

    /// Stops probing on purpose: the state is unknown until the next probe,
    /// and the result of that probe is published at once
    /// (`rule:a-pause-knows-nothing`).
    pub fn pause(&mut self) {
        (self.held, self.unreachable_since, self.path_down) = (None, None, false);
        self.availability.skip();
        self.published = None;
        self.tally = Tally::default();
    }
}

fn is_unready_by_answer(published: &Published) -> bool {
    let by_lease = published.finding.and_then(Finding::code) == Some(Code::Beat);
    published.health == Health::NotReady && !by_lease
}
