//! Faults at each call of a create and of a delete: the end is the same as without, and nothing is left.
//!
//! Each kind of call with each fault is tried by the tests that always run, each single call by those that are asked
//! for by name: `cargo test -p tests --test aws -- --ignored --nocapture every`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aws_network::{NatMode, Rest, Spec};
use parking_lot::Mutex;
use tests::aws_proxy::{Call, Fate};

use crate::fixtures::{absent, present, seed};
use crate::inventory::{differences, inventory};
use crate::totals::{Totals, totals};
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    CrashBefore,
    CrashAfter,
    AnswerLost,
}

impl Fault {
    const ALL: [Self; 3] = [Self::CrashBefore, Self::CrashAfter, Self::AnswerLost];

    fn fate(self) -> Fate {
        match self {
            Self::CrashBefore => Fate::CrashBefore,
            Self::CrashAfter => Fate::CrashAfter,
            Self::AnswerLost => Fate::AnswerLost,
        }
    }
}

/// Which call is hit.
#[derive(Clone, Debug)]
enum Point {
    /// The first of this name.
    First(String),
    /// This one, from 0.
    Number(usize),
}

impl Point {
    fn is_it(&self, number: usize, call: &Call) -> bool {
        match self {
            Self::First(name) => call.action == *name,
            Self::Number(wanted) => number == *wanted,
        }
    }
}

/// Calls that were hit, by name: how often each fault went well.
#[derive(Default)]
struct Table(BTreeMap<String, BTreeMap<Fault, usize>>);

impl Table {
    fn note(&mut self, call: String, fault: Fault) {
        *self.0.entry(call).or_default().entry(fault).or_default() += 1;
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:34} {:>12} {:>12} {:>12}",
            "call", "crash before", "crash after", "answer lost"
        )?;
        for (call, faults) in &self.0 {
            let count = |fault| faults.get(&fault).copied().unwrap_or_default();
            let [before, after, lost] = Fault::ALL.map(count);
            writeln!(formatter, "{call:34} {before:>12} {after:>12} {lost:>12}")?;
        }
        let all: usize = self.0.values().flat_map(BTreeMap::values).sum();
        write!(formatter, "{all} points, all right")
    }
}

/// What a run without faults leads to.
struct Reference {
    spec: Spec,
    inventory: Vec<String>,
    before: Totals,
    after: Totals,
    create: Vec<Call>,
    delete: Vec<Call>,
}

impl Reference {
    async fn new(world: &World, mode: NatMode) -> Self {
        let spec = seed(mode);
        world.reset().await;
        let before = totals(world).await;
        world.run(&present(&spec)).await;
        let create = world.proxy.calls();
        let (inventory, after) = (inventory(world).await, totals(world).await);
        world.run_later(&absent(&spec)).await;
        let delete = world.proxy.calls();
        Self { spec, inventory, before, after, create, delete }
    }
}

/// Hits one call, once, and says which it was.
fn hit(world: &World, point: Point, fault: Fault) -> std::sync::Arc<Mutex<Option<String>>> {
    let hit = std::sync::Arc::new(Mutex::new(None));
    let noted = std::sync::Arc::clone(&hit);
    world.proxy.decide(move |number, call| {
        let mut noted = noted.lock();
        if noted.is_some() || !point.is_it(number, call) {
            return Fate::Pass;
        }
        *noted = Some(call.action.clone());
        fault.fate()
    });
    hit
}

/// A create with one fault. Whether the call came at all, and which it was.
async fn create(
    world: &World,
    reference: &Reference,
    point: Point,
    fault: Fault,
) -> Option<String> {
    let (spec, what) = (&reference.spec, format!("{point:?} {fault:?}"));
    world.reset().await;
    let hit = hit(world, point, fault);
    let (pass, rest) = world.run(&present(spec)).await;
    let call = hit.lock().clone();
    assert_eq!(rest, Rest::Reached, "{what} {call:?}: {:#?}", pass.problems());
    world.proxy.forget();
    let found = inventory(world).await;
    let wrong = differences(&found, &reference.inventory);
    assert_eq!(wrong, Vec::<String>::new(), "{what} {call:?}");
    assert_eq!(totals(world).await, reference.after, "{what} {call:?}: made twice");
    world.run_later(&present(spec)).await;
    assert_eq!(world.writes(), Vec::<String>::new(), "{what} {call:?}");
    call
}

