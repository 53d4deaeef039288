//! [`Member`]: everything that is remembered about one cluster, and what each probe does to it.

mod by_lease;
mod checked;
pub(crate) mod readings;
mod silence;

use std::time::{Duration, Instant};

use crate::availability::{Availability, Found};
use crate::guard::Held;
use crate::published::{Causes, Change, Published};
use crate::schedule::{Cause, Schedule};
use crate::thresholds::{Decision, Flaps, Tally};
use crate::write_gate::{WriteGate, first_probe, next_probe, share_of};
use crate::{
    Beat, Checks, Code, Finding, Health, Moment, Policy, Record, Report, Status, Urgency, Verdict,
};

/// How a cluster comes to this process.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    /// Hash of the object's UID, from [`crate::hash`].
    pub hash: u64,
    /// State in the object's status; a restart or a move to another replica goes on from there
    /// (`rule:a-restart-changes-nothing`).
    pub published: Option<Published>,
    /// Fingerprint of `published`.
    pub written: Option<u64>,
    /// How many clusters came in the same first list; 0 for a cluster that was created later.
    pub together: usize,
    /// The cluster comes from another replica, and has waited for its next probe since that replica released
    /// it.
    pub has_waited: bool,
    /// Whether it waits for a [`crate::Guard`] before it is published as unreachable.
    pub guarded: bool,
    /// The record in the object's status; counting goes on from there.
    pub record: Option<Record>,
}

/// The effect of one probe on its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is about an event of its own")]
pub struct Effect {
    /// How what is published changed.
    pub change: Change,
    /// The probe was the first failure after a success, or of all.
    pub first_failure: bool,
    /// The cluster is still not well, for another cause, which gets an event and a write.
    pub new_cause: bool,
    /// The cluster flaps, and an event about that is due.
    pub flapping: bool,
    /// The change is about this process and not about the cluster: it gets no event.
    pub is_ours: bool,
    /// Probes do not reach the cluster any more, which still renews its Lease.
    pub path_down: bool,
}

impl Effect {
    /// Nothing changed that anybody is told.
    const NONE: Self = Self::of(Change::Nothing);

    const fn of(change: Change) -> Self {
        Self {
            change,
            first_failure: false,
            new_cause: false,
            flapping: false,
            is_ours: false,
            path_down: false,
        }
    }
}

/// One cluster. Lives as long as its UID and its place in this replica;
/// needs no other state than this.
#[derive(Clone, Debug)]
pub struct Member {
    published: Option<Published>,
    tally: Tally,
    flaps: Flaps,
    causes: Causes,
    schedule: Schedule,
    availability: Availability,
    gate: WriteGate,
    /// Hash of the object's UID.
    hash: u64,
    /// Since when its silence is judged by the limits that hold now: it came to this process, was
    /// resumed, or came under a policy with shorter ones.
    judged_from: Instant,
    /// When its last probe ended.
    completed: Option<Instant>,
    /// When its task started, restarted, last got a permit, or last could not ask.
    task_began: Instant,
    cause: Cause,
    last: Option<Last>,
    /// Why the last probe could not be made, for a reason of our own.
    obstacle: Option<Box<str>>,
    guarded: bool,
    /// Its failures have crossed the threshold, and wait for the guard.
    held: Option<Box<Held>>,
    /// Since when it is published as unreachable, or its Lease speaks for it while no probe reaches it.
    unreachable_since: Option<Instant>,
    /// What its Lease said at the last probe.
    beat: Beat,
    /// Probes in a row without an answer that counted.
    lost: u32,
    /// Its failures have crossed the threshold, and its Lease says that it is well.
    path_down: bool,
    /// It was judged by its Lease alone since it was last probed.
    by_lease: bool,
    checks: Checks,
}

/// The last probe, for pages and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Last {
    /// Verdict, code and path.
    pub finding: Finding,
    /// When it began.
    pub started: Moment,
    /// How long it took.
    pub took: Duration,
    /// When the last probe started that was answered over a connection of its own.
    connected: Option<Instant>,
}

