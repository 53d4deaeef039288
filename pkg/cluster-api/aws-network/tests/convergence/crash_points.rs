//! Every write of a creation and a deletion, with each fault: the end is the same as without, and
//! nothing is made twice.

use std::collections::BTreeMap;

use aws_fixtures::{absent, present, seed};
use aws_network::{Goal, Memory, NatMode, Rest, Spec};
use cloud_double::{Nature, differences, inventory};

use crate::driver::{Fault, World};
use crate::scenes::{MODES, SCENES, ever, world};

/// A world in which the cluster is.
fn made(spec: &Spec) -> World {
    let mut world = world();
    let (_, rest) = world.run(&present(spec), &mut |_| None);
    assert_eq!(rest, Rest::Reached);
    world
}

/// Runs with one fault, and tells which call was hit.
fn run_with(world: &mut World, goal: &Goal, point: usize, fault: Fault) -> String {
    world.writes.clear();
    let (reconciliation, rest) = world.run(goal, &mut |sent| (sent == point).then_some(fault));
    assert_eq!(rest, Rest::Reached, "write {point}, {fault:?}: {:#?}", reconciliation.problems());
    let hit = world.writes.get(point).map(|planned| format!("{:?}", planned.action));
    hit.unwrap_or_default().split([' ', '{']).next().unwrap().to_owned()
}

fn is_empty(world: &World) -> bool {
    inventory(&world.cloud).is_empty()
}

/// The points that went well, by fault: a line for each cluster, NAT policy, and creation or deletion.
#[derive(Default)]
struct Table(BTreeMap<String, usize>);

impl Table {
    fn note(&mut self, fault: Fault) {
        *self.0.entry(format!("{fault:?}")).or_default() += 1;
    }

    /// Prints the line. The number of its points.
    fn print(&self, goal: &str, scene: &str, mode: NatMode) -> usize {
        let faults: Vec<_> = Fault::ALL
            .map(|fault| format!("{fault:?}"))
            .map(|fault| format!("{fault} {}", self.0.get(&fault).copied().unwrap_or_default()))
            .into();
        println!("{goal} {scene:18} {mode:7?}: {}: all right", faults.join(", "));
        self.0.values().sum()
    }
}

/// Creates a cluster with a fault at one write, and deletes it.
fn create_with(spec: &Spec, reference: &World, point: usize, fault: Fault) {
    let mut world = world();
    let call = run_with(&mut world, &present(spec), point, fault);
    let what = format!("{:?}, write {point} {call}, {fault:?}", spec.nat_mode);
    if fault == Fault::AnswerLost {
        assert_eq!(
            world.cloud.now,
            self::world().cloud.now,
            "{what}: what was done is seen at once"
        );
    }
    if spec.load_balancer.as_ref() != seed().load_balancer.as_ref()
        || spec.secondary_load_balancer.is_some()
    {
        // Attributes of target groups are repaired by the next deep look.
        world.cloud.advance(3600);
        world.run_later(&present(spec));
    }
    let found = differences(&inventory(&world.cloud), &inventory(&reference.cloud));
    assert_eq!(found, Vec::<String>::new(), "{what}");
    assert_eq!(ever(&world), ever(reference), "{what}: made twice");
    world.run_later(&present(spec));
    assert!(world.writes.is_empty(), "{what}: {:#?}", world.writes);
    world.run_later(&absent(spec));
    assert!(is_empty(&world), "{what}: {:#?}", inventory(&world.cloud));
}

/// Tries each write of a create with each fault, under one in so many NAT policies, which take turns.
fn explore_creates(one_in: usize) {
    let (mut points, modes) = (0, || MODES.into_iter().enumerate());
    for (scene, (nth, mode)) in SCENES.iter().flat_map(|scene| modes().map(move |it| (scene, it))) {
        let (spec, mut table) = (scene.spec(mode), Table::default());
        let reference = made(&spec);
        for point in 0..reference.writes.len() {
            for (kind, fault) in Fault::ALL.into_iter().enumerate() {
                if (nth + point + kind).is_multiple_of(one_in) {
                    create_with(&spec, &reference, point, fault);
                    table.note(fault);
                }
            }
        }
        points += table.print("create", scene.0, mode);
    }
    println!("{points} points of a create, all right");
    assert!(points * one_in >= SCENES.len() * 3 * 8 * 30, "only {points} points were tried");
}

#[test]
fn a_fault_at_any_write_of_a_create_changes_nothing_of_the_end() {
    explore_creates(MODES.len());
}

#[test]
#[ignore = "a nightly item"]
fn a_fault_at_any_write_of_a_create_under_each_nat_policy_changes_nothing_of_the_end() {
    explore_creates(1);
}

#[test]
fn a_fault_at_any_write_of_a_delete_leaves_nothing() {
    let mut points = 0;
    for (scene, mode) in SCENES.iter().flat_map(|scene| MODES.map(|mode| (scene, mode))) {
        let (spec, mut table) = (scene.spec(mode), Table::default());
        let full = made(&spec);
        let mut whole = full.clone();
        whole.run_later(&absent(&spec));
        for point in 0..whole.writes.len() {
            for fault in Fault::ALL {
                let mut world = full.clone();
                let call = run_with(&mut world, &absent(&spec), point, fault);
                let left = inventory(&world.cloud);
                assert!(left.is_empty(), "{}, {mode:?}, {call}, {fault:?}: {left:#?}", scene.0);
                table.note(fault);
            }
        }
        points += table.print("delete", scene.0, mode);
    }
    println!("{points} points of a delete, all right");
    assert!(points >= SCENES.len() * 3 * 8 * 25, "only {points} points were tried");
}

/// The process dies in a create, and the object is deleted before it is back.
#[test]
fn a_cluster_that_is_deleted_while_the_process_is_down_leaves_nothing() {
    let faults = [(0, Fault::CrashAfter), (0, Fault::LateAndCrash), (20, Fault::CrashAfter)];
    let (spec, reference) = (seed(), made(&seed()));
    for ((lag, fault), status_is_lost) in
        faults.into_iter().flat_map(|it| [(it, false), (it, true)])
    {
        for point in 0..reference.writes.len() {
            let mut world = World::new(Nature { lag, ..Nature::PROMPT }, point as u64);
            world.run_until(&present(&spec), point, fault);
            if status_is_lost {
                world.memory = Memory::default();
            }
            let (reconciliation, rest) = world.run(&absent(&spec), &mut |_| None);
            assert_eq!(rest, Rest::Reached, "write {point}: {:#?}", reconciliation.problems());
            assert!(
                is_empty(&world),
                "lag {lag}, write {point}, {fault:?}: {:#?}",
                inventory(&world.cloud)
            );
        }
    }
}

/// The status is lost with the process: what is ours is found by its tags alone.
#[test]
fn a_lost_status_costs_nothing_but_time() {
    let (spec, reference) = (seed(), made(&seed()));
    let wanted = inventory(&reference.cloud);
    for point in 0..reference.writes.len() {
        let mut world = self::world();
        world.run_until_crash(&present(&spec), point);
        world.memory = Memory::default();
        let (_, rest) = world.run(&present(&spec), &mut |_| None);
        assert_eq!(
            (rest, inventory(&world.cloud)),
            (Rest::Reached, wanted.clone()),
            "write {point}"
        );
        world.memory = Memory::default();
        world.run_later(&present(&spec));
        assert!(world.writes.is_empty(), "write {point}: {:#?}", world.writes);
    }
}
