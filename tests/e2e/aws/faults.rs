//! Faults at one call of a create or of a delete, and what has to be true in the end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_fixtures::{absent, present, with_nats};
use aws_network::{Goal, NatMode, Rest, Spec};
use parking_lot::Mutex;
use tests::aws_proxy::{Call, Fate};

use crate::inventory::{differences, inventory};
use crate::totals::{Totals, totals};
use crate::world::World;

/// Calls that are under way at once: so many may have left before the lease was lost.
const UNDER_WAY: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    CrashBefore,
    CrashAfter,
    AnswerLost,
    /// Another replica leads from now on.
    LeaseLost,
    /// The process dies after the call, and the object is deleted before it is back.
    Deleted,
}

impl Fault {
    /// Faults that a create or a delete survives.
    pub(crate) const TRANSIENT: [Self; 4] =
        [Self::CrashBefore, Self::CrashAfter, Self::AnswerLost, Self::LeaseLost];
    const COLUMNS: [(Self, &str); 5] = [
        (Self::CrashBefore, "crash before"),
        (Self::CrashAfter, "crash after"),
        (Self::AnswerLost, "answer lost"),
        (Self::LeaseLost, "lease lost"),
        (Self::Deleted, "deleted meanwhile"),
    ];

    fn fate(self) -> Fate {
        match self {
            Self::CrashBefore => Fate::CrashBefore,
            Self::CrashAfter | Self::Deleted => Fate::CrashAfter,
            Self::AnswerLost => Fate::AnswerLost,
            Self::LeaseLost => Fate::Pass,
        }
    }
}

/// The call that is hit.
#[derive(Clone, Debug)]
pub(crate) enum Point {
    /// The first of this name.
    First(String),
    /// The call with this number, from 0.
    Number(usize),
    /// The call with this number among those of a [`kind`].
    OfKind(String, usize),
    Never,
}

/// The name of a call and the names of its parameters, without the numbers in them.
pub(crate) fn kind(call: &Call) -> String {
    let mut names: Vec<_> =
        call.parameters.keys().map(|name| name.replace(char::is_numeric, "")).collect();
    names.sort();
    names.dedup();
    format!("{} {}", call.action, names.join(" "))
}

impl Point {
    pub(crate) fn is_it(&mut self, number: usize, call: &Call) -> bool {
        match self {
            Self::First(name) => call.action == *name,
            Self::Number(wanted) => number == *wanted,
            Self::OfKind(of, before) if kind(call) == *of => {
                let is_it = *before == 0;
                *before = before.saturating_sub(1);
                is_it
            }
            Self::OfKind(..) | Self::Never => false,
        }
    }

    /// The name of the call, if the point is one of a kind.
    pub(crate) fn name(&self) -> Option<&str> {
        let Self::OfKind(kind, _) = self else { return None };
        kind.split(' ').next()
    }
}

/// Calls that were hit, by name: how often each fault went well.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<String, BTreeMap<Fault, usize>>);

impl Table {
    pub(crate) fn count(&self, call: &str) -> usize {
        self.0.get(call).into_iter().flat_map(BTreeMap::values).sum()
    }

    /// Asserts that a call met each fault.
    pub(crate) fn assert_whole(&self, call: &str) {
        let is_whole = Fault::TRANSIENT.iter().all(|fault| self.0[call].contains_key(fault));
        assert!(is_whole, "{call}: {:?}", self.0[call]);
    }

    pub(crate) fn note_hit(&mut self, call: Option<String>, fault: Fault) {
        if let Some(call) = call {
            self.note(call, fault);
        }
    }

    pub(crate) fn note(&mut self, call: String, fault: Fault) {
        *self.0.entry(call).or_default().entry(fault).or_default() += 1;
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:34}", "call")?;
        for (_, title) in Fault::COLUMNS {
            write!(formatter, " {title:>17}")?;
        }
        writeln!(formatter)?;
        for (call, faults) in &self.0 {
            write!(formatter, "{call:34}")?;
            for (fault, _) in Fault::COLUMNS {
                write!(formatter, " {:>17}", faults.get(&fault).copied().unwrap_or_default())?;
            }
            writeln!(formatter)?;
        }
        let all: usize = self.0.values().flat_map(BTreeMap::values).sum();
        write!(formatter, "{all} points, all right")
    }
}

/// Calls that make a second resource when they are sent twice. It would be removed as surplus later.
const ONCE: [&str; 7] = [
    "CreateVpc",
    "CreateInternetGateway",
    "CreateEgressOnlyInternetGateway",
    "AllocateAddress",
    "CreateRouteTable",
    "CreateTargetGroup",
    "RunInstances",
];

/// How often each of [`ONCE`] was carried out since calls were last forgotten.
fn made(world: &World) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for (call, _) in world.proxy.done() {
        if ONCE.contains(&&*call.action) {
            *made.entry(call.action).or_default() += 1;
        }
    }
    made
}

/// The result of a run without faults.
pub(crate) struct Reference {
    pub(crate) spec: Spec,
    pub(crate) inventory: Vec<String>,
    pub(crate) before: Totals,
    pub(crate) after: Totals,
    made: BTreeMap<String, usize>,
    pub(crate) create: Vec<Call>,
    pub(crate) delete: Vec<Call>,
}

impl Reference {
    pub(crate) async fn new(world: &World, mode: NatMode) -> Self {
        Self::of(world, with_nats(mode)).await
    }

