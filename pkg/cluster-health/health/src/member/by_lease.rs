//! A [`Member`] that is not probed: its Lease alone decides what is published.
//!
//! Its availability is not observed. Silence proves nothing about the cluster, so an outage could never be counted; to
//! count the time between outages alone would show each cluster as available all the time. For the guard it is no
//! evidence either: its renewals come over the API server, and say nothing about the network of the probes.

use super::{Effect, Member};
use crate::published::Published;
use crate::{Beat, Code, Finding, Health, Heard, Moment, Policy, ProbePath, Report, Tally};

impl Member {
    /// Takes in what is known by its Lease alone. `lease` names the Lease, or says why nothing could be heard; `draw` is a
    /// random number in `[0, 1)`.
    pub fn look(
        &mut self,
        heard: Heard,
        lease: &str,
        policy: &Policy,
        now: Moment,
        draw: f64,
    ) -> Effect {
        self.begin(now.monotonic);
        (self.by_lease, self.held, self.path_down) = (true, None, false);
        if heard == Heard::Nothing {
            // In time it becomes unknown.
            self.obstacle = Some(lease.into());
            return self.learn_nothing(policy, now.monotonic, draw);
        }
        self.availability.skip();
        self.obstacle = None;
        let effect = match heard {
            Heard::Beat(beat) => self.judge_beat(beat, lease, policy, now),
            Heard::Awaited | Heard::Nothing => Effect::NONE,
        };
        // It is no probe: neither the guard nor a page may take it for one.
        self.last = None;
        self.completed = Some(now.monotonic);
        let interval = policy.cadence.interval(self.is_confirming(), draw);
        self.schedule.complete(true, interval);
        effect
    }

    fn judge_beat(&mut self, beat: Beat, lease: &str, policy: &Policy, now: Moment) -> Effect {
        self.beat = beat;
        let finding = match beat {
            Beat::Well => Finding::ok(ProbePath::default()),
            Beat::Unwell => Finding::failed(Code::Beat, ProbePath::default()),
            Beat::Silent | Beat::Absent => return self.stop(lease, policy, now),
        };
        let (effect, _) = self.judge(&Report::new(finding, now), policy, now.monotonic);
        Effect { first_failure: false, ..effect }
    }

    fn stop(&mut self, lease: &str, policy: &Policy, now: Moment) -> Effect {
        let before = self.health();
        self.tally = Tally::default();
        self.causes.begin(None);
        self.unreachable_since = None;
        let change = Published::withdraw(&mut self.published, Health::HeartbeatStopped, now);
        if let Some(published) = &mut self.published {
            published.detail = Some(lease.into());
        }
        let flapping = self.note_change(change, before, policy, now.monotonic);
        Effect { flapping, ..Effect::of(change) }
    }
}