impl Member {
    /// Takes a cluster in at `now`.
    pub fn new(arrival: Arrival, policy: &Policy, now: Instant) -> Self {
        let wait = match arrival.together {
            0 => Duration::ZERO,
            members if arrival.has_waited => {
                next_probe(arrival.hash, members, policy.cadence.period)
            }
            members => first_probe(arrival.hash, members, policy.cadence.period),
        };
        let published = arrival.published.as_ref();
        let is_unreachable = published.is_some_and(|it| it.health == Health::Unreachable);
        Self {
            guarded: arrival.guarded,
            held: None,
            unreachable_since: is_unreachable.then_some(now),
            tally: Tally::default(),
            flaps: Flaps::default(),
            causes: Causes::default(),
            schedule: Schedule::new(now + wait),
            availability: Availability::new(arrival.record, now),
            gate: WriteGate::new(arrival.written, now, policy.heartbeat, arrival.hash),
            hash: arrival.hash,
            judged_from: now,
            completed: None,
            task_began: now,
            cause: Cause::Regular,
            last: None,
            obstacle: None,
            beat: Beat::Absent,
            lost: 0,
            path_down: false,
            by_lease: false,
            checks: Checks::of(published.is_some_and(|it| it.ready.status == Status::False)),
            published: arrival.published,
        }
    }

    /// A probe starts at `now`.
    pub fn begin(&mut self, now: Instant) {
        self.cause = self.schedule.begin(now);
    }

    /// Takes in what the Lease of the cluster says, for the probe that ends next.
    pub fn hear(&mut self, beat: Beat) {
        self.beat = beat;
    }

    /// The probe has ended at `now`. `draw` is a random number in `[0, 1)`.
    pub fn complete(
        &mut self,
        report: &Report,
        policy: &Policy,
        now: Instant,
        draw: f64,
    ) -> Effect {
        self.by_lease = false;
        if report.finding.is_void() {
            self.obstacle.clone_from(&report.detail);
            return self.learn_nothing(policy, now, draw);
        }
        self.obstacle = None;
        let waited = self.held.is_some();
        let (effect, counts) = self.judge(report, policy, now);
        self.count(report, waited, policy);
        self.schedule.complete(counts, policy.cadence.interval(self.is_confirming(), draw));
        effect
    }

    /// Takes in a result that no probe of this member brought, as of a list of Nodes that shows all
    /// machines of a cluster. A failure counts as that of a probe which an event asked for does.
    /// Availability is not computed from it.
    pub fn observe(&mut self, report: &Report, policy: &Policy, now: Instant) -> Effect {
        self.cause = Cause::Triggered;
        self.judge(report, policy, now).0
    }

