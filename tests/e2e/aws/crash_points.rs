//! Faults at each call of a create and of a delete: the end is the same as without, and nothing is
//! left.
//!
//! Each kind of call with one of the faults is tried by the tests that always run, each single call
//! with each fault by those that are asked for by name:
//! `cargo test -p tests --test aws -- --ignored --nocapture every`.

use std::collections::BTreeSet;

use aws_fixtures::present;
use aws_network::NatMode;
use tests::aws_proxy::Call;

use crate::faults::{
    Fault, Point, Reference, Table, create, delete, deleted_meanwhile, without_a_patch,
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

/// Every call, reads included, of create and delete.
async fn every_call(mode: NatMode) {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, mode).await;
    let (mut created, mut deleted) = (Table::default(), Table::default());
    let calls = reference.create.len().max(reference.delete.len());
    for number in 0..calls {
        let point = || Point::Number(number);
        world.shows_late(number % 2 == 1);
        for fault in Fault::TRANSIENT {
            if let Some(call) = create(&world, &reference, point(), fault).await {
                created.note(call, fault);
            }
            if let Some(call) = delete(&world, &reference, point(), fault).await {
                deleted.note(call, fault);
            }
        }
        if let Some(call) = deleted_meanwhile(&world, &reference, point(), number % 2 == 0).await {
            created.note(call, Fault::Deleted);
        }
    }
    every_patch(&world, &reference, &mut created, &mut deleted).await;
    println!("{mode:?}, create\n{created}\n{mode:?}, delete\n{deleted}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_with_a_nat_gateway_in_each_zone() {
    every_call(NatMode::PerZone).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_with_one_nat_gateway() {
    every_call(NatMode::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_without_nat_gateways() {
    every_call(NatMode::None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes ten minutes: run it by name"]
async fn every_call_with_every_fault_with_a_regional_nat_gateway() {
    every_call(NatMode::Regional).await;
}
