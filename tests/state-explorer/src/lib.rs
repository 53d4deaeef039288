//! [`explore`] visits every state that a [`Model`] can reach, the nearest first, and judges each. What a test
//! explored it prints as one line, which `scripts/seeded-faults --write` copies into `tests/CHECKED.md`.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the summary of an exploration")]

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// A state and the actions that are possible in it.
pub trait Model: Clone {
    /// A step from one state to another.
    type Action: Copy + Debug + Eq + Ord;

    /// All actions that are possible now.
    fn actions(&self) -> Vec<Self::Action>;

    /// Takes an action.
    ///
    /// # Errors
    /// The claim that it violates.
    fn step(&mut self, action: Self::Action) -> Result<(), String>;

    /// Follows the state to its end without more faults; one that is played from the start has been followed.
    ///
    /// # Errors
    /// The claim that the end violates.
    fn settles(&self) -> Result<(), String> {
        Ok(())
    }

    /// A hash of all that the future depends on, such as [`hash_of`]. Two states with the same hash count as one.
    fn fingerprint(&self) -> u64;

    /// The kind of an action. A test asserts that actions of a kind happened.
    fn kind(action: Self::Action) -> &'static str;
}

/// Result of an exploration.
#[derive(Debug, Default)]
pub struct Explored<A> {
    /// Number of different states.
    pub states: usize,
    /// Number of actions taken.
    pub steps: usize,
    /// Whether all states within the bounds were visited.
    pub is_complete: bool,
    /// Number of states that were followed to their end.
    pub settled: usize,
    /// How often actions of each kind happened.
    pub happened: BTreeMap<&'static str, usize>,
    /// The first violation, with the shortest sequence of actions that leads to it.
    pub violation: Option<(String, Vec<A>)>,
}

/// Visits at most `limit` states, and follows one in `settle_every` to its end.
pub fn explore<M: Model>(start: M, limit: usize, settle_every: u64) -> Explored<M::Action> {
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

/// A hash, the same in each run.
pub fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<A: Debug> Explored<A> {
    /// Prints what was explored, and fails when something was violated.
    pub fn report(&self, claims: &str, bounds: &str) {
        self.print();
        if let Some((violated, way)) = &self.violation {
            panic!("violated after {} states: {violated}; shortest way: {way:?}", self.states);
        }
        let Self { states, steps, settled, .. } = self;
        let extent = if self.is_complete { "all" } else { "the nearest" };
        let ends = if *settled > 0 { format!(", {settled} ends") } else { String::new() };
        line("checked", claims, bounds, &format!("{extent} {states} states, {steps} steps{ends}"));
    }

    /// Prints what was violated, and fails when nothing was: the bounds lack an assumption that the
    /// claims need.
    pub fn report_violation(&self, claims: &str, bounds: &str) -> &str {
        self.print();
        let Some((violated, _)) = &self.violation else {
            panic!("nothing is violated in {} states: {bounds}", self.states);
        };
        line("refuted", claims, bounds, &format!("after {} states: {violated}", self.states));
        violated
    }

    fn print(&self) {
        println!("{self:?}");
    }
}

/// Prints what a test checked that visits other things than states.
pub fn report(claims: &str, bounds: &str, result: &str) {
    line("checked", claims, bounds, result);
}

/// One line of the report, with the name of the test.
fn line(kind: &str, claims: &str, bounds: &str, result: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().rsplit("::").next().unwrap_or_default();
    println!("{kind}: {claims} | {test} | {bounds} | {result}");
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