    /// The effect of a result on the published state, and whether it counts for the schedule.
    fn judge(&mut self, report: &Report, policy: &Policy, now: Instant) -> (Effect, bool) {
        let (finding, started) = (report.finding, report.started.monotonic);
        let first_failure = !finding.is_ok() && !self.was_failing();
        let counts = self.counts(finding, policy, started);
        let thresholds = self.flaps.effective(policy.thresholds, now, &policy.damping);
        // A check has thresholds of its own.
        let is_check = finding.code() == Some(Code::Check);
        let counted = (counts && !is_check).then_some(started);
        let before = self.health();
        let is_unreachable = finding.verdict() == Verdict::Unreachable;
        self.lost = if is_unreachable { self.lost.saturating_add(counts.into()) } else { 0 };
        // A partition is published: silence counts from its end on, as for a cluster that was ready. So it does for one
        // that answered and that a check alone made not ready, and for one whose object says not ready without a reason.
        let is_check_or_unknown =
            |it: &Published| it.finding.is_none_or(|it| it.code() == Some(Code::Check));
        let by_check = self.published.as_ref().is_some_and(is_check_or_unknown);
        let ready = match before {
            Some(Health::HubPartition) if is_unreachable => Some(Status::True),
            Some(Health::NotReady) if is_unreachable && by_check => Some(Status::True),
            _ => self.ready(),
        };
        if is_check {
            self.tally.forget_failures();
        }
        let decision = self.tally.decide(ready, finding.is_ok(), counted, thresholds);
        let path_was_down = self.begin_to_cross(is_unreachable);
        let waits = self.guarded && before != Some(Health::Unreachable) && !self.path_down;
        let (change, new_cause) = match decision {
            Decision::Publish if is_unreachable && waits => {
                self.hold(report);
                self.keep(report);
                (Change::Nothing, false)
            }
            Decision::Publish if is_unreachable => self.cross(report, policy, now),
            Decision::Publish => self.publish(report, now),
            Decision::Keep if is_check => self.publish(report, now),
            Decision::Keep => {
                self.keep(report);
                (Change::Nothing, false)
            }
        };
        if !is_unreachable {
            self.held = None;
        }
        let flapping = self.note_change(change, before, policy, now);
        self.completed = Some(now);
        let answers = matches!(finding.verdict(), Verdict::Ok | Verdict::Unhealthy);
        let connected = match self.last {
            _ if answers && report.new_connection => Some(started),
            before => before.and_then(|before| before.connected),
        };
        self.last = Some(Last { finding, started: report.started, took: report.took, connected });
        let is_ours = before == Some(Health::HubPartition) && self.health() == Some(Health::Ready);
        let path_down = self.path_has_gone_down(path_was_down);
        (Effect { change, first_failure, new_cause, flapping, is_ours, path_down }, counts)
    }

    /// An answer, or the end of the beats, ends the state of a path that is down; whether it was down before.
    fn begin_to_cross(&mut self, is_unreachable: bool) -> bool {
        let before = self.path_down;
        self.path_down &= is_unreachable && self.beat == Beat::Well;
        if before && !self.path_down && self.health() != Some(Health::Unreachable) {
            self.unreachable_since = None;
        }
        before
    }

    /// Whether the path has gone down since. Its message is written when that begins and when it ends.
    fn path_has_gone_down(&mut self, before: bool) -> bool {
        if before != self.path_down {
            self.gate.outdate();
        }
        self.path_down && !before
    }

