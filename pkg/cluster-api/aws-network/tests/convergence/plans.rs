//! Restarts with an older memory, and specs and deletions that are seen in part, at each write: the end is that of
//! the last spec.

use std::time::Instant;

use aws_fixtures::{absent, present};
use aws_network::{Goal, Identity, Memory, NatMode, Rest, Spec};
use cloud_double::{Nature, differences, inventory};

use crate::driver::World;
use crate::explored::{Reference, ever, spec};
use crate::scenes::MODES;

/// What is seen of a cluster. Numbers count writes from 0; a process crashes after the last one.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// The creation goes on with the memory that was stored at an earlier write.
    OldMemory { crash: usize, stored: usize },
    /// The deletion begins with the memory that was stored at an earlier write of the creation.
    OldMemoryAtDeletion { crash: usize, stored: usize },
    /// Another spec is followed for so many writes, and then the first again.
    ThereAndBack { crash: usize, other: usize, seen: usize },
    /// A deletion begins in the creation, and crashes itself.
    DeletionInCreation { crash: usize, again: usize },
    /// A deletion that was begun is not seen for so many writes.
    DeletionUnseen { crash: usize, seen: usize },
    /// The deletion of an object that had the name before is seen, with an old memory of it.
    OldDeletion { stored: usize },
}

/// Specs that are followed for a while.
const OTHERS: [fn(&mut Spec); 5] = [
    |spec| spec.nat_mode = NatMode::Single,
    |spec| spec.nat_mode = NatMode::Regional,
    |spec| (spec.bastion, spec.load_balancer) = (None, None),
    |spec| spec.api_port = 443,
    |spec| drop(spec.additional_tags.insert("team".to_owned(), "blue".to_owned())),
];
/// Writes of a creation or deletion after which it crashes; nothing is left to do after the last one.
const WRITES: std::ops::Range<usize> = 0..56;

fn plans() -> impl Iterator<Item = Plan> {
    let pairs = || WRITES.flat_map(|crash| WRITES.map(move |other| (crash, other)));
    let earlier = || pairs().filter(|(crash, stored)| stored < crash);
    let seen = |crash| {
        (0..OTHERS.len()).flat_map(move |other| {
            [1, 2, 5].map(move |seen| Plan::ThereAndBack { crash, other, seen })
        })
    };
    earlier()
        .map(|(crash, stored)| Plan::OldMemory { crash, stored })
        .chain(earlier().map(|(crash, stored)| Plan::OldMemoryAtDeletion { crash, stored }))
        .chain(WRITES.flat_map(seen))
        .chain(pairs().map(|(crash, again)| Plan::DeletionInCreation { crash, again }))
        .chain(
            WRITES
                .flat_map(|crash| [1, 2, 5].map(move |seen| Plan::DeletionUnseen { crash, seen })),
        )
        .chain(WRITES.map(|stored| Plan::OldDeletion { stored }))
}

/// A cluster in one mode, with its memory after each write of its creation.
struct Scene {
    mode: NatMode,
    reference: Reference,
    memories: Vec<Memory>,
}

impl Scene {
    fn of(mode: NatMode) -> Self {
        let memory = |point| {
            let mut world = new_world(0);
            world.run_until_crash(&present(&spec(mode)), point);
            world.memory
        };
        Self { mode, reference: Reference::of(mode), memories: WRITES.map(memory).collect() }
    }

