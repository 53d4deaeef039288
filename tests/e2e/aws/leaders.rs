//! A change of leader while a call of the former one is on its way: it arrives when the next one is
//! at work already.

use std::time::Duration;

use aws::{Executor, PassHooks, run_pass};
use aws_fixtures::{absent, present};
use aws_network::{Goal, Memory, NatMode, Outcome, Planned, Reconciliation, Rest, Timestamp};
use parking_lot::Mutex;
use tests::aws_proxy::{Call, Fate};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::faults::{Point, Reference, is_as_without_faults, is_gone};
use crate::world::World;

/// How long a call is under way.
const ON_ITS_WAY: Duration = Duration::from_millis(300);
/// No call is on its way for longer, in seconds of the test's own clock.
const LONGEST: u64 = 10;

/// Creates that make something a second time when they are sent twice, and others.
const OF_CREATE: [&str; 9] = [
    "CreateVpc",
    "CreateSubnet",
    "CreateInternetGateway",
    "AllocateAddress",
    "CreateNatGateway",
    "CreateRouteTable",
    "AuthorizeSecurityGroupIngress",
    "RunInstances",
    "CreateLoadBalancer",
];
const OF_DELETE: [&str; 4] =
    ["DeleteLoadBalancer", "DeleteNatGateway", "ReleaseAddress", "DeleteVpc"];

/// The one who has led.
struct Former<'a> {
    world: &'a World,
    /// Calls that were sent without the lease.
    sent_late: Mutex<Vec<String>>,
}

impl Former<'_> {
    fn leads(&self) -> bool {
        self.world.fence.check().is_ok()
    }
}

impl PassHooks for Former<'_> {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    async fn store(&self, memory: &Memory) -> bool {
        self.leads() && self.world.store(memory).await
    }

    fn wrote(&self, planned: &Planned, outcome: &Outcome) {
        if !self.leads() && *outcome != Outcome::NotSent {
            self.sent_late.lock().push(planned.action.to_string());
        }
    }
}

/// Leads to a goal, and loses the lease on the way.
async fn lead_until_lost(world: &World, goal: &Goal, executor: &Executor) -> Vec<String> {
    let former = Former { world, sent_late: Mutex::default() };
    let mut reconciliation = Reconciliation::new(goal.clone(), world.memory());
    while former.leads() {
        match run_pass(&mut reconciliation, executor, &former).await {
            Rest::For(seconds) => {
                world.advance(seconds);
                reconciliation.resume();
            }
            rest => assert!(!former.leads(), "it rests, {rest:?}, and has lost nothing"),
        }
    }
    former.sent_late.into_inner()
}

/// Leads to the goal; not more time than a call may take passes before it has `arrived`.
async fn lead_to_the_end(
    world: &World,
    goal: &Goal,
    arrived: &CancellationToken,
) -> (Reconciliation, Rest) {
    let executor = world.executor_of_another_replica();
    let (mut reconciliation, mut rested) = (Reconciliation::new(goal.clone(), world.memory()), 0);
    for _ in 0..200 {
        match run_pass(&mut reconciliation, &executor, world).await {
            Rest::For(seconds) => {
                rested += seconds;
                if rested >= LONGEST {
                    arrived.cancelled().await;
                }
                world.advance(seconds);
                reconciliation.resume();
            }
            rest => return (reconciliation, rest),
        }
    }
    panic!("no end: {:#?}\n{:#?}", reconciliation.plan(), reconciliation.problems());
}

/// Runs to the goal; the replica that sends this write loses the lease with it.
async fn change_leader_at(world: &World, goal: &Goal, point: &Point) {
    let (lose, mut lost) = watch::channel(false);
    let (fence, mut at, mut writes) = (world.fence.clone(), point.clone(), 0..);
    world.proxy.decide(move |_, call| {
        let number = if call.is_write() { writes.next() } else { None };
        if *lose.borrow() || !number.is_some_and(|number| at.is_it(number, call)) {
            return Fate::Pass;
        }
        fence.close();
        lose.send_replace(true);
        Fate::Delay(ON_ITS_WAY)
    });
    let (executor, arrived) = (world.executor(), CancellationToken::new());
    let former = async {
        let late = lead_until_lost(world, goal, &executor).await;
        arrived.cancel();
        late
    };
    let next = async {
        lost.wait_for(|lost| *lost).await.unwrap();
        lead_to_the_end(world, goal, &arrived).await
    };
    let (late, (reconciliation, rest)) = futures::join!(former, next);
    // Those that were under way when it lost the lease.
    assert!(late.len() <= 6, "{point:?}: {late:?}");
    assert_eq!(rest, Rest::Reached, "{point:?}: {:#?}", reconciliation.problems());
    world.come_back().await;
}

async fn of_a_create(world: &World, reference: &Reference, point: Point) {
    world.reset().await;
    change_leader_at(world, &present(&reference.spec), &point).await;
    is_as_without_faults(world, reference, &format!("{point:?}")).await;
}

async fn of_a_delete(world: &World, reference: &Reference, point: Point) {
    world.reset().await;
    world.run(&present(&reference.spec)).await;
    world.proxy.forget();
    world.advance(1800);
    change_leader_at(world, &absent(&reference.spec), &point).await;
    is_gone(world, reference, &format!("{point:?}")).await;
}

/// rule:the-fence-is-asked-last
#[tokio::test(flavor = "multi_thread")]
async fn the_next_leader_gets_over_a_call_of_the_former_one_that_arrives_late() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    for (number, action) in OF_CREATE.into_iter().enumerate() {
        world.shows_late(number % 2 == 0);
        of_a_create(&world, &reference, Point::First(action.to_owned())).await;
    }
    for action in OF_DELETE {
        of_a_delete(&world, &reference, Point::First(action.to_owned())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes: run it by name"]
async fn the_next_leader_gets_over_every_write_of_the_former_one_that_arrives_late() {
    let Some(world) = World::new().await else { return };
    let reference = Reference::new(&world, NatMode::PerZone).await;
    let writes = |calls: &[Call]| calls.iter().filter(|call| call.is_write()).count();
    let (of_create, of_delete) = (writes(&reference.create), writes(&reference.delete));
    for number in 0..of_create {
        of_a_create(&world, &reference, Point::Number(number)).await;
    }
    for number in 0..of_delete {
        of_a_delete(&world, &reference, Point::Number(number)).await;
    }
    println!("{of_create} changes of leader in a create and {of_delete} in a delete, all right");
}