    pub(crate) async fn of(world: &World, spec: Spec) -> Self {
        world.reset().await;
        let before = totals(world).await;
        world.run(&present(&spec)).await;
        let (create, made) = (world.proxy.calls(), made(world));
        let (inventory, after) = (inventory(world).await, totals(world).await);
        world.run_later(&absent(&spec)).await;
        let delete = world.proxy.calls();
        Self { spec, inventory, before, after, made, create, delete }
    }
}

/// Hits one call, once, and says which it was.
fn hit(world: &World, mut point: Point, fault: Fault) -> Arc<Mutex<Option<(usize, String)>>> {
    let hit = Arc::new(Mutex::new(None));
    let (noted, fence) = (Arc::clone(&hit), world.fence.clone());
    world.proxy.decide(move |number, call| {
        let mut noted = noted.lock();
        if noted.is_some() || !point.is_it(number, call) {
            return Fate::Pass;
        }
        *noted = Some((number, call.action.clone()));
        if fault == Fault::LeaseLost {
            fence.close();
        }
        fault.fate()
    });
    hit
}

/// Leads to a goal with one fault. Whether the call came at all, and which it was.
async fn run_with(world: &World, goal: &Goal, point: &Point, fault: Fault) -> Option<String> {
    let hit = hit(world, point.clone(), fault);
    if fault == Fault::LeaseLost && world.live(goal).await.is_none() {
        let (number, call) = hit.lock().clone().unwrap();
        let late = world.proxy.calls().split_off(number + 1);
        let late = late.iter().filter(|call| call.is_write()).count();
        assert!(late < UNDER_WAY, "{late} writes after the lease was lost in {call}");
        world.come_back().await;
    }
    let (reconciliation, rest) = world.run(goal).await;
    let call = hit.lock().clone().map(|(_, call)| call);
    assert_eq!(
        rest,
        Rest::Reached,
        "{point:?} {fault:?} {call:?}: {:#?}",
        reconciliation.problems()
    );
    call
}

/// A create with one fault. Whether the call came at all, and which it was.
pub(crate) async fn create(
    world: &World,
    reference: &Reference,
    point: Point,
    fault: Fault,
) -> Option<String> {
    let goal = present(&reference.spec);
    world.reset().await;
    let call = run_with(world, &goal, &point, fault).await;
    assert_eq!(made(world), reference.made, "{point:?} {fault:?} {call:?}: made twice");
    is_as_without_faults(world, reference, &format!("{point:?} {fault:?} {call:?}")).await;
    call
}

/// Asserts that the cluster exists once and equals a cluster that was created without faults.
pub(crate) async fn is_as_without_faults(world: &World, reference: &Reference, what: &str) {
    world.proxy.forget();
    // So long, what was made last may not be visible.
    world.advance(5);
    let wrong = differences(&inventory(world).await, &reference.inventory);
    assert_eq!(wrong, Vec::<String>::new(), "{what}");
    assert_eq!(totals(world).await, reference.after, "{what}: made twice");
    world.run_later(&present(&reference.spec)).await;
    assert_eq!(world.writes(), Vec::<String>::new(), "{what}");
}

/// Asserts that no resource is left, whoever owns it.
pub(crate) async fn is_gone(world: &World, reference: &Reference, what: &str) {
    assert_eq!(totals(world).await, reference.before, "{what}: something is left");
}

/// A delete with one fault, of what is there.
pub(crate) async fn delete(
    world: &World,
    reference: &Reference,
    point: Point,
    fault: Fault,
) -> Option<String> {
    world.proxy.forget();
    world.advance(1800);
    let call = run_with(world, &absent(&reference.spec), &point, fault).await;
    is_gone(world, reference, &format!("{point:?} {fault:?} {call:?}")).await;
    call
}

/// Leads to a goal and dies before this patch of the status, from 0, is stored. Whether there was
/// one.
async fn dies_at_patch(world: &World, goal: &Goal, number: usize) -> bool {
    world.die_at_store(number);
    let died = world.live(goal).await.is_none();
    world.come_back().await;
    let (reconciliation, rest) = world.run(goal).await;
    assert_eq!(rest, Rest::Reached, "patch {number}: {:#?}", reconciliation.problems());
    died
}

/// A create and a delete. In each of them the process dies before this patch of the status.
/// Whether there was one in each.
pub(crate) async fn without_a_patch(
    world: &World,
    reference: &Reference,
    number: usize,
) -> [bool; 2] {
    world.reset().await;
    let in_create = dies_at_patch(world, &present(&reference.spec), number).await;
    is_as_without_faults(world, reference, &format!("create without patch {number}")).await;
    world.proxy.forget();
    world.advance(1800);
    let in_delete = dies_at_patch(world, &absent(&reference.spec), number).await;
    is_gone(world, reference, &format!("delete without patch {number}")).await;
    [in_create, in_delete]
}

/// The process dies in a create, and the object is deleted before it is back, perhaps without its
/// status.
pub(crate) async fn deleted_meanwhile(
    world: &World,
    reference: &Reference,
    point: Point,
    loses_status: bool,
) -> Option<String> {
    world.reset().await;
    let hit = hit(world, point.clone(), Fault::Deleted);
    if world.live(&present(&reference.spec)).await.is_some() {
        return None;
    }
    let (_, call) = hit.lock().clone().unwrap();
    world.come_back().await;
    if loses_status {
        world.lose_status();
    }
    let (reconciliation, rest) = world.run(&absent(&reference.spec)).await;
    assert_eq!(rest, Rest::Reached, "{point:?} {call}: {:#?}", reconciliation.problems());
    is_gone(world, reference, &format!("{point:?} {call}")).await;
    Some(call)
}