    fn play(&self, plan: Plan, lag: u64) {
        let what = format!("{plan:?}, {:?}, lag {lag}", self.mode);
        let spec = spec(self.mode);
        let (here, gone) = (present(&spec), absent(&spec));
        let mut world = new_world(lag);
        match plan {
            Plan::OldMemory { crash, stored } => {
                world.run_until_crash(&here, crash);
                self.restart(&mut world, stored, lag);
            }
            Plan::OldMemoryAtDeletion { crash, stored } => {
                world.run_until_crash(&here, crash);
                self.restart(&mut world, stored, lag);
                reach(&mut world, &gone, &what);
                assert_eq!(inventory(&world.cloud), [""; 0], "{what}");
                return;
            }
            Plan::ThereAndBack { crash, other, seen } => {
                let mut there = spec.clone();
                OTHERS[other](&mut there);
                world.run_until_crash(&here, crash);
                world.run_until_crash(&present(&there), seen - 1);
                let mut back = spec.clone();
                back.applied_tags = there.additional_tags.into_keys().collect();
                reach(&mut world, &present(&back), &what);
                self.check(&mut world, &present(&back), &gone, &what);
                return;
            }
            Plan::DeletionInCreation { crash, again } => {
                world.run_until_crash(&here, crash);
                world.run_until_crash(&gone, again);
                reach(&mut world, &gone, &what);
                assert_eq!(inventory(&world.cloud), [""; 0], "{what}");
                return;
            }
            Plan::DeletionUnseen { crash, seen } => {
                reach(&mut world, &here, &what);
                world.run_until_crash(&gone, crash);
                world.run_until_crash(&here, seen - 1);
                reach(&mut world, &gone, &what);
                assert_eq!(inventory(&world.cloud), [""; 0], "{what}");
                return;
            }
            Plan::OldDeletion { stored } => {
                reach(&mut world, &here, &what);
                let mut old = spec.clone();
                old.identity = Identity { owner_id: "before".to_owned(), ..spec.identity };
                let memory = std::mem::replace(&mut world.memory, self.memories[stored].clone());
                world.run(&absent(&old), &mut |_| None);
                assert_eq!(inventory(&world.cloud), self.reference.wanted, "{what}");
                world.memory = memory;
            }
        }
        reach(&mut world, &here, &what);
        assert_eq!(ever(&world), self.reference.ever, "{what}: made twice");
        self.check(&mut world, &here, &gone, &what);
    }

    /// The process starts again with a status that was stored earlier, when reads of AWS show all that was made before.
    fn restart(&self, world: &mut World, stored: usize, lag: u64) {
        world.memory = self.memories[stored].clone();
        world.cloud.advance(lag);
    }

    /// Nothing is missing, nothing is left to do, and nothing stays after a deletion.
    fn check(&self, world: &mut World, here: &Goal, gone: &Goal, what: &str) {
        world.run_later(here);
        let found = differences(&inventory(&world.cloud), &self.reference.wanted);
        assert!(found.is_empty(), "{what}: {found:#?}");
        for _ in 0..2 {
            world.run_later(here);
            assert!(world.writes.is_empty(), "{what}: {:#?}", world.writes);
        }
        reach(world, gone, what);
        assert_eq!(inventory(&world.cloud), [""; 0], "{what}");
    }
}

fn new_world(lag: u64) -> World {
    World::new(Nature { lag, ..Nature::PROMPT }, 3)
}

fn reach(world: &mut World, goal: &Goal, what: &str) {
    let (reconciliation, rest) = world.run(goal, &mut |_| None);
    assert_eq!(rest, Rest::Reached, "{what}: {:#?}", reconciliation.problems());
}

/// Plays every `one_in`-th plan.
fn explore(one_in: usize) {
    let begun = Instant::now();
    let scenes = MODES.map(Scene::of);
    assert!(scenes.iter().all(|it| WRITES.end >= it.reference.writes), "some writes have no plan");
    let all = scenes
        .iter()
        .flat_map(|scene| plans().flat_map(move |plan| [0, 30].map(move |lag| (scene, plan, lag))));
    let mut played = 0;
    for (scene, plan, lag) in all.step_by(one_in) {
        scene.play(plan, lag);
        played += 1;
    }
    println!("{played} plans in {:?}", begun.elapsed());
    let extent = if one_in == 1 { "all".to_owned() } else { format!("one in {one_in}:") };
    let bounds = "creation and deletion: restart with each older memory, spec there and back, deletion in creation, at each write; reads fresh or up to 30 s old";
    state_explorer::report("C9, C10", bounds, &format!("{extent} {played} plans"));
}

#[test]
fn an_old_memory_or_a_spec_that_is_seen_in_part_changes_nothing_of_the_end() {
    explore(53);
}

#[test]
#[ignore = "a nightly item"]
fn all_old_memories_and_specs_that_are_seen_in_part_change_nothing_of_the_end() {
    explore(1);
}
