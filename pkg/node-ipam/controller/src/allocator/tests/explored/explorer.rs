//! Visits every state that a [`Model`] can get into, the nearest first.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Debug;

/// A state with what can happen in it.
pub(super) trait Model: Clone {
    type Action: Copy + Debug + Eq + Ord;

    /// All that can happen now.
    fn actions(&self) -> Vec<Self::Action>;

    /// Lets it happen; what is violated by it.
    fn step(&mut self, action: Self::Action) -> Result<(), String>;

    /// Whether all becomes well from here on when nothing more goes wrong.
    fn settles(&self) -> Result<(), String>;

    /// Two states with the same future have the same fingerprint.
    fn fingerprint(&self) -> u64;

    /// The kind of an action. A test asserts that actions of a kind happened.
    fn kind(action: Self::Action) -> &'static str;
}

/// What was visited.
#[derive(Debug, Default)]
pub(super) struct Explored<A> {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// Whether there was no state left to visit.
    pub(super) is_complete: bool,
    /// Of how many states the end was looked at.
    pub(super) settled: usize,
    /// How often actions of each kind happened.
    pub(super) happened: BTreeMap<&'static str, usize>,
    /// What was violated first, with the shortest way to it.
    pub(super) violation: Option<(String, Vec<A>)>,
}

/// Visits at most so many states, and looks at the end of one in `settle_every`.
pub(super) fn explore<M: Model>(start: M, limit: usize, settle_every: u64) -> Explored<M::Action> {
    let mut explored = Explored { states: 1, ..empty() };
    let mut seen = HashSet::from([start.fingerprint()]);
    // How each state was reached: from which one, and by what.
    let mut ways: Vec<(usize, Option<M::Action>)> = vec![(0, None)];
    let mut ahead = VecDeque::from([(0, start)]);
    while let Some((place, state)) = ahead.pop_front() {
        if explored.states >= limit {
            return explored;
        }
        for action in state.actions() {
            explored.steps += 1;
            *explored.happened.entry(M::kind(action)).or_default() += 1;
            let mut next = state.clone();
            let mut result = next.step(action);
            let fingerprint = next.fingerprint();
            let is_new = seen.insert(fingerprint);
            if is_new && result.is_ok() && fingerprint % settle_every == 0 {
                explored.settled += 1;
                result = next.settles();
            }
            if let Err(violated) = result {
                explored.violation = Some((violated, way(&ways, place, action)));
                return explored;
            }
            if is_new {
                explored.states += 1;
                ways.push((place, Some(action)));
                ahead.push_back((ways.len() - 1, next));
            }
        }
    }
    explored.is_complete = true;
    explored
}

/// The actions that lead to a state, and the one after it.
fn way<A: Copy>(ways: &[(usize, Option<A>)], place: usize, last: A) -> Vec<A> {
    let steps = std::iter::successors(Some(ways[place]), |(before, _)| Some(ways[*before]));
    let mut way: Vec<A> = steps.map_while(|(_, action)| action).collect();
    way.reverse();
    way.push(last);
    way
}

fn empty<A>() -> Explored<A> {
    Explored {
        states: 0,
        steps: 0,
        is_complete: false,
        settled: 0,
        happened: BTreeMap::new(),
        violation: None,
    }
}
