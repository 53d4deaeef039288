//! Faults at each call of a create and of a delete: the end is the same as without, and nothing is
//! left.
//!
//! Each kind of call with one of the faults is tried by the tests that always run, each single call
//! with each fault by those that are asked for by name:
//! `cargo test -p tests --test aws -- --ignored --nocapture every`.

use std::collections::{BTreeMap, BTreeSet};

use aws_fixtures::{dual_stack, present, second_load_balancer, with_nats};
use aws_network::{NatMode, Spec};
use tests::aws_proxy::Call;

use crate::faults::{
    Fault, Point, Reference, Table, create, delete, deleted_meanwhile, kind, without_a_patch,
};
use crate::world::World;

/// The first write of each name.
fn kinds(calls: &[Call]) -> Vec<Point> {
    let names: BTreeSet<_> =
        calls.iter().filter(|call| call.is_write()).map(|call| call.action.clone()).collect();
    names.into_iter().map(Point::First).collect()
}

/// The faults in turn: all of them with what is made visible at once, then all of them with late visibility.
fn in_turn(points: Vec<Point>) -> impl Iterator<Item = (Point, Fault, bool)> {
    let turns =
        [false, true].into_iter().flat_map(|late| Fault::TRANSIENT.map(|fault| (fault, late)));
    let turns: Vec<_> = turns.collect();
    points
        .into_iter()
        .zip(turns.into_iter().cycle())
        .map(|(point, (fault, late))| (point, fault, late))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_kind_of_create_changes_nothing_of_the_end() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let (points, mut table) = (kinds(&reference.create), Table::default());
    assert!(points.len() >= 17, "{points:?}");
    for (point, fault, is_late) in in_turn(points) {
        world.shows_late(is_late);
        table.note(create(&world, &reference, point, fault).await.unwrap(), fault);
    }
    println!("create\n{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_kind_of_delete_leaves_nothing() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let (points, mut table) = (kinds(&reference.delete), Table::default());
    assert!(points.len() >= 11, "{points:?}");
    for (point, fault, is_late) in in_turn(points) {
        world.shows_late(is_late);
        world.reset().await;
        world.run(&present(&reference.spec)).await;
        table.note(delete(&world, &reference, point, fault).await.unwrap(), fault);
    }
    println!("delete\n{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_deleted_while_the_process_is_down_leaves_nothing() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    for (number, point) in kinds(&reference.create).into_iter().step_by(3).enumerate() {
        world.shows_late(number % 3 > 0);
        assert!(deleted_meanwhile(&world, &reference, point, number % 2 == 0).await.is_some());
    }
}

/// The row of crashes before a patch of the status.
const PATCH: &str = "(patch of the status)";

/// Crashes before each patch of the status.
async fn every_patch(
    world: &World,
    reference: &Reference,
    created: &mut Table,
    deleted: &mut Table,
) {
    for number in 0.. {
        let there_was = without_a_patch(world, reference, number).await;
        for (table, there_was) in [&mut *created, &mut *deleted].into_iter().zip(there_was) {
            if there_was {
                table.note(PATCH.to_owned(), Fault::CrashBefore);
            }
        }
        if there_was == [false, false] {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_any_patch_of_the_status_changes_nothing_of_the_end() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let (mut created, mut deleted) = (Table::default(), Table::default());
    world.shows_late(true);
    every_patch(&world, &reference, &mut created, &mut deleted).await;
    let (of_create, of_delete) = (created.count(PATCH), deleted.count(PATCH));
    println!(
        "{of_create} patches of the status of a create and {of_delete} of a delete, all right"
    );
    assert!(of_create >= 3 && of_delete >= 1, "{of_create} and {of_delete} patches");
}

/// All calls, reads included.
fn all(calls: &[Call]) -> Vec<Point> {
    (0..calls.len()).map(Point::Number).collect()
}

/// The first call of each kind, at an even place, and the last one.
fn ends_of_kinds(calls: &[Call]) -> Vec<Point> {
    let mut counts = BTreeMap::<_, usize>::new();
    for call in calls {
        *counts.entry(kind(call)).or_default() += 1;
    }
    let ends = |(kind, count): (String, usize)| {
        [0, count - 1].map(|number| Point::OfKind(kind.clone(), number))
    };
    counts.into_iter().flat_map(ends).collect()
}

/// These calls of create and delete, with each fault; what every second one makes is shown late.
async fn every_call(what: &str, spec: Spec, chosen: fn(&[Call]) -> Vec<Point>) {
    let Some(world) = World::new().await else { return };
    let reference = Reference::of(&world, spec).await;
    let (mut created, mut deleted) = (Table::default(), Table::default());
    let (of_create, of_delete) = (chosen(&reference.create), chosen(&reference.delete));
    for turn in 0..of_create.len().max(of_delete.len()) {
        world.shows_late(turn % 2 == 1);
        for fault in Fault::TRANSIENT {
            let point = of_create.get(turn).cloned();
            let hit = create(&world, &reference, point.unwrap_or(Point::Never), fault).await;
            created.note_hit(hit, fault);
            let Some(point) = of_delete.get(turn).cloned() else { continue };
            let hit = delete(&world, &reference, point, fault).await;
            deleted.note_hit(hit, fault);
        }
        let Some(point) = of_create.get(turn).cloned() else { continue };
        let hit = deleted_meanwhile(&world, &reference, point, turn % 2 == 0).await;
        created.note_hit(hit, Fault::Deleted);
    }
    for (point, table) in [(of_create, &created), (of_delete, &deleted)] {
        let names = point.iter().filter_map(Point::name);
        names.for_each(|name| table.assert_whole(name));
    }
    every_patch(&world, &reference, &mut created, &mut deleted).await;
    println!("{what}, create\n{created}\n{what}, delete\n{deleted}");
}

async fn every_call_with(mode: NatMode) {
    every_call(&format!("{mode:?}"), with_nats(mode), all).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_with_a_nat_gateway_in_each_zone() {
    every_call_with(NatMode::PerZone).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_with_one_nat_gateway() {
    every_call_with(NatMode::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_without_nat_gateways() {
    every_call_with(NatMode::None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_with_a_regional_nat_gateway() {
    every_call_with(NatMode::Regional).await;
}

/// There are too many calls: each kind of them meets each fault, with what it makes shown at once and late.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_kind_of_call_with_every_fault_with_dual_stack_and_a_second_load_balancer() {
    let second = Some(Box::new(second_load_balancer()));
    let spec = Spec { nat_mode: NatMode::Single, secondary_load_balancer: second, ..dual_stack() };
    every_call("dual stack", spec, ends_of_kinds).await;
}
