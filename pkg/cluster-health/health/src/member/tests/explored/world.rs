//! [`World`]: a member, its object, and what its probes found, counted apart from the member.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use state_explorer::Model;

use super::super::super::Member;
use super::super::wall;
use super::action::{Action, Found, Lease};
use super::fingerprint::age;
use crate::guard::{GuardState, Ruling};
use crate::published::Change;
use crate::{Arrival, Damping, Health, Moment, Policy, Published, Report};

const SECOND: Duration = Duration::from_secs(1);
/// A run is counted up to the largest threshold.
const LONGEST_RUN: u32 = 3;

/// The shortest time between the starts of two failed probes that both count.
fn spacing(policy: &Policy) -> Duration {
    policy.cadence.confirm / 2
}

/// What may happen. No number of times is limited.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) results: &'static [Found],
    pub(super) leases: &'static [Lease],
    /// What else may happen, besides what time brings.
    pub(super) events: &'static [Action],
    pub(super) guarded: bool,
    pub(super) policies: [Policy; 2],
}

/// What a member, or its object, says of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Said {
    pub(super) health: Health,
    /// A check alone makes the cluster not ready.
    by_check: bool,
}

/// One state.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is about an event of its own")]
pub(super) struct World {
    pub(super) bounds: Bounds,
    pub(super) member: Member,
    pub(super) policy: usize,
    pub(super) start: Instant,
    pub(super) now: Instant,
    /// Random number of each interval.
    pub(super) draw: f64,
    /// Begin of the probe under way.
    pub(super) began: Option<Instant>,
    pub(super) paused: bool,
    pub(super) object: Option<Said>,
    pub(super) by_check: bool,
    /// Failed probes in a row, at least [`spacing`] apart.
    pub(super) failures: u32,
    pub(super) failed_at: Option<Instant>,
    pub(super) successes: u32,
    /// The last probe was not answered.
    pub(super) silent: bool,
    pub(super) new_target: bool,
    /// The last probes were silent, and one of them was enough for the threshold.
    pub(super) crossed: bool,
    /// When Ready last changed between true and another status.
    pub(super) changed_at: Option<Instant>,
    /// How the last probe changed what is published.
    pub(super) change: Change,
}

