//! Turns of one AWSCluster; those of many are in `tests/crowd.rs`.

use std::collections::BTreeSet;

use aws_network::{Identity, Removal, ServiceResources, Timestamp};

use super::*;

mod crowd;

fn goal(cluster: &str) -> Goal {
    Goal::Absent(Removal {
        identity: Identity {
            cluster: cluster.to_owned(),
            owner_id: "o".to_owned(),
            owner_tag: "t".to_owned(),
            adopt: false,
        },
        vpc_id: None,
        load_balancer_names: Vec::new(),
        named_groups: BTreeSet::new(),
        service_resources: ServiceResources::Stay,
        deletes_free_interfaces: false,
    })
}

fn memory(since: u64) -> Memory {
    Memory { deleting_since: Some(Timestamp(since)), ..Memory::default() }
}

struct Bench {
    reconciliations: Reconciliations,
    key: Arc<str>,
    uid: Arc<str>,
}

impl Bench {
    fn new() -> Self {
        Self {
            reconciliations: Reconciliations::new(2.0),
            key: Arc::from("ns/a"),
            uid: Arc::from("u"),
        }
    }

    fn turn(&self, goal: &Goal, now_anyway: bool) -> Turn {
        self.reconciliations.turn(&self.key, &self.uid, goal, "1/r", now_anyway, || memory(1))
    }

    fn keep(&self, goal: &Goal, reconciliation: Reconciliation, seconds: u64) {
        let rest = Pause::of(Duration::from_secs(seconds));
        self.reconciliations.keep(&self.key, &self.uid, goal.clone(), reconciliation, rest);
    }
}

fn gone(turn: Turn) -> Reconciliation {
    match turn {
        Turn::Go(reconciliation) => *reconciliation,
        turn => panic!("it does not go on: {turn:?}"),
    }
}

fn rests(turn: &Turn) -> Duration {
    match turn {
        Turn::Rest(left) => *left,
        turn => panic!("it does not rest: {turn:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_rests_until_its_time_has_come_and_remembers_what_it_knew() {
    let (bench, wanted) = (Bench::new(), goal("c"));
    assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(1), "as it was stored");
    bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
    assert_eq!(rests(&bench.turn(&wanted, false)), Duration::from_secs(10));
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(rests(&bench.turn(&wanted, false)), Duration::from_secs(6));
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(2), "as it was left");
}

#[tokio::test(start_paused = true)]
async fn another_goal_and_news_end_a_rest_and_a_new_object_of_the_name_starts_again() {
    let (bench, wanted) = (Bench::new(), goal("c"));
    bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
    assert_eq!(gone(bench.turn(&goal("d"), false)).memory(), &memory(2));
    bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
    assert_eq!(gone(bench.turn(&wanted, true)).memory(), &memory(2));
    bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
    let turn =
        bench
            .reconciliations
            .turn(&bench.key, &Arc::from("v"), &wanted, "1/r", false, || memory(3));
    assert_eq!(gone(turn).memory(), &memory(3));
    bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
    bench.reconciliations.forget(&bench.key);
    assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(1));
}

#[tokio::test(start_paused = true)]
async fn another_goal_gets_a_deep_check_and_the_same_goal_keeps_its_time() {
    let (bench, wanted) = (Bench::new(), goal("c"));
    let checked = Memory { deep_checked: Some(Timestamp(5)), ..memory(2) };
    let keep = || bench.keep(&wanted, Reconciliation::new(wanted.clone(), checked.clone()), 10);
    keep();
    assert_eq!(gone(bench.turn(&wanted, true)).memory(), &checked);
    keep();
    assert_eq!(gone(bench.turn(&goal("d"), false)).memory(), &memory(2));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_published_is_published_again_while_the_rest_goes_on() {
    let (bench, wanted) = (Bench::new(), goal("c"));
    let seconds = Duration::from_secs;
    let reconciliation = Reconciliation::new(wanted.clone(), memory(2));
    let rest = Pause { publish: Some(seconds(15)), ..Pause::of(seconds(600)) };
    let next =
        bench.reconciliations.keep(&bench.key, &bench.uid, wanted.clone(), reconciliation, rest);
    assert_eq!(next, seconds(15));
    assert_eq!(rests(&bench.turn(&wanted, false)), seconds(15));
    tokio::time::advance(seconds(15)).await;
    let Turn::Publish(reconciliation, left) = bench.turn(&wanted, false) else {
        panic!("it is published again")
    };
    assert_eq!((reconciliation.memory(), left), (&memory(2), seconds(585)));
    bench.keep(&wanted, *reconciliation, 585);
    assert_eq!(rests(&bench.turn(&wanted, false)), seconds(585), "it was published");
}

/// After a shared read failed, all clusters read alone.
#[tokio::test(start_paused = true)]
async fn clusters_that_read_alone_after_a_shared_read_are_limited_though_the_last_look_read_nothing()
 {
    let (bench, wanted) = (Bench::new(), goal("c"));
    let keys: Vec<Arc<str>> = (0..200).map(|number| Arc::from(format!("ns/{number}"))).collect();
    for key in &keys {
        let reconciliation = Reconciliation::new(wanted.clone(), memory(2));
        let rest = Pause { is_idle: true, ..Pause::of(Duration::ZERO) };
        bench.reconciliations.keep(key, &bench.uid, wanted.clone(), reconciliation, rest);
    }
    let goes = |key: &&Arc<str>| {
        let turn =
            bench.reconciliations.turn(key, &bench.uid, &wanted, "1/r", false, Memory::default);
        matches!(turn, Turn::Go(_))
    };
    let at_once = keys.iter().filter(goes).count();
    assert!((1..=61).contains(&at_once), "{at_once} of 200, 10 reads each, 600 in a burst");
}
