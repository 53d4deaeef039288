//! Every write of a creation and a deletion, with each fault: the end is the same as without, and
//! nothing is made twice.

use aws_fixtures::{absent, dual_stack, present, seed};
use aws_network::{Goal, Memory, NatMode, Rest, Spec};

use crate::cloud::Nature;
use crate::driver::{Fault, World};
use crate::inventory::{differences, inventory};

/// Each policy for NAT gateways, and with IPv6.
fn specs() -> [(String, Spec); 4] {
    let of = |mode: NatMode| (format!("{mode:?}"), Spec { nat_mode: mode, ..seed() });
    let ipv6 = Spec { nat_mode: NatMode::Single, ..dual_stack() };
    let [per_zone, single, none] = [NatMode::PerZone, NatMode::Single, NatMode::None].map(of);
    [per_zone, single, none, ("dual stack".to_owned(), ipv6)]
}

/// A world in which the cluster is.
fn made(spec: &Spec) -> World {
    let mut world = World::new(Nature::PROMPT, 3);
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

#[test]
fn a_fault_at_any_write_of_a_create_changes_nothing_of_the_end() {
    let mut points = 0;
    for (mode, spec) in specs() {
        let reference = made(&spec);
        let wanted = inventory(&reference.cloud);
        for point in 0..reference.writes.len() {
            for fault in Fault::ALL {
                let mut world = World::new(Nature::PROMPT, 3);
                let call = run_with(&mut world, &present(&spec), point, fault);
                assert_eq!(
                    differences(&inventory(&world.cloud), &wanted),
                    Vec::<String>::new(),
                    "{mode}, write {point} {call}, {fault:?}"
                );
                if fault == Fault::AnswerLost {
                    let waited = world.cloud.now - World::new(Nature::PROMPT, 3).cloud.now;
                    assert_eq!(waited, 0, "{mode}, {call}: what was done is seen at once");
                }
                let ever = |world: &World| {
                    let cloud = &world.cloud;
                    (
                        cloud.vpcs.ever(),
                        cloud.gateways.ever() + cloud.egress_only.ever(),
                        cloud.addresses.ever(),
                        cloud.tables.ever(),
                    )
                };
                assert_eq!(
                    ever(&world),
                    ever(&reference),
                    "{mode}, write {point} {call}, {fault:?}: made twice"
                );
                world.run_later(&present(&spec));
                assert!(world.writes.is_empty(), "{mode}, {call}, {fault:?}: {:#?}", world.writes);
                world.run_later(&absent(&spec));
                assert!(
                    is_empty(&world),
                    "{mode}, {call}, {fault:?}: {:#?}",
                    inventory(&world.cloud)
                );
                points += 1;
                println!("create {mode} write {point:2} {fault:11?} {call}: right");
            }
        }
    }
    println!("{points} points of a create, all right");
    assert!(points >= 4 * 5 * 30, "only {points} points were tried");
}

#[test]
fn a_fault_at_any_write_of_a_delete_leaves_nothing() {
    let mut points = 0;
    for (mode, spec) in specs() {
        let full = made(&spec);
        let mut whole = full.clone();
        whole.run_later(&absent(&spec));
        for point in 0..whole.writes.len() {
            for fault in Fault::ALL {
                let mut world = full.clone();
                let call = run_with(&mut world, &absent(&spec), point, fault);
                assert!(
                    is_empty(&world),
                    "{mode}, {call}, {fault:?}: {:#?}",
                    inventory(&world.cloud)
                );
                points += 1;
                println!("delete {mode} write {point:2} {fault:11?} {call}: right");
            }
        }
    }
    println!("{points} points of a delete, all right");
    assert!(points >= 4 * 5 * 25, "only {points} points were tried");
}

/// The process dies in a create, and the object is deleted before it is back.
#[test]
fn a_cluster_that_is_deleted_while_the_process_is_down_leaves_nothing() {
    for (lag, status_is_lost) in [(0, false), (0, true), (20, false), (20, true)] {
        let (spec, reference) = (seed(), made(&seed()));
        for point in 0..reference.writes.len() {
            let mut world = World::new(Nature { lag, ..Nature::PROMPT }, point as u64);
            world.run_until_crash(&present(&spec), point);
            if status_is_lost {
                world.memory = Memory::default();
            }
            let (reconciliation, rest) = world.run(&absent(&spec), &mut |_| None);
            assert_eq!(rest, Rest::Reached, "write {point}: {:#?}", reconciliation.problems());
            assert!(is_empty(&world), "lag {lag}, write {point}: {:#?}", inventory(&world.cloud));
        }
    }
}

/// The status is lost with the process: what is ours is found by its tags alone.
#[test]
fn a_lost_status_costs_nothing_but_time() {
    let (spec, reference) = (seed(), made(&seed()));
    let wanted = inventory(&reference.cloud);
    for point in 0..reference.writes.len() {
        let mut world = World::new(Nature::PROMPT, 3);
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
