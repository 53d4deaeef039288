//! Every order of events, PATCHes, reads, faults and crashes within small bounds, on the real allocator.

mod action;
mod process;
mod source;
mod store;
mod world;

use std::collections::BTreeMap;

use action::Action;
use process::Process;
use source::Source;
use state_explorer::{Explored, Model as _, explore};
use world::{Assumption, Bounds, Budget, World};

/// At a push.
const STATES: usize = 20_000;
/// To follow a state to its end takes as long as to visit fifty.
const SETTLE_EVERY: u64 = 16;

const NOTHING: Budget =
    Budget { crashes: 0, faults: 0, deletions: 0, foreign: 0, deposed: 0, restores: 0, drains: 0 };

/// Two blocks.
const TWO: Source = Source::Flags(&[("10.0.0.0/29", 30)]);
/// One block.
const ONE: Source = Source::Flags(&[("10.0.0.0/30", 30)]);
/// Two blocks of IPv4, and one of IPv6.
const FAMILIES: Source = Source::Flags(&[("10.0.0.0/29", 30), ("fd00::/64", 64)]);
/// A block of each.
const CLUSTER_CIDRS: Source = Source::ClusterCidrs(&["10.0.0.0/28", "10.0.0.16/28"]);

fn bounds(nodes: usize, source: Source) -> Bounds {
    Bounds { nodes, source, lag: 2, without: None }
}

