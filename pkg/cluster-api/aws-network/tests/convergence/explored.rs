//! Two faults at any two writes of a creation, and of the deletion after it: the end is the same as without, and
//! nothing is made twice.

use std::time::Instant;

use aws_fixtures::{absent, present, seed};
use aws_network::{NatMode, Rest, Spec};
use cloud_double::{Nature, differences, inventory};

use crate::driver::{Fault, World};
use crate::scenes::MODES;

/// Reads show the present, or a moment in the last 30 s.
const LAGS: [u64; 2] = [0, 30];
/// Steps after the last fault, within which a creation or deletion comes to rest.
const STEPS_TO_REST: usize = 200;

/// Writes that fail, and how.
type Faults = [(usize, Fault); 2];

/// A history: a cluster is made with faults, and deleted with the same.
#[derive(Clone, Copy, Debug)]
struct History {
    mode: NatMode,
    lag: u64,
    faults: Faults,
}

/// All histories with faults at two different ones of the first `writes` writes.
fn histories(writes: usize) -> impl Iterator<Item = History> {
    let places =
        (0..writes).flat_map(move |first| (first + 1..writes).map(move |second| (first, second)));
    let kinds = || Fault::ALL.into_iter().flat_map(|one| Fault::ALL.map(|other| (one, other)));
    let faults = places.flat_map(move |(first, second)| {
        kinds().map(move |(one, other)| [(first, one), (second, other)])
    });
    let natures = || MODES.into_iter().flat_map(|mode| LAGS.map(|lag| (mode, lag)));
    faults.flat_map(move |faults| natures().map(move |(mode, lag)| History { mode, lag, faults }))
}

pub(crate) fn spec(mode: NatMode) -> Spec {
    let mut spec = seed();
    spec.nat_mode = mode;
    spec
}

/// A cluster as it is made without faults, and how many writes that took.
pub(crate) struct Reference {
    pub(crate) wanted: Vec<String>,
    pub(crate) ever: (usize, usize, usize),
    pub(crate) writes: usize,
}

pub(crate) fn ever(world: &World) -> (usize, usize, usize) {
    (world.cloud.vpcs.ever(), world.cloud.gateways.ever(), world.cloud.addresses.ever())
}

impl Reference {
    pub(crate) fn of(mode: NatMode) -> Self {
        let mut world = World::new(Nature::PROMPT, 3);
        assert_eq!(world.run(&present(&spec(mode)), &mut |_| None).1, Rest::Reached);
        let (wanted, ever) = (inventory(&world.cloud), ever(&world));
        Self { wanted, ever, writes: world.writes.len() }
    }
}

/// Plays a history; returns how many of its faults happened, and the greatest number of steps after the last one.
fn play(history: History, reference: &Reference) -> (usize, usize) {
    let History { mode, lag, faults } = history;
    let (spec, mut world) = (spec(mode), World::new(Nature { lag, ..Nature::PROMPT }, 3));
    let (mut happened, mut steps) = (0, 0);
    for goal in [present(&spec), absent(&spec)] {
        let mut fault = |sent| {
            let fault = faults.iter().find(|(at, _)| *at == sent);
            happened += usize::from(fault.is_some());
            fault.map(|(_, fault)| *fault)
        };
        let (reconciliation, rest) = world.run(&goal, &mut fault);
        assert_eq!(rest, Rest::Reached, "{history:?}: {:#?}", reconciliation.problems());
        steps = steps.max(world.steps);
        assert!(world.steps <= STEPS_TO_REST, "{history:?}: {} steps to the end", world.steps);
        assert_eq!(ever(&world), reference.ever, "{history:?}: made twice");
        if goal == present(&spec) {
            world.run_later(&goal);
            let found = differences(&inventory(&world.cloud), &reference.wanted);
            assert!(found.is_empty(), "{history:?}: {found:#?}");
            world.run_later(&goal);
            assert!(world.writes.is_empty(), "{history:?}: {:#?}", world.writes);
        }
    }
    assert!(inventory(&world.cloud).is_empty(), "{history:?}: {:#?}", inventory(&world.cloud));
    (happened, steps)
}

/// Plays every `one_in`-th history.
fn explore(one_in: usize) {
    let (begun, references) = (Instant::now(), MODES.map(|mode| (mode, Reference::of(mode))));
    let most = references.iter().map(|(_, reference)| reference.writes).max().unwrap();
    let (mut played, mut happened, mut steps) = (0, 0, 0);
    for history in histories(most + 2).step_by(one_in) {
        let (_, reference) = references.iter().find(|(mode, _)| *mode == history.mode).unwrap();
        let (faults, longest) = play(history, reference);
        (played, happened, steps) = (played + 1, happened + faults, steps.max(longest));
    }
    println!(
        "{played} histories, {happened} faults, at most {steps} steps to the end, {:?}",
        begun.elapsed()
    );
    assert!(happened > 2 * played, "{happened} faults happened in {played} histories");
    let extent = if one_in == 1 { "all".to_owned() } else { format!("one in {one_in}:") };
    let bounds = "creation, deletion: 2 faults each at any 2 writes; reads fresh or up to 30 s old";
    state_explorer::report("C9, C10", bounds, &format!("{extent} {played} histories"));
}

#[test]
fn two_faults_at_any_two_writes_change_nothing_of_the_end() {
    explore(251);
}

#[test]
#[ignore = "a nightly item"]
fn all_pairs_of_faults_at_any_two_writes_change_nothing_of_the_end() {
    explore(1);
}
