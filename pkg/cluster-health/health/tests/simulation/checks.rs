//! Invariants after every step, defined independently of the code that keeps them.

use std::time::Duration;

use health::{Cadence, Change, Damping, Finding, Status};

use crate::management::Mode;
use crate::replica::{Held, Replica};
use crate::world::{PATROL, REPLICAS, World};

/// The time of steps in which the replicas look around.
const SLACK: u64 = 2 * PATROL;

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}

/// State of a cluster without any published state.
const FIRST_GRACE: u64 = 60_000;

/// The longest time between two probes, without jitter.
fn round(cadence: Cadence) -> Duration {
    cadence.period.max(cadence.timeout)
}

fn stale_after(cadence: Cadence) -> u64 {
    millis(4 * round(cadence)).max(40_000)
}

fn stuck_after(cadence: Cadence) -> u64 {
    millis(2 * round(cadence)) + 5_000
}

impl Held {
    /// Notes that it is published as ready, or as ready no more.
    fn cross(&mut self, from: Option<Status>, to: Status, now: u64) {
        if from.is_some_and(|from| (from == Status::True) != (to == Status::True)) {
            self.crossings.push(now);
        }
    }

    /// Whether so many changes came within one window, and none stayed away for as long since.
    fn is_damped(&self, damping: &Damping, now: u64) -> bool {
        let (window, many) = (millis(damping.window), damping.transitions as usize);
        let next = |at: usize| self.crossings.get(at + 1).copied().unwrap_or(now);
        let goes_on = |at: usize| next(at) <= self.crossings[at] + window;
        let flapped = |at: usize| {
            let begun = (at + 1).checked_sub(many).map(|first| self.crossings[first]);
            begun.is_some_and(|begun| self.crossings[at] <= begun + window)
        };
        let last = (0..self.crossings.len()).rev().take_while(|at| goes_on(*at));
        let mut last = last.filter(|at| flapped(*at));
        last.next().is_some()
    }
}

impl World {
    /// A probe of `uid` starts at `replica`.
    pub(crate) fn check_start(&self, replica: usize, uid: u64) {
        let held = &self.replicas[replica].held[&uid];
        assert!(held.probe.is_none(), "two probes at a time: {uid}");
        assert!(self.truths.contains_key(&uid), "{uid} is gone");
        // A paused replica sends no probe, and its earlier probes have hit their time limit.
        let moving = |other: &usize| *other != replica && !self.stands_still(*other);
        for other in (0..REPLICAS).filter(moving) {
            let probing = self.replicas[other].held.get(&uid).is_some_and(|it| it.probe.is_some());
            assert!(!probing, "rule:one-owner-at-a-time: {replica} and {other} probe {uid}");
        }
        let Some(last) = held.last_start else { return };
        let cadence = self.policy(uid).cadence;
        let longest = cadence.period.mul_f64(1.0 + cadence.jitter).max(cadence.timeout);
        let gap = self.now - last;
        // A task that hung makes up for it; the watchdog starts over.
        let limit = millis(longest) + 1000;
        let hung = held.hangs_until > 0;
        assert!(hung || gap <= limit, "rule:probes-start-in-time: {uid} after {gap} ms");
    }

    /// The first result of another target is published, whatever it is.
    pub(crate) fn check_target(&self, replica: usize, uid: u64, finding: Finding) {
        let held = &self.replicas[replica].held[&uid];
        let published = held.member.published().map(|published| published.health);
        assert!(
            !held.retargeted || published == Some(finding.verdict().into()),
            "{uid} is {published:?} after {finding}"
        );
    }

    /// A probe changed what is published: it took as many results in a row as it takes.
    pub(crate) fn check_effect(&mut self, replica: usize, uid: u64, change: Change) {
        let (thresholds, damping) = (self.policy(uid).thresholds, self.policy(uid).damping);
        let now = self.now;
        let held = self.replicas[replica].held.get_mut(&uid).expect("it is held");
        let before = held.ready;
        held.ready = held.member.published().map(|published| published.ready.status);
        let retargeted = std::mem::take(&mut held.retargeted);
        let Change::Ready { from, to } = change else {
            assert!(before == held.ready, "a change of {uid} was not told");
            return;
        };
        self.changes += 1;
        assert_eq!((from, Some(to)), (before, held.ready), "a change of {uid} was told wrongly");
        let damped = held.is_damped(&damping, now);
        held.cross(from, to, now);
        if retargeted || matches!(from, None | Some(Status::Unknown)) {
            return;
        }
        let damped = if damped { damping.min_success } else { 1 };
        let (value, needed) = match to {
            Status::True => (true, thresholds.success.max(damped)),
            Status::False | Status::Unknown => (false, thresholds.failure),
        };
        let tail = held.results.iter().rev().take_while(|result| result.is_ok() == value).count();
        assert!(tail >= usize::try_from(needed).unwrap(), "{uid} became {to:?} after {tail}");
    }

    /// The sweeper published `Unknown`.
    pub(crate) fn check_sweep(&mut self, replica: usize, uid: u64, change: Change) {
        let (now, policy) = (self.now, self.policy(uid));
        let held = self.replicas[replica].held.get_mut(&uid).expect("it is held");
        let before = held.ready.replace(Status::Unknown);
        let is_known = before.is_some();
        held.cross(before, Status::Unknown, now);
        held.changed_at = now;
        let quiet = now - held.last_end.unwrap_or(held.since);
        // A cluster that was never published has the time of a first probe.
        let least = if is_known { stale_after(policy.cadence) } else { FIRST_GRACE };
        assert!(quiet >= least, "{uid} became unknown after {quiet} ms");
        assert!(matches!(change, Change::Ready { to: Status::Unknown, .. }));
    }