impl World {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let now = Instant::now();
        let arrival = Arrival { guarded: bounds.guarded, ..Arrival::default() };
        Self {
            bounds: *bounds,
            member: Member::new(arrival, &bounds.policies[0], now),
            policy: 0,
            start: now,
            now,
            draw: 0.5,
            began: None,
            paused: false,
            object: None,
            by_check: false,
            failures: 0,
            failed_at: None,
            successes: 0,
            silent: false,
            new_target: false,
            crossed: false,
            changed_at: None,
            change: Change::Nothing,
        }
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.bounds.policies[self.policy]
    }

    pub(super) fn health(&self) -> Option<Health> {
        self.member.health()
    }

    fn moment(&self) -> Moment {
        let second = (self.now - self.start).as_secs();
        Moment { monotonic: self.now, wall: wall(second.try_into().unwrap()) }
    }

    /// When the probe under way reaches its time limit.
    pub(super) fn limit(&self) -> Option<Instant> {
        self.began.map(|began| began + self.policy().cadence.timeout)
    }

    /// What has to happen now.
    pub(super) fn forced(&self) -> Option<Action> {
        let is_over = |at: Instant| at <= self.now;
        if self.paused {
            return None;
        }
        if self.member.stale_at(self.policy()).is_some_and(is_over) {
            return Some(Action::Sweep);
        }
        if self.began.is_some() {
            return is_over(self.member.stuck_at(self.policy())).then_some(Action::Cancel);
        }
        self.member.due().is_some_and(is_over).then_some(Action::Begin)
    }

    fn wait(&mut self) {
        let hangs = self.limit().is_some_and(|limit| limit <= self.now);
        if !hangs {
            self.now += SECOND;
            return;
        }
        let stuck = self.member.stuck_at(self.policy());
        self.now = self.member.stale_at(self.policy()).map_or(stuck, |at| at.min(stuck));
    }

    fn end(&mut self, found: Found, lease: Lease) {
        let Some(began) = self.began.take() else { return };
        let since_start = (began - self.start).as_secs();
        let started = Moment { monotonic: began, wall: wall(since_start.try_into().unwrap()) };
        let took = self.now - began;
        let report = Report::new(found.finding(), started);
        let report = Report { took, attempts: 1, new_connection: true, ..report };
        self.count(found, began);
        self.member.hear(lease.beat());
        let policy = *self.policy();
        self.change = self.member.complete(&report, &policy, self.now, self.draw).change;
        if found == Found::Void {
            return;
        }
        self.new_target = false;
        // A member that stays not ready does so for its check until a probe or its Lease says more.
        self.by_check = match found {
            Found::Check => true,
            Found::Silent if lease == Lease::Unwell && self.crossed => false,
            Found::Ok | Found::Silent | Found::Void => {
                self.by_check && self.health() == Some(Health::NotReady)
            }
            Found::Failing | Found::Malformed => false,
        };
    }

    /// Counts what a probe found that began then.
    fn count(&mut self, found: Found, began: Instant) {
        match found {
            Found::Void => return,
            Found::Ok | Found::Check => {
                (self.failures, self.failed_at) = (0, None);
                let successes = self.successes + u32::from(found == Found::Ok);
                self.successes = if found == Found::Ok { successes.min(LONGEST_RUN) } else { 0 };
            }
            Found::Failing | Found::Silent | Found::Malformed => {
                self.successes = 0;
                let spacing = spacing(self.policy());
                if self.failed_at.is_none_or(|at| began - at >= spacing) {
                    self.failures = (self.failures + 1).min(LONGEST_RUN);
                    self.failed_at = Some(began);
                }
            }
        }
        self.silent = found == Found::Silent;
        let is_failing = match self.health() {
            None | Some(Health::Unknown) => true,
            Some(Health::NotReady) => !self.by_check,
            other => other == Some(Health::Malformed),
        };
        let is_enough = self.failures >= self.policy().thresholds.failure;
        let crosses = self.crossed || is_failing || self.new_target || is_enough;
        self.crossed = found == Found::Silent && crosses;
    }

    fn forget(&mut self) {
        (self.failures, self.failed_at, self.crossed) = (0, None, false);
    }

    fn restart(&mut self) {
        let seed = |it: Said| Published::seed(it.health, wall(0), wall(0), None);
        let published = self.object.map(seed);
        let guarded = self.bounds.guarded;
        let arrival = Arrival { published, guarded, ..Arrival::default() };
        self.member = Member::new(arrival, self.policy(), self.now);
        self.by_check = self.object.is_some_and(|it| it.by_check);
        self.forget();
        (self.successes, self.silent) = (0, false);
        (self.new_target, self.began) = (false, None);
    }

    fn rule(&mut self, action: Action) {
        let ruling = Ruling {
            before: GuardState::Suspect,
            state: GuardState::Clear,
            ratio: 0.0,
            waiting: 1,
            release: match action {
                Action::Release => Some(self.now),
                Action::ReleaseOlder => {
                    self.member.held.as_ref().map(|held| held.crossed.checked_sub(SECOND).unwrap())
                }
                _ => None,
            },
            publish_partition: action == Action::Partition,
            forgive: action == Action::Forgive,
            sample: Vec::new(),
            next_in: SECOND,
        };
        let (policy, now) = (*self.policy(), self.moment());
        let is_offline = self.health() == Some(Health::Unreachable);
        self.member.obey(&ruling, &policy, now);
        if action == Action::Forgive && self.silent && !is_offline {
            self.forget();
        }
    }

    fn happen(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::Wait => self.wait(),
            Action::Begin => {
                self.member.admit(now);
                self.member.begin(now);
                self.began = Some(now);
            }
            Action::End(found, lease) => self.end(found, lease),
            Action::Cancel => {
                self.began = None;
                self.member.restart(now);
            }
            Action::Sweep => {
                self.member.sweep(&self.policy().clone(), self.moment());
            }
            Action::Trigger => self.member.trigger(now),
            Action::Discard | Action::Retarget | Action::Pause => {
                self.began = None;
                self.crossed = false;
                self.member.discard(now);
                if action == Action::Retarget {
                    self.member.retarget(now);
                    self.forget();
                    (self.successes, self.new_target) = (0, true);
                } else if action == Action::Pause {
                    self.member.pause();
                    self.forget();
                    (self.successes, self.new_target, self.paused) = (0, false, true);
                }
            }
            Action::Resume => {
                self.paused = false;
                self.member.resume(now);
            }
            Action::Edit => {
                let before = *self.policy();
                self.policy = 1 - self.policy;
                self.member.follow(&before, &self.policy().clone(), now);
            }
            Action::Write => {
                let said = |health| Said { health, by_check: self.by_check };
                self.object = self.health().map(said);
            }
            Action::Restart => self.restart(),
            Action::Release | Action::ReleaseOlder | Action::Forgive | Action::Partition => {
                self.rule(action);
            }
        }
    }
}

