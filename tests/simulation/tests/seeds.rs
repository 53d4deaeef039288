//! Runs of random seeds: no claim is violated. `tests/CHECKED.md` says what they find.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};
use std::time::Instant;

use simulation::{Plan, Report, number_of, run, shrink};

/// How often each kind of fault happened in the runs of these seeds, or the first violation.
fn run_all(first: u64, last: u64) -> Result<BTreeMap<&'static str, u64>, Box<(Plan, Report)>> {
    let next = AtomicU64::new(first);
    let worker = || {
        let mut reach = BTreeMap::<_, u64>::new();
        loop {
            let plan = Plan::new(next.fetch_add(1, Ordering::Relaxed));
            if plan.seed > last {
                return Ok(reach);
            }
            let report = run(&plan).unwrap();
            if report.violation.is_some() {
                next.store(last + 1, Ordering::Relaxed);
                return Err(Box::new((plan, report)));
            }
            for (what, count) in report.reach {
                *reach.entry(what).or_default() += count;
            }
        }
    };
    let workers = available_parallelism().map_or(1, usize::from);
    let ended: Vec<_> = scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|it| it.join().unwrap()).collect()
    });
    ended.into_iter().try_fold(BTreeMap::new(), |mut sum, reach| {
        for (what, count) in reach? {
            *sum.entry(what).or_default() += count;
        }
        Ok(sum)
    })
}

#[test]
fn replicas_violate_no_claim() {
    let first = number_of("SIMULATION_FIRST").unwrap_or(1);
    let runs = number_of("SIMULATION_RUNS").unwrap_or(60);
    let began = Instant::now();
    let reach = run_all(first, first + runs - 1).unwrap_or_else(|found| {
        let (plan, report) = *found;
        let (shorter, shown) = shrink(&plan, &report).unwrap();
        let (violation, found) = (report.violation.unwrap(), shown.violation.unwrap());
        let (seed, faults) = (plan.seed, shown.happened.len());
        panic!("seed {seed}: {violation}\nafter {faults} events: {found}\n{}", shorter.command());
    });
    println!("{runs} runs from seed {first} in {:.1?}: {reach:?}", began.elapsed());
    let missing: Vec<_> = KINDS.iter().filter(|kind| !reach.contains_key(**kind)).collect();
    assert!(missing.is_empty() || runs < 50, "never happened: {missing:?}");
}

/// What has to happen in the runs.
const KINDS: [&str; 29] = [
    "429",
    "5xx after the effect",
    "5xx without effect",
    "Node changes",
    "Node joins",
    "Node leaves",
    "Node replaced",
    "answer lost",
    "compaction",
    "connection lost",
    "connection lost before the effect",
    "crash",
    "member fails",
    "member is silent",
    "member is slow",
    "member is well",
    "member refuses",
    "event doubled",
    "event reordered",
    "event skipped",
    "orderly stop",
    "pod CIDR of another allocator",
    "process stands still",
    "request lost",
    "request not sent",
    "slow request",
    "stale API server",
    "wall clock set forward",
    "watch broken",
];

/// Two runs of a plan have the same trace.
fn replay(plan: Plan) -> Report {
    let plan = Plan { keeps_trace: true, ..plan };
    let (one, two) = (run(&plan).unwrap(), run(&plan).unwrap());
    let differs = one.trace.iter().zip(&two.trace).find(|(one, two)| one != two);
    assert_eq!(differs, None, "seed {}: the traces differ", plan.seed);
    assert_eq!(one.trace.len(), two.trace.len(), "seed {}: one trace is longer", plan.seed);
    one
}

#[test]
fn a_seed_is_replayed() {
    if let Some(plan) = Plan::of_environment() {
        let report = replay(plan);
        println!("{}\n{:?}", report.trace.join("\n"), report.violation);
        return;
    }
    let first = number_of("SIMULATION_FIRST").unwrap_or(1);
    (first..first + number_of("SIMULATION_REPLAYS").unwrap_or(24))
        .for_each(|seed| drop(replay(Plan::new(seed))));
}
