//! Every sequence of probes, Leases, rulings of the guard, edits, pauses and restarts, of any length: the states of a
//! real [`Member`] form a closed set.

mod action;
mod claims;
mod fingerprint;
mod world;

use std::time::Duration;

use state_explorer::{Model as _, explore};

use self::action::{Action, Found, Lease};
use self::world::{Bounds, World};
use super::{S, policy};
use crate::published::Change;
use crate::{Cadence, Damping, Health, Policy, Thresholds};

/// More than there are.
const STATES: usize = 3_000_000;
/// To follow a state to its end takes as long as to visit ten.
const SETTLE_EVERY: u64 = 8;

const fn thresholds(failure: u32, success: u32) -> Thresholds {
    Thresholds { failure, success }
}

/// A policy with short times, all of whole seconds.
fn quick(period: u64, confirm: u64, thresholds: Thresholds) -> Policy {
    Policy {
        cadence: Cadence { period: S(period), timeout: S(1), confirm: S(confirm), jitter: 0.1 },
        thresholds,
        stale_after: S(3 + period.max(4)),
        ..policy(0, 0)
    }
}

impl World {
    /// Lets each probe find the same from now on, at the latest time that is possible. `health` must be published
    /// within the limit, and the next two probes must not change it.
    fn check_run(&self, found: Found, lease: Lease, health: Health) -> Result<(), String> {
        let mut world = self.clone();
        world.draw = 0.999;
        if world.paused {
            world.step(Action::Resume)?;
        }
        let (mut from, mut same) = (world.now, 0);
        match world.limit() {
            Some(limit) if limit >= world.now => {
                world.now = limit;
                let other = if found == Found::Ok { Found::Failing } else { Found::Ok };
                world.step(Action::End(other, Lease::Absent))?;
            }
            Some(_) => {
                world.now = world.member.stuck_at(world.policy());
                world.step(Action::Cancel)?;
                from = world.now;
            }
            None => {}
        }
        let limit = from + world.limit_of(found);
        let mut is_reached = false;
        while same < 2 {
            world.probe(found, lease)?;
            match world.health() == Some(health) {
                true if is_reached && world.change == Change::Nothing => same += 1,
                true if !is_reached && world.now <= limit => is_reached = true,
                false if !is_reached && world.now <= limit => {}
                _ => {
                    let (is, after) = (world.health(), world.now - from);
                    let change = world.change;
                    return Err(format!(
                        "{found:?} for {after:?} makes it {is:?}, and the last probe {change:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The next probe, which takes as long as it may.
    fn probe(&mut self, found: Found, lease: Lease) -> Result<(), String> {
        self.now = self.member.due().map_or(self.now, |due| due.max(self.now));
        while self.forced() == Some(Action::Sweep) {
            self.step(Action::Sweep)?;
        }
        self.step(Action::Begin)?;
        self.now = self.limit().unwrap_or(self.now);
        self.step(Action::End(found, lease))?;
        if self.member.waits() { self.step(Action::Release) } else { Ok(()) }
    }

    /// C8 (b) for a cluster that is well, and likewise for one that does not answer.
    fn limit_of(&self, found: Found) -> Duration {
        let Policy { cadence, thresholds, damping, .. } = self.policy();
        let is_damped = self.member.is_damped();
        let successes = thresholds.success.max(if is_damped { damping.min_success } else { 1 });
        let (first, more, length) = match found {
            Found::Ok => (cadence.period, cadence.confirm, successes),
            // The cluster that a check or an object says is not ready is not confirmed sooner.
            _ => (cadence.period, cadence.period, thresholds.failure),
        };
        (first + more * (length - 1)).mul_f64(1.0 + cadence.jitter) + cadence.timeout
    }

    pub(super) fn check_settled(&self) -> Result<(), String> {
        self.check_run(Found::Ok, Lease::Absent, Health::Ready)?;
        self.check_run(Found::Silent, Lease::Absent, Health::Unreachable)
    }
}

fn bounds(results: &'static [Found], policies: &[Policy; 2]) -> Bounds {
    let leases = &[Lease::Absent];
    Bounds { results, leases, events: &[], guarded: false, policies: *policies }
}

fn explored(claims: &str, what: &str, bounds: &Bounds) {
    let explored = explore(World::new(bounds), STATES, SETTLE_EVERY);
    explored.report(claims, &format!("{what}, any number of times"));
    assert!(explored.is_complete && explored.settled > 100, "{explored:?}");
    let events = bounds.events.iter().map(|event| event.kind());
    let results = bounds.results.iter().map(|found| Action::End(*found, Lease::Absent).kind());
    for kind in events.chain(results).chain(["wait", "begin", "cancel", "sweep"]) {
        assert!(explored.happened.contains_key(kind), "{kind} never happened");
    }
}

const ALL: &[Found] =
    &[Found::Ok, Found::Failing, Found::Silent, Found::Malformed, Found::Void, Found::Check];

/// `rule:a-restart-changes-nothing`, `rule:a-pause-knows-nothing`, `rule:what-we-could-not-ask-changes-nothing`
#[test]
fn only_a_run_of_failures_makes_a_member_offline_and_only_a_run_of_successes_ready() {
    use Action::{Discard, Pause, Restart, Resume, Retarget, Trigger, Write};
    let events = &[Trigger, Discard, Retarget, Pause, Resume, Write, Restart];
    let policies = [quick(5, 4, thresholds(3, 2)); 2];
    explored("C8, C10", "each result and event", &Bounds { events, ..bounds(ALL, &policies) });
}

#[test]
fn an_edit_of_thresholds_and_periods_publishes_nothing() {
    use Action::{Edit, Restart, Trigger, Write};
    let results = &[Found::Ok, Found::Failing, Found::Silent, Found::Void];
    let policies = [quick(4, 2, thresholds(3, 1)), quick(2, 2, thresholds(2, 2))];
    let events = &[Edit, Trigger, Write, Restart];
    explored("C8, C10", "edits of the policy", &Bounds { events, ..bounds(results, &policies) });
}

/// `rule:our-outage-is-not-theirs`
#[test]
fn a_member_with_a_guard_is_offline_only_when_the_guard_says_so() {
    use Action::{Discard, Forgive, Partition, Release, ReleaseOlder, Restart, Retarget, Write};
    let events = &[Release, ReleaseOlder, Forgive, Partition, Discard, Retarget, Write, Restart];
    let policies = [quick(4, 2, thresholds(2, 1)); 2];
    let bounds = Bounds { events, guarded: true, ..bounds(ALL, &policies) };
    explored("C8, C10", "rulings of the guard", &bounds);
}

/// `rule:our-outage-is-not-theirs`
#[test]
fn a_member_that_renews_its_lease_is_not_offline() {
    use Action::{Discard, Restart, Retarget, Trigger, Write};
    let events = &[Trigger, Discard, Retarget, Write, Restart];
    let leases = &[Lease::Absent, Lease::Silent, Lease::Well, Lease::Unwell];
    let policies = [quick(4, 2, thresholds(2, 2)); 2];
    explored("C8, C10", "Leases", &Bounds { leases, events, ..bounds(ALL, &policies) });
}

#[test]
fn a_member_that_flaps_needs_more_successes_and_no_more_failures() {
    let results = &[Found::Ok, Found::Failing, Found::Silent];
    let damping = Damping { transitions: 2, window: S(9), min_success: 3 };
    let policies = [Policy { damping, ..quick(3, 2, thresholds(2, 1)) }; 2];
    let events = &[Action::Trigger];
    explored("C8, C10", "damping", &Bounds { events, ..bounds(results, &policies) });
}
