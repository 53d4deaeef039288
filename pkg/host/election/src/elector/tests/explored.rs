//! Two candidates, every fate of each of their calls, and processes that stand still: the real elector, record
//! and fence on a Lease in memory.

mod process;
mod world;

use std::time::Duration;

use state_explorer::{Explored, Model, explore, hash_of};

use self::process::Pause;
use self::world::{Action, Assumed, Choice, Fate, play};

/// What may go wrong.
#[derive(Clone, Copy)]
struct Bounds {
    /// Calls of both candidates that something happens to; later ones go well.
    calls: usize,
    faults: usize,
    /// Pauses and releases.
    disturbances: usize,
    assumed: Assumed,
}

/// A schedule: what happens to which call. It is played from the start.
#[derive(Clone)]
struct Schedule {
    bounds: Bounds,
    actions: Vec<Action>,
    /// Whether each of the calls in it was a write.
    calls: Vec<bool>,
}

impl Schedule {
    fn new(bounds: Bounds) -> Self {
        let mut start = Self { bounds, actions: Vec::new(), calls: Vec::new() };
        start.calls = play(&[], bounds.calls, bounds.assumed).unwrap();
        start
    }
}

impl Model for Schedule {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let is_fault = |action: &&Action| matches!(action.choice, Choice::Call(_));
        let faults = self.actions.iter().filter(is_fault).count();
        let mut possible = Vec::new();
        for (call, is_write) in self.calls.iter().copied().enumerate() {
            if faults < self.bounds.faults {
                let fates = if is_write { &Fate::OF_WRITES[..] } else { &Fate::OF_READS };
                possible.extend(fates.iter().map(|it| Action { call, choice: Choice::Call(*it) }));
            }
            if self.actions.len() - faults < self.bounds.disturbances {
                let pauses = [Pause::Stopped, Pause::Suspended, Pause::Paused];
                let unnoticed =
                    (!self.bounds.assumed.clocks_go_on).then_some(Pause::PausedUnnoticed);
                let pauses = pauses.into_iter().chain(unnoticed).map(Choice::Pause);
                let choices = pauses.chain([Choice::Release]);
                possible.extend(choices.map(|choice| Action { call, choice }));
            }
        }
        let last = self.actions.last();
        possible.retain(|action| last.is_none_or(|last| last.is_before(action)));
        possible
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        self.actions.push(action);
        self.calls = play(&self.actions, self.bounds.calls, self.bounds.assumed)?;
        Ok(())
    }

    fn fingerprint(&self) -> u64 {
        hash_of(&self.actions)
    }

    fn kind(action: Action) -> &'static str {
        action.choice.kind()
    }
}

const ALL: Assumed =
    Assumed { travel: Duration::from_secs(1), clocks_go_on: true, looks_again: true };

fn explored(bounds: Bounds) -> Explored<Action> {
    explore(Schedule::new(bounds), 20_000_000, u64::MAX)
}

fn described(bounds: Bounds) -> String {
    let Bounds { calls, faults, disturbances, .. } = bounds;
    format!("candidate: 2, call: {calls}, fault: {faults}, pause or release: {disturbances}")
}

const SMALL: Bounds = Bounds { calls: 8, faults: 2, disturbances: 1, assumed: ALL };

fn report(bounds: Bounds) {
    let explored = explored(bounds);
    explored.report("C5", &described(bounds));
    assert!(explored.is_complete);
    let kinds = ["refused", "answer lost", "lost", "late", "too late"];
    let disturbances = ["stopped", "suspended", "paused", "released"];
    let disturbances = disturbances.iter().filter(|_| bounds.disturbances > 0);
    for kind in kinds.iter().chain(disturbances) {
        assert!(explored.happened.contains_key(kind), "{kind} never happened");
    }
}

/// `rule:lease-rights-end-before-the-lease`, `rule:fence-closes-before-the-lease-ends`,
/// `rule:lease-time-counts-suspend`, `rule:lease-expires-by-own-clock`
#[test]
fn two_fences_are_never_open_and_no_write_of_a_term_comes_after_the_next_has_begun() {
    report(SMALL);
}

#[test]
#[ignore = "a million schedules"]
fn eight_calls_with_every_combination_of_fates_open_no_two_fences() {
    report(Bounds { faults: 8, disturbances: 0, ..SMALL });
    report(Bounds { faults: 3, disturbances: 2, ..SMALL });
}

fn violated_without(name: &str, assumed: Assumed) {
    let bounds = Bounds { assumed, ..SMALL };
    let explored = explored(bounds);
    let without = format!("{}; without {name}", described(bounds));
    let violated = explored.report_violation("C5", &without);
    assert!(violated.contains("may be applied") || violated.contains("both open"), "{violated}");
}

#[test]
fn a_request_that_travels_longer_than_a_second_is_applied_in_the_next_term() {
    violated_without(
        "A1: a request arrives within a second or is reset",
        Assumed { travel: Duration::from_secs(3), ..ALL },
    );
}

#[test]
fn a_machine_whose_clocks_all_stand_still_opens_a_second_fence() {
    violated_without(
        "A2: the boot clock or the wall clock goes on",
        Assumed { clocks_go_on: false, ..ALL },
    );
}

#[test]
fn a_process_that_stops_after_its_last_look_at_the_fence_writes_in_the_next_term() {
    violated_without(
        "A3: no stop between the last look at the fence and the kernel's taking the bytes",
        Assumed { looks_again: false, ..ALL },
    );
}