impl Model for World {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let forced = self.forced();
        let mut actions = Vec::new();
        if self.began.is_some() && self.limit().is_some_and(|limit| self.now <= limit) {
            for found in self.bounds.results.iter().copied() {
                let is_silent = found == Found::Silent;
                let leases = if is_silent { self.bounds.leases } else { &[Lease::Absent] };
                actions.extend(leases.iter().map(|lease| Action::End(found, *lease)));
            }
        }
        match forced {
            Some(action) => actions.push(action),
            None if !self.paused => actions.push(Action::Wait),
            None => {}
        }
        actions.extend(self.bounds.events.iter().copied().filter(|event| match event {
            Action::Resume => self.paused,
            Action::Discard => self.began.is_some(),
            Action::Write => {
                let said = |health| Said { health, by_check: self.by_check };
                self.object != self.health().map(said)
            }
            Action::Release | Action::ReleaseOlder | Action::Partition => self.member.waits(),
            Action::Edit | Action::Forgive => true,
            _ => !self.paused,
        }));
        actions
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        let before = self.clone();
        self.happen(action);
        let is_ready = |world: &Self| world.health() == Some(Health::Ready);
        if before.health().is_some() && is_ready(&before) != is_ready(self) {
            self.changed_at = Some(self.now);
        }
        self.check(&before, action)
    }

    fn settles(&self) -> Result<(), String> {
        self.check_settled()
    }

    fn fingerprint(&self) -> u64 {
        let Self {
            bounds: _,
            member,
            policy,
            start: _,
            now,
            draw: _,
            began,
            paused,
            object,
            by_check,
            failures,
            failed_at,
            successes,
            silent,
            new_target,
            crossed,
            changed_at,
            change: _,
        } = self;
        let mut hasher = DefaultHasher::new();
        (policy, paused, object, by_check, new_target, crossed).hash(&mut hasher);
        (failures, successes, silent).hash(&mut hasher);
        let spacing = self.bounds.policies.map(|it| spacing(&it));
        age(*failed_at, *now, spacing[0].max(spacing[1])).hash(&mut hasher);
        // A probe that hangs ends by a deadline of the member alone.
        age(*began, *now, self.policy().cadence.timeout + SECOND).hash(&mut hasher);
        let Damping { window, transitions, .. } = self.policy().damping;
        let changed_at = changed_at.filter(|_| transitions > 0);
        age(changed_at, *now, window + SECOND).hash(&mut hasher);
        member.hash_into(&self.bounds.policies, *now, &mut hasher);
        hasher.finish()
    }

    fn kind(action: Action) -> &'static str {
        action.kind()
    }
}
