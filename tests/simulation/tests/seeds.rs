//! Runs of random seeds: no claim is violated. `tests/CHECKED.md` says what they find.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{available_parallelism, panicking, scope};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use simulation::sieve::{Pattern, difference, plans};
use simulation::{Plan, Report, Script, number_of, run, shrink};

/// Runs take a seventh less time with it than with the allocator of the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The sum of many runs.
#[derive(Default)]
struct Total {
    runs: u64,
    steps: u64,
    /// Processor time.
    used: Duration,
    /// How often each kind of fault happened.
    reach: BTreeMap<&'static str, u64>,
}

impl Total {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.steps += report.steps;
        for (what, count) in &report.reach {
            *self.reach.entry(what).or_default() += count;
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for (what, count) in other.reach {
            *self.reach.entry(what).or_default() += count;
        }
        let (runs, steps) = (self.runs + other.runs, self.steps + other.steps);
        Self { runs, steps, used: self.used + other.used, ..self }
    }
}

/// Processor time of this thread.
fn used() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Lets no other worker begin a run when one panics, because a repetition differs.
struct EndsAll<'a>(&'a AtomicU64);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.0.store(u64::MAX / 2, Ordering::Relaxed);
        }
    }
}

/// The sum of the runs of these seeds, or the first violation. Those before `once` run twice.
fn run_all(first: u64, last: u64, once: u64) -> Result<Total, Box<(Plan, Report)>> {
    let next = AtomicU64::new(first);
    let worker = || {
        let _end = EndsAll(&next);
        let (mut total, began) = (Total::default(), used());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let plan = Plan { only: None, ..Plan::of_seed_and_environment(seed) };
            if plan.seed > last {
                total.used = used().saturating_sub(began);
                return Ok(total);
            }
            let report = if plan.seed < once {
                let report = replay(plan.clone());
                total.add(&report);
                report
            } else {
                run(&plan).unwrap()
            };
            if report.violation.is_some() {
                next.store(last + 1, Ordering::Relaxed);
                return Err(Box::new((plan, report)));
            }
            total.add(&report);
        }
    };
    let workers = available_parallelism().map_or(1, usize::from);
    let ended: Vec<_> = scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|it| it.join().unwrap()).collect()
    });
    ended.into_iter().try_fold(Total::default(), |sum, total| Ok(sum.merge(total?)))
}

/// Seeds that CI runs; all kinds of faults happen in them.
const SEEDS: u64 = 64;

#[test]
fn replicas_violate_no_claim() {
    let first = number_of("SIMULATION_FIRST").unwrap_or(1);
    let seeds = number_of("SIMULATION_RUNS").unwrap_or(SEEDS);
    let twice = number_of("SIMULATION_REPLAYS").unwrap_or(8);
    let began = Instant::now();
    let total = run_all(first, first + seeds - 1, first + twice).unwrap_or_else(|found| {
        let (plan, report) = *found;
        let (shorter, shown) = shrink(&plan, &report).unwrap();
        let (violation, found) = (report.violation.unwrap(), shown.violation.unwrap());
        let (seed, faults) = (plan.seed, shown.happened.len());
        panic!("seed {seed}: {violation}\nafter {faults} events: {found}\n{}", shorter.command());
    });
    let Total { runs, steps, used, reach } = total;
    let each = used / u32::try_from(runs).unwrap();
    // Past the test harness, which shows what a test prints only when it fails.
    writeln!(
        std::io::stdout(),
        "simulation: {runs} runs of {seeds} seeds from {first}, {steps} steps, {:.1?}; \
         {each:.1?} of processor time each; {reach:?}",
        began.elapsed()
    )
    .unwrap();
    let missing: Vec<_> = KINDS.iter().filter(|kind| !reach.contains_key(**kind)).collect();
    assert!(missing.is_empty() || seeds < SEEDS, "never happened: {missing:?}");
}