/// A delete with one fault, of what is there.
async fn delete(
    world: &World,
    reference: &Reference,
    point: Point,
    fault: Fault,
) -> Option<String> {
    let what = format!("{point:?} {fault:?}");
    world.proxy.forget();
    world.advance(1800);
    let hit = hit(world, point, fault);
    let (pass, rest) = world.run(&absent(&reference.spec)).await;
    let call = hit.lock().clone();
    assert_eq!(rest, Rest::Reached, "{what} {call:?}: {:#?}", pass.problems());
    assert_eq!(totals(world).await, reference.before, "{what} {call:?}: something is left");
    call
}

/// The first write of each name.
fn kinds(calls: &[Call]) -> Vec<Point> {
    let names: BTreeSet<_> =
        calls.iter().filter(|call| call.is_write()).map(|call| call.action.clone()).collect();
    names.into_iter().map(Point::First).collect()
}

async fn each_kind_of_create(fault: Fault) {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let (points, mut table) = (kinds(&reference.create), Table::default());
    assert!(points.len() >= 17, "{points:?}");
    for point in points {
        table.note(create(&world, &reference, point, fault).await.unwrap(), fault);
    }
    println!("create\n{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_any_kind_of_create_changes_nothing_of_the_end() {
    each_kind_of_create(Fault::CrashBefore).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_kind_of_create_changes_nothing_of_the_end() {
    each_kind_of_create(Fault::CrashAfter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_any_kind_of_create_changes_nothing_of_the_end() {
    each_kind_of_create(Fault::AnswerLost).await;
}

async fn each_kind_of_delete(fault: Fault) {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let (points, mut table) = (kinds(&reference.delete), Table::default());
    assert!(points.len() >= 11, "{points:?}");
    for point in points {
        world.reset().await;
        world.run(&present(&reference.spec)).await;
        table.note(delete(&world, &reference, point, fault).await.unwrap(), fault);
    }
    println!("delete\n{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_any_kind_of_delete_leaves_nothing() {
    each_kind_of_delete(Fault::CrashBefore).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_kind_of_delete_leaves_nothing() {
    each_kind_of_delete(Fault::CrashAfter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_any_kind_of_delete_leaves_nothing() {
    each_kind_of_delete(Fault::AnswerLost).await;
}

/// The process dies in a create, and the object is deleted before it is back, perhaps without its status.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_deleted_while_the_process_is_down_leaves_nothing() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    for (number, point) in kinds(&reference.create).into_iter().enumerate() {
        world.reset().await;
        let _hit = hit(&world, point.clone(), Fault::CrashAfter);
        assert!(world.live(&present(&reference.spec)).await.is_none(), "{point:?}: it dies");
        world.come_back().await;
        if number % 2 == 0 {
            world.lose_status();
        }
        let (pass, rest) = world.run(&absent(&reference.spec)).await;
        assert_eq!(rest, Rest::Reached, "{point:?}: {:#?}", pass.problems());
        assert_eq!(totals(&world).await, reference.before, "{point:?}: something is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_any_patch_of_the_status_changes_nothing_of_the_end() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let mut number = 0;
    loop {
        world.reset().await;
        world.die_at_store(number);
        let survived = world.live(&present(&reference.spec)).await.is_some();
        world.come_back().await;
        if survived {
            break;
        }
        let (pass, rest) = world.run(&present(&reference.spec)).await;
        assert_eq!(rest, Rest::Reached, "patch {number}: {:#?}", pass.problems());
        assert_eq!(totals(&world).await, reference.after, "patch {number}: made twice");
        let wrong = differences(&inventory(&world).await, &reference.inventory);
        assert_eq!(wrong, Vec::<String>::new(), "patch {number}");
        number += 1;
    }
    assert!(number >= 3, "only {number} patches of the status");
    println!("{number} patches of the status, all right");
}

/// Every call, reads included, of create and delete.
async fn every_call(mode: NatMode) {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, mode).await;
    let (mut created, mut deleted) = (Table::default(), Table::default());
    for fault in Fault::ALL {
        let calls = reference.create.len().max(reference.delete.len());
        for number in 0..calls {
            if let Some(call) = create(&world, &reference, Point::Number(number), fault).await {
                created.note(call, fault);
            }
            if let Some(call) = delete(&world, &reference, Point::Number(number), fault).await {
                deleted.note(call, fault);
            }
        }
    }
    println!("{mode:?}, create\n{created}\n{mode:?}, delete\n{deleted}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes: run it by name"]
async fn every_call_with_every_fault_with_a_nat_gateway_in_each_zone() {
    every_call(NatMode::PerZone).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes: run it by name"]
async fn every_call_with_every_fault_with_one_nat_gateway() {
    every_call(NatMode::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes: run it by name"]
async fn every_call_with_every_fault_without_nat_gateways() {
    every_call(NatMode::None).await;
}
