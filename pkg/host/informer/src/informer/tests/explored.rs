//! Every combination of few breaches of the watch contract and ends of watches, on the real informer.

mod world;

use state_explorer::{Model, explore, hash_of};
use tokio::runtime::{Builder, Runtime};

use self::world::{Action, Breach, Choice, End, LISTED, NEWEST, play};

/// What deviates from a run without faults. It is played from the start.
#[derive(Clone)]
struct Schedule {
    breaches: usize,
    ends: usize,
    /// Of both kinds.
    all: usize,
    actions: Vec<Action>,
}

thread_local! {
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
}

const BREACHES: [Breach; 4] =
    [Breach::Skipped, Breach::Doubled, Breach::Reordered, Breach::MarkAhead];
const ENDS: [End; 3] = [End::Closed, End::Broken, End::Expired];

impl Model for Schedule {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let is_breach = |it: &&Action| matches!(it.choice, Choice::Breach(_));
        let breaches = self.actions.iter().filter(is_breach).count();
        let ends = self.actions.len() - breaches;
        let mut possible = Vec::new();
        if self.actions.len() >= self.all {
            return possible;
        }
        for version in LISTED + 1..=NEWEST {
            // The last event has no next one.
            let is_possible = |it: &&Breach| **it != Breach::Reordered || version < NEWEST;
            let kinds = BREACHES.iter().filter(is_possible).filter(|_| breaches < self.breaches);
            possible.extend(kinds.map(|it| Action { version, choice: Choice::Breach(*it) }));
            let kinds = ENDS.iter().flat_map(|end| [(end, 0), (end, 1)]);
            let kinds = kinds.filter(|_| ends < self.ends);
            possible
                .extend(kinds.map(|(end, to)| Action { version, choice: Choice::End(*end, to) }));
        }
        let kind = |it: &Action| (it.version, matches!(it.choice, Choice::End(..)));
        let last = self.actions.last();
        possible.retain(|action| last.is_none_or(|last| kind(last) < kind(action)));
        possible
    }

    fn step(&mut self, action: Action) -> Result<(), String> {
        self.actions.push(action);
        RUNTIME.with(|runtime| runtime.block_on(play(&self.actions)))
    }

    fn fingerprint(&self) -> u64 {
        hash_of(&self.actions)
    }

    fn kind(action: Action) -> &'static str {
        match action.choice {
            Choice::Breach(Breach::Skipped) => "skipped",
            Choice::Breach(Breach::Doubled) => "doubled",
            Choice::Breach(Breach::Reordered) => "reordered",
            Choice::Breach(Breach::MarkAhead) => "mark ahead",
            Choice::End(End::Closed, _) => "closed",
            Choice::End(End::Broken, _) => "broken",
            Choice::End(End::Expired, _) => "expired",
        }
    }
}

fn explored(breaches: usize, ends: usize, all: usize) {
    let start = Schedule { breaches, ends, all, actions: Vec::new() };
    let explored = explore(start, 1_000_000, u64::MAX);
    let bounds = format!("version: 6, breach of the watch: {breaches}, end: {ends}, both: {all}");
    explored.report("C7", &bounds);
    assert!(explored.is_complete);
    assert_eq!(explored.happened.len(), 7, "{explored:?}");
}

/// `rule:history-that-goes-back`, `rule:consistent-lists-only`
#[test]
fn a_watch_that_breaks_its_contract_tells_nothing_wrong_and_the_cache_is_right_again_in_time() {
    explored(2, 1, 2);
}

#[test]
#[ignore = "ten thousand histories"]
fn three_breaches_and_ends_of_a_watch_tell_nothing_wrong() {
    explored(3, 1, 3);
}