/// What has to happen in the runs.
const KINDS: [&str; 43] = [
    "429",
    "5xx after the effect",
    "5xx without effect",
    "AWS answer lost",
    "AWS call delayed without an answer",
    "AWS call lost",
    "AWS call throttled",
    "AWS shows a resource late",
    "AWSCluster changed",
    "AWSCluster created",
    "AWSCluster deleted",
    "Cluster created",
    "Cluster deleted",
    "Node changes",
    "Node joins",
    "Node leaves",
    "Node replaced",
    "answer lost",
    "compaction",
    "connection lost",
    "connection lost before the effect",
    "crash",
    "crash after an AWS call",
    "crash after an AWS call, with an effect that is shown late",
    "crash before an AWS call",
    "member fails",
    "member is silent",
    "member is slow",
    "member is well",
    "member refuses",
    "event doubled",
    "event reordered",
    "event skipped",
    "infrastructure ready",
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

/// Runs a plan twice, and expects the same trace.
fn replay(plan: Plan) -> Report {
    let plan = Plan { keeps_trace: true, ..plan };
    let (one, two) = (run(&plan).unwrap(), run(&plan).unwrap());
    // Which claim is violated says more than where two traces begin to differ.
    if let Some(report) = [&one, &two].into_iter().find(|it| it.violation.is_some()) {
        return report.clone();
    }
    let differs = one.trace.iter().zip(&two.trace).find(|(one, two)| one != two);
    assert_eq!(differs, None, "{}: the traces differ", plan.command());
    assert_eq!(one.trace.len(), two.trace.len(), "{}: one trace is longer", plan.command());
    assert_eq!(one.steps, two.steps, "{}: one run has more steps", plan.command());
    one
}

#[test]
fn a_seed_is_replayed() {
    let Some(plan) = Plan::of_environment() else {
        drop(replay(Plan::new(0)));
        return;
    };
    let report = replay(plan);
    println!("{}\n{:?}", report.trace.join("\n"), report.violation);
}

/// One in so many plans of a scenario runs in CI.
const ONE_IN: u64 = 3;
/// One in so many of them runs twice.
const REPLAYS_OF: usize = 8;

/// Plays the scenario without a fault and once for each plan of a pattern, and expects the same end; with the
/// RangeAllocator and with ClusterCIDRs. Of each of the claims a seeded fault shows that these plans notice a violation.
fn end_alike(pattern: Pattern, test: &str, claims: &str) {
    let began = Instant::now();
    let first = |has_cluster_cidrs| {
        let plan = Plan::of_script(Script::First, has_cluster_cidrs);
        let report = replay(plan.clone());
        if let Some(violation) = report.violation {
            panic!("{violation}\n{}", plan.command());
        }
        (plan, report.record)
    };
    let firsts = [first(false), first(true)];
    let each = firsts.iter().map(|(plan, record)| (plans(pattern, plan, record), record));
    let all = each.flat_map(|(plans, record)| plans.into_iter().map(move |plan| (plan, record)));
    let all: Vec<_> = all.collect();
    let one_in = number_of("SIMULATION_ONE_IN").unwrap_or(ONE_IN);
    let chosen: Vec<_> = all.iter().step_by(usize::try_from(one_in).unwrap()).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        let began = used();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some((plan, first)) = chosen.get(nth) else { break };
            let is_repeated = nth.is_multiple_of(REPLAYS_OF);
            let report = if is_repeated { replay(plan.clone()) } else { run(plan).unwrap() };
            if let Some(differs) = difference(plan, first, &report) {
                failed.lock().unwrap().push(format!("{differs}\n{}", plan.command()));
            }
        }
        used().saturating_sub(began)
    };
    let workers = available_parallelism().map_or(1, usize::from);
    let used: Duration = scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    let (some, of) = (chosen.len(), all.len());
    let part = if one_in == 1 { String::new() } else { format!("one in {one_in}: ") };
    // Past the test harness, as above.
    let (bounds, took) = (pattern.bounds(), began.elapsed());
    let line = format!("checked: {claims} | {test} | {bounds} | {part}{some} of {of} plans\n");
    let line = format!("{line}{took:.1?}; {used:.1?} of processor time\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    assert!(of > 60, "the scenario has {of} points");
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}\n{} of {some} plans", failed.join("\n"), failed.len());
}

#[test]
fn a_restart_on_an_older_view_changes_nothing_of_the_end() {
    end_alike(Pattern::Stale, "a_restart_on_an_older_view_changes_nothing_of_the_end", "C6, C8");
}

#[test]
fn a_crash_at_any_write_changes_nothing_of_the_end() {
    end_alike(Pattern::Intermediate, "a_crash_at_any_write_changes_nothing_of_the_end", "C1, C10");
}

#[test]
fn events_that_no_watch_shows_change_nothing_of_the_end() {
    end_alike(Pattern::Unobserved, "events_that_no_watch_shows_change_nothing_of_the_end", "C8");
}