    /// Counts the time since the probe before. When the cluster answers after it `waited` for the guard, the
    /// time of its silence is not observed.
    fn count(&mut self, report: &Report, waited: bool, policy: &Policy) {
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

    /// How what is published changes, and whether its cause alone does.
    fn publish(&mut self, report: &Report, now: Instant) -> (Change, bool) {
        let change = Published::publish(&mut self.published, report);
        match self.health() {
            Some(Health::Unreachable) => {
                self.unreachable_since.get_or_insert(now);
            }
            _ => self.unreachable_since = None,
        }
        let cause = self.published.as_ref().and_then(Published::cause);
        if matches!(change, Change::Ready { .. }) {
            self.causes.begin(cause);
            return (change, false);
        }
        let new_cause = self.causes.note(cause, now);
        if new_cause {
            self.gate.outdate();
        }
        (change, new_cause)
    }

    /// The last probe failed; of a cluster that was taken over, the object says so.
    fn was_failing(&self) -> bool {
        match self.last {
            Some(last) => !last.finding.is_ok(),
            None => self.ready() == Some(Status::False),
        }
    }

    /// A failure found because of an event counts only when failures have had time to be two
    fn counts(&self, finding: Finding, policy: &Policy, started: Instant) -> bool {
        if finding.is_ok() || self.cause == Cause::Regular {
            return true;
        }
        let spaced = |at| started.saturating_duration_since(at) >= policy.failure_spacing();
        self.tally.counted_at().is_none_or(spaced)
    }

    fn keep(&mut self, report: &Report) {
        if let Some(published) = &mut self.published {
            published.probed = Some(report.started.wall);
        }
    }

    fn note_change(
        &mut self,
        change: Change,
        before: Option<Health>,
        policy: &Policy,
        now: Instant,
    ) -> bool {
        let Change::Ready { from, to } = change else { return false };
        self.checks.came_unready &= to != Status::True;
        if from.is_some() {
            self.gate.changed();
        }
        let crosses = from.is_some_and(|from| (from == Status::True) != (to == Status::True));
        // The end of a partition says nothing about the cluster.
        let is_ours = before == Some(Health::HubPartition);
        crosses && !is_ours && self.flaps.note(now, &policy.damping)
    }

    /// Something about the cluster changed: a probe follows within a second.
    pub fn trigger(&mut self, now: Instant) {
        self.schedule.trigger(now);
    }

    /// The probe under way, if any, is of inputs that hold no more: its end will not be told, and
    /// another probe follows within a second.
    pub fn discard(&mut self, now: Instant) {
        self.held = None;
        self.schedule.discard(now);
    }

    /// The cluster is reached at another place by now: what the next probe finds is published at
    /// once.
    pub fn retarget(&mut self, now: Instant) {
        self.held = None;
        self.tally.new_target();
        self.checks.restart(now);
        self.schedule.trigger(now);
    }

    /// Changes the policy at `now`: a shorter period does not wait for the end of a longer one, and
    /// time that passed under the old one does not count as silence.
    pub fn follow(&mut self, before: &Policy, policy: &Policy, now: Instant) {
        let shorter = policy.stale_after() < before.stale_after()
            || policy.stuck_after() < before.stuck_after();
        if shorter {
            self.judged_from = now;
            self.task_began = now;
        }
        let started = self.schedule.started().unwrap_or(now);
        let next = started + policy.cadence.interval(false, 0.5);
        let spread = now + share_of(policy.cadence.period, self.hash);
        self.schedule.no_later_than(if next > now { next } else { spread });
    }

    /// When the task of this member counts as stuck (`rule:stuck-tasks-are-replaced`).
    pub fn stuck_at(&self, policy: &Policy) -> Instant {
        let alive = self.completed.map_or(self.task_began, |at| at.max(self.task_began));
        alive + policy.stuck_after()
    }

    /// The probe got its permit at `now`: the wait for it does not count as time of its
    /// task's.
    pub fn admit(&mut self, now: Instant) {
        self.task_began = now;
    }

    /// The task of this member was cancelled and restarts at `now`, with a probe.
    pub fn restart(&mut self, now: Instant) {
        self.task_began = now;
        self.schedule.abandon(now);
    }

    /// Resumes probing after a pause: the time of the pause does not count as silence.
    pub fn resume(&mut self, now: Instant) {
        self.judged_from = now;
        self.task_began = now;
        self.schedule.trigger(now);
    }

    /// Whether the state with this `fingerprint` has to be written at `now`; see [`Urgency`].
    pub fn write_due(&self, fingerprint: u64, policy: &Policy, now: Instant) -> Option<Urgency> {
        let due = self.gate.due(fingerprint, now, policy.heartbeat)?;
        let is_partition = self.health() == Some(Health::HubPartition);
        Some(if is_partition { Urgency::Partition } else { due })
    }

    /// The state with this `fingerprint` was handed to the [`crate::WriteQueue`].
    pub fn handed_over(&mut self, fingerprint: u64, now: Instant) {
        self.gate.handed_over(fingerprint, now);
    }

    /// The object shows the state with this fingerprint, or nothing of use, and no write is under
    /// way. Whether that is not what was handed over last.
    pub fn shows(&mut self, fingerprint: Option<u64>) -> bool {
        self.gate.shows(fingerprint)
    }

    fn health(&self) -> Option<Health> {
        self.published.as_ref().map(|published| published.health)
    }

    fn ready(&self) -> Option<Status> {
        self.published.as_ref().map(|published| published.ready.status)
    }
}

#[cfg(test)]
mod tests;
