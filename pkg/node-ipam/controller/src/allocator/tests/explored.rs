//! Every order of events, PATCHes, reads, faults and crashes within small bounds, on the real allocator.

mod process;
mod store;
mod world;

use std::collections::BTreeMap;

use process::Process;
use state_explorer::{Explored, Model as _, explore};
use world::{Action, Bounds, Budget, World};

/// At a push.
const STATES: usize = 20_000;
/// To follow a state to its end takes as long as to visit fifty.
const SETTLE_EVERY: u64 = 16;

const NOTHING: Budget = Budget { crashes: 0, faults: 0, deletions: 0, foreign: 0 };

/// Two blocks.
const TWO: &str = "10.0.0.0/29";
/// One block.
const ONE: &str = "10.0.0.0/30";

fn bounds(nodes: usize, cluster_cidr: &'static str) -> Bounds {
    Bounds { nodes, pool: (cluster_cidr, 30), lag: 2, is_fenced: true }
}

/// What nothing but time is needed for, in the order of a store without faults.
fn is_fair(action: &Action) -> bool {
    matches!(
        action,
        Action::Start
            | Action::Watch
            | Action::Apply(_)
            | Action::Answer(_)
            | Action::Read(_)
            | Action::TakeRead(_)
            | Action::Send(_)
    )
}

impl World {
    /// What becomes of this state without more faults, when each key is worked on after each deadline.
    fn settled(&self) -> Result<Self, String> {
        let mut world = Self { left: NOTHING, ..self.clone() };
        let (mut worked, mut last) = ([false; 3], None);
        for _ in 0..200 {
            let actions = world.actions();
            let due = (0..3).find(|name| !worked[*name] && actions.contains(&Action::Work(*name)));
            if let Some(fair) = actions.iter().find(|it| is_fair(it)) {
                world.step(*fair)?;
            } else if let Some(name) = due {
                worked[name] = true;
                world.step(Action::Work(name))?;
            } else if actions.contains(&Action::Wait) {
                worked = [false; 3];
                world.step(Action::Wait)?;
            } else if last.replace(world.fingerprint()) == Some(world.fingerprint()) {
                return Ok(world);
            } else {
                worked = [false; 3];
            }
        }
        Err("it does not settle".to_owned())
    }

    /// Without more faults all Nodes get blocks while there are any, and what is claimed then is what the
    /// next process claims (`rule:no-block-is-lost`).
    pub(super) fn check_settled(&self) -> Result<(), String> {
        let Self { store, process: Some(process), bounds, now, .. } = &self.settled()? else {
            return Err("no process".to_owned());
        };
        let nodes = || store.nodes.iter().flatten();
        // The object holds what may have been sent to it, until it is gone.
        let may_hold = |uid: &str| nodes().any(|it| it.deleting && *it.id.uid() == *uid);
        let kept = |process: &Process| -> BTreeMap<_, _> {
            process.claims().into_iter().filter(|(uid, _)| !may_hold(uid)).collect()
        };
        let next = Process::start(bounds.pools(), store, *now);
        if kept(process) != kept(&next) {
            return Err(format!("{:?} are claimed, {:?} used", process.claims(), next.claims()));
        }
        let waits = nodes().find(|it| it.block.is_none() && !it.deleting);
        match waits {
            Some(node) if process.allocator.ledger.pools()[0].free() > 0 => {
                Err(format!("{} has no block, and one is free", node.id))
            }
            _ => Ok(()),
        }
    }
}

/// Explores and reports. At a push the bounds are small; `EXPLORED_STATES` is the number of states for more.
fn explored(claims: &str, bounds: Bounds, left: Budget) -> Explored<Action> {
    let limit = std::env::var("EXPLORED_STATES").ok().and_then(|it| it.parse().ok());
    let explored = explore(World::new(bounds, left), limit.unwrap_or(STATES), SETTLE_EVERY);
    explored.report(claims, &described(bounds, left));
    explored
}

/// The bounds of an exploration in words.
fn described(bounds: Bounds, left: Budget) -> String {
    let Budget { crashes, faults, deletions, foreign } = left;
    let limits = [
        (bounds.nodes, "Node"),
        (bounds.pools()[0].blocks().try_into().unwrap_or_default(), "block"),
        (bounds.lag, "late event"),
        (faults.into(), "fault"),
        (crashes.into(), "crash"),
        (deletions.into(), "deletion"),
        (foreign.into(), "foreign write"),
    ];
    let present = limits.iter().filter(|(number, _)| *number > 0);
    present.map(|(number, what)| format!("{what}: {number}")).collect::<Vec<_>>().join(", ")
}

fn assert_happened(explored: &Explored<Action>, kinds: &[&str]) {
    assert!(explored.is_complete && explored.settled > 100, "{explored:?}");
    for kind in kinds {
        assert!(explored.happened.contains_key(kind), "{kind} never happened");
    }
}

const FAULTS: [&str; 6] = ["lose", "refuse", "accept", "drop", "read", "take read"];

/// `rule:block-has-one-holder`, `rule:no-block-is-lost`
#[test]
fn lost_answers_and_crashes_give_no_block_twice_and_lose_none() {
    let left = Budget { faults: 1, crashes: 1, ..NOTHING };
    let explored = explored("C1, C2, C6", bounds(2, TWO), left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["crash", "start"]);
}

/// `rule:unknown-outcome-ends`
#[test]
fn a_patch_counts_as_unwritten_only_when_it_can_no_longer_be_written() {
    let left = Budget { faults: 2, crashes: 1, deletions: 1, ..NOTHING };
    let explored = explored("C2, C3", bounds(1, ONE), left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["delete", "remove", "crash"]);
}

/// `rule:first-starved-first-served`
#[test]
fn a_block_that_is_freed_goes_to_the_node_that_waits_and_to_no_other() {
    let left = Budget { faults: 1, deletions: 1, ..NOTHING };
    let explored = explored("C2, C4", bounds(2, ONE), left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["delete", "remove"]);
}

/// `rule:second-allocator-is-told`
#[test]
fn a_block_that_another_allocator_sets_at_any_moment_costs_nobody_another_one() {
    let left = Budget { faults: 1, foreign: 1, ..NOTHING };
    let explored = explored("C1", bounds(2, TWO), left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["set by another allocator"]);
}

#[test]
#[ignore = "a million states"]
fn three_nodes_share_two_blocks_under_all_faults() {
    let left = Budget { faults: 1, crashes: 1, deletions: 1, ..NOTHING };
    let explored = explore(World::new(bounds(3, TWO), left), 1_000_000, SETTLE_EVERY);
    explored.report("C1, C2, C3, C4", &described(bounds(3, TWO), left));
}

/// What the exploration would not find proves nothing: without the fence of a term
/// (`rule:lease-rights-end-before-the-lease`) a late PATCH doubles a block.
#[test]
fn without_the_fence_the_exploration_finds_a_block_that_is_given_twice() {
    let left = Budget { faults: 1, crashes: 1, ..NOTHING };
    let bounds = Bounds { is_fenced: false, ..bounds(2, TWO) };
    let explored = explore(World::new(bounds, left), STATES, SETTLE_EVERY);
    let without = format!("{}; without the fence", described(bounds, left));
    let violated = explored.report_violation("C1, C5", &without);
    assert!(violated.contains("hold"), "{violated}");
}