    /// A cluster in the hands of a replica, looked at once a second.
    pub(crate) fn check_held(&self, replica: usize, uid: u64) {
        let (held, truth) = (&self.replicas[replica].held[&uid], &self.truths[&uid]);
        let policy = self.policy(uid);
        let (cadence, ready) = (policy.cadence, held.ready);
        let quiet = self.now - held.last_end.unwrap_or(held.since).max(held.tuned_at);
        let limit = stale_after(cadence).max(FIRST_GRACE) + SLACK;
        assert!(
            quiet <= limit || ready == Some(Status::Unknown),
            "rule:unwatched-clusters-become-unknown: {uid} is {ready:?} after {quiet} ms"
        );
        let alone = self.now - held.asked_at.unwrap_or(0).max(held.calm_since);
        let stuck = alone > stuck_after(cadence) + millis(cadence.timeout) + SLACK;
        assert!(
            !stuck || held.hangs_until == u64::MAX,
            "rule:stuck-tasks-are-replaced: {uid} after {alone} ms"
        );
        self.check_written(replica, uid);
        if held.hangs_until > 0 {
            return;
        }
        let same_for = self.now - truth.since.max(held.calm_since);
        let spread = 1.0 + cadence.jitter;
        let bound = |threshold: u32| {
            let round = cadence.period.mul_f64(spread).max(cadence.timeout);
            let confirm = cadence.confirm.min(cadence.period).mul_f64(spread).max(cadence.timeout);
            millis(round + confirm * threshold.saturating_sub(1) + cadence.timeout) + SLACK
        };
        let damped = if held.member.is_damped() { policy.damping.min_success } else { 1 };
        if truth.behaviour.is_well() && same_for > bound(policy.thresholds.success.max(damped)) {
            let rule = "good news is published in time";
            assert!(ready == Some(Status::True), "{rule}: {uid} is {ready:?} after {same_for} ms");
        }
        if truth.behaviour.is_ill() && same_for > bound(policy.thresholds.failure) {
            let rule = "bad news is published in time";
            assert!(ready == Some(Status::False), "{rule}: {uid} is {ready:?} after {same_for} ms");
        }
    }

    /// With an API that works, what is published is written within the longest backoff.
    fn check_written(&self, replica: usize, uid: u64) {
        let held = &self.replicas[replica].held[&uid];
        let object = &self.management.objects[&uid];
        let since = self.management.well_since.max(object.allowed_since);
        let since = since.max(held.changed_at).max(held.since);
        let well = self.management.mode == Mode::Well && !object.refused;
        if !well || self.now < since + 45_000 {
            return;
        }
        let written = object.status.as_ref().map(|it| it.health);
        let published = held.member.published().map(|it| it.health);
        assert_eq!(written, published, "rule:newest-state-is-written: {uid}");
    }

    /// With an API that works and replicas that stay up, every cluster is in somebody's hands, also
    /// while a replica cannot read the leases (`rule:no-claim-before-a-read`).
    pub(crate) fn check_handover(&self) {
        let moving = |it: &&Replica| it.still_until <= self.now;
        let seeing = self.replicas.iter().filter(|it| it.alive && !it.blind).filter(moving);
        let calm = seeing.map(|it| it.up_since).min();
        let Some(up_since) = calm else { return };
        let changed = self.replicas.iter().map(|it| it.up_since).max().unwrap_or(0);
        let calm_since =
            self.management.well_since.max(up_since).max(changed).max(self.disturbed_at);
        // Who stood still is taken for gone, and comes back a term after that.
        let stood_still = self.replicas.iter().map(|it| it.still_until).max().unwrap_or(0);
        let due = (calm_since + 70_000).max(stood_still + 100_000);
        if self.management.mode != Mode::Well || self.now < due {
            return;
        }
        for (uid, truth) in &self.truths {
            let holds = |it: &&Replica| it.held.contains_key(uid);
            let hands = self.replicas.iter().filter(moving).filter(holds).count();
            let new = self.now < truth.since + 20_000;
            assert!(hands == 1 || new, "rule:one-owner-at-a-time: {hands} hold {uid}");
        }
    }

    /// Everything has come right after the last fault.
    pub(crate) fn check_settled(&self) {
        for (uid, truth) in &self.truths {
            let holder = self.replicas.iter().find_map(|it| it.held.get(uid));
            let published = holder.and_then(|held| held.member.published());
            let published = published.expect("everything is in somebody's hands");
            let written = self.management.objects[uid].status.as_ref();
            let health = written.map(|written| written.health);
            // The slow and the flaky change all the time.
            if truth.behaviour.is_well() || truth.behaviour.is_ill() {
                let rule = "rule:newest-state-is-written";
                assert_eq!(health, Some(published.health), "{rule}: {uid}");
            }
        }
        let (written, clusters) = (self.management.writes, u64::try_from(self.truths.len()));
        let heartbeats = clusters.unwrap() * (self.now / 300_000 + 1);
        // A write whose outcome was unknown is repeated.
        let most = heartbeats + 2 * self.changes + self.reasons + 2 * self.handovers;
        assert!(
            written <= most,
            "rule:unchanged-status-is-written-at-heartbeats-only: {written} writes, {most} allowed"
        );
    }
}