impl World {
    /// What becomes of this state without more faults, when each key is worked on after each deadline.
    fn settled(&self) -> Result<Self, String> {
        let mut world = Self { left: NOTHING, ..self.clone() };
        let (mut worked, mut last) = ([false; 3], None);
        for _ in 0..200 {
            let actions = world.actions();
            let due = (0..3).find(|name| !worked[*name] && actions.contains(&Action::Work(*name)));
            if let Some(fair) = actions.iter().find(|it| it.is_fair()) {
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
        let next = Process::start(bounds.source, store, *now);
        if kept(process) != kept(&next) {
            return Err(format!("{:?} are claimed, {:?} used", process.claims(), next.claims()));
        }
        let waits = nodes().find(|it| it.block.is_none() && !it.deleting);
        match waits {
            Some(node) if process.has_free() => {
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
    let Budget { crashes, faults, deletions, foreign, deposed, restores, drains } = left;
    let limits = [
        (bounds.nodes, "Node"),
        (bounds.source.blocks().len(), "block"),
        (bounds.source.families(), "family"),
        (bounds.source.cluster_cidrs(), "ClusterCIDR"),
        (bounds.lag, "late event"),
        (faults.into(), "fault"),
        (crashes.into(), "crash"),
        (deletions.into(), "deletion"),
        (foreign.into(), "foreign write"),
        (deposed.into(), "stopped leader"),
        (restores.into(), "restore of etcd"),
        (drains.into(), "drain"),
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

/// `rule:unknown-outcome-ends`, `rule:claim-outlives-refusal`
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

/// `rule:block-has-one-holder`, `rule:no-block-is-lost`
#[test]
fn a_node_gets_a_block_of_each_family_or_none() {
    let left = Budget { faults: 1, deletions: 1, ..NOTHING };
    let bounds = Bounds { lag: 1, ..bounds(2, FAMILIES) };
    let explored = explored("C1, C2, C4", bounds, left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["delete", "remove"]);
}

/// `rule:block-has-one-holder`, `rule:no-block-is-lost`
#[test]
fn two_cluster_cidrs_give_no_block_twice_and_lose_none() {
    let left = Budget { faults: 1, crashes: 1, ..NOTHING };
    let explored = explored("C1, C2, C4, C6", bounds(2, CLUSTER_CIDRS), left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["crash", "start"]);
}

/// `rule:cluster-cidr-outlives-its-claims`
#[test]
fn a_cluster_cidr_that_drains_at_any_moment_gives_out_nothing_and_loses_nothing() {
    let left = Budget { faults: 1, drains: 1, ..NOTHING };
    let bounds = Bounds { lag: 1, ..bounds(2, CLUSTER_CIDRS) };
    let explored = explored("C1, C2, C4", bounds, left);
    assert_happened(&explored, &FAULTS);
    assert_happened(&explored, &["drain"]);
}

#[test]
#[ignore = "a million states"]
fn three_nodes_share_blocks_of_two_families_and_of_two_cluster_cidrs() {
    let left = Budget { faults: 1, crashes: 1, deletions: 1, ..NOTHING };
    for source in [FAMILIES, CLUSTER_CIDRS] {
        let drains = u8::from(!source.is_flags());
        let left = Budget { drains, ..left };
        let explored = explore(World::new(bounds(3, source), left), 1_000_000, SETTLE_EVERY);
        explored.report("C1, C2, C3, C4", &described(bounds(3, source), left));
    }
}

#[test]
#[ignore = "a million states"]
fn three_nodes_share_two_blocks_under_all_faults() {
    let left = Budget { faults: 1, crashes: 1, deletions: 1, ..NOTHING };
    let explored = explore(World::new(bounds(3, TWO), left), 1_000_000, SETTLE_EVERY);
    explored.report("C1, C2, C3, C4", &described(bounds(3, TWO), left));
}

/// `rule:list-before-allocate`
#[test]
fn an_etcd_that_lost_its_last_change_gives_no_block_twice() {
    let left = Budget { restores: 1, deletions: 1, ..NOTHING };
    let explored = explored("C1, C2", Bounds { lag: 1, ..bounds(2, TWO) }, left);
    for kind in ["restore", "list again", "delete", "remove"] {
        assert!(explored.happened.contains_key(kind), "{kind} never happened");
    }
}

/// `rule:block-has-one-holder`
#[test]
fn a_leader_that_stops_behind_its_fence_gives_no_block_twice() {
    let left = Budget { deposed: 1, faults: 1, ..NOTHING };
    let explored = explored("C1, C2, C6", bounds(2, TWO), left);
    assert_happened(&explored, &["depose", "start"]);
    assert_happened(&explored, &FAULTS);
}

/// What the exploration would not find proves nothing.
fn violated_without(claims: &str, assumption: &str, bounds: Bounds, left: Budget) -> String {
    // What is claimed is looked at after each step only, so a block that is given twice is found as such.
    let explored = explore(World::new(bounds, left), 5 * STATES, u64::MAX);
    let without = format!("{}; without {assumption}", described(bounds, left));
    explored.report_violation(claims, &without).to_owned()
}

/// Without the fence of a term (`rule:lease-rights-end-before-the-lease`) a late PATCH doubles a block.
#[test]
fn without_the_fence_the_exploration_finds_a_block_that_is_given_twice() {
    let left = Budget { faults: 1, crashes: 1, ..NOTHING };
    let bounds = Bounds { without: Some(Assumption::Fence), ..bounds(2, TWO) };
    let violated = violated_without("C1, C5", "the fence", bounds, left);
    assert!(violated.contains("hold"), "{violated}");
}

#[test]
fn without_a_deadline_of_the_server_a_patch_that_can_be_written_counts_as_unwritten() {
    let bounds = Bounds { without: Some(Assumption::Deadline), ..bounds(1, ONE) };
    let left = Budget { faults: 1, deletions: 1, ..NOTHING };
    let violated = violated_without("C3", "the deadline of the server", bounds, left);
    assert!(violated.contains("counts as unwritten"), "{violated}");
}

#[test]
fn without_another_look_at_the_fence_a_former_leader_gives_a_block_twice() {
    let bounds = Bounds { without: Some(Assumption::SecondLook), ..bounds(2, TWO) };
    let left = Budget { deposed: 1, ..NOTHING };
    let violated = violated_without("C1, C5", "A3: another look at the fence", bounds, left);
    assert!(violated.contains("hold"), "{violated}");
}

/// A restored etcd whose history has overtaken the known version shows nothing of that in a watch.
#[test]
fn without_a_list_after_a_lost_connection_a_block_of_a_node_that_came_back_is_given_twice() {
    let bounds = Bounds { without: Some(Assumption::ListInDoubt), lag: 1, ..bounds(2, ONE) };
    let left = Budget { restores: 1, deletions: 1, ..NOTHING };
    let violated = violated_without("C1, C7", "a list while the history is in doubt", bounds, left);
    assert!(violated.contains("hold"), "{violated}");
}
