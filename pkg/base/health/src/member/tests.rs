//! Tables of what is published after each probe, and a property against another definition of it.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::{Cadence, Code, Damping, Endpoints, ProbePath, Thresholds};

const S: fn(u64) -> Duration = Duration::from_secs;

pub(super) fn policy(failure: u32, success: u32) -> Policy {
    Policy {
        cadence: Cadence { period: S(10), timeout: S(3), confirm: S(10), jitter: 0.0 },
        thresholds: Thresholds { failure, success },
        damping: Damping { transitions: 0, window: S(600), min_success: 3 },
        stale_after: S(0),
        inherited_after: S(0),
        heartbeat: S(300),
    }
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn finding(letter: char) -> Finding {
    match letter {
        'k' => Finding::ok(ProbePath::Readyz),
        'x' => Finding::failed(Code::Timeout, ProbePath::Readyz),
        'u' => Finding::failed(Code::Http(500), ProbePath::Readyz),
        'v' => Finding::failed(Code::OwnLimit, ProbePath::Readyz),
        'c' => Finding::failed(Code::SecretMissing, ProbePath::Readyz),
        other => panic!("no finding {other}"),
    }
}

/// A cluster with its clocks. Probes start every 10 s from second 0.
struct Bench {
    member: Member,
    policy: Policy,
    start: Instant,
    second: u64,
    ready: String,
    offline: String,
}

impl Bench {
    fn new(policy: Policy, published: Option<Published>) -> Self {
        let start = Instant::now();
        let arrival = Arrival { published, ..Arrival::default() };
        let member = Member::new(arrival, &policy, start);
        Self { member, policy, start, second: 0, ready: String::new(), offline: String::new() }
    }

    fn now(&self) -> Moment {
        let wall = wall(i64::try_from(self.second).unwrap());
        Moment { monotonic: self.start + S(self.second), wall }
    }

    /// One letter per probe; `~` changes the endpoint, `s` lets the sweeper find it stale.
    fn play(&mut self, script: &str) -> Vec<Effect> {
        script.chars().filter_map(|letter| self.step(letter)).collect()
    }

    fn step(&mut self, letter: char) -> Option<Effect> {
        match letter {
            '~' => {
                self.member.retarget(self.now().monotonic);
                return None;
            }
            's' => {
                let stale = self.member.stale_at(&self.policy).unwrap();
                let now = Moment { monotonic: stale, ..self.now() };
                self.member.sweep(&self.policy, now);
            }
            letter => {
                let started = self.now();
                let report = Report {
                    finding: finding(letter),
                    started,
                    took: S(1),
                    attempts: 1,
                    endpoints: Endpoints { down: 0, total: 1 },
                    detail: None,
                };
                self.member.begin(started.monotonic);
                let effect =
                    self.member.complete(&report, &self.policy, started.monotonic + S(1), 0.5);
                self.note();
                return Some(effect);
            }
        }
        self.note();
        None
    }

    fn note(&mut self) {
        let published = self.member.published().unwrap();
        self.ready.push_str(&published.ready.status.as_str()[..1]);
        self.offline.push_str(&published.offline.status.as_str()[..1]);
        self.second += 10;
    }
}

/// rule:thresholds-count-consecutive-probes
#[test]
fn what_is_published_follows_runs_of_equal_results() {
    // (failure and success threshold, probes, Ready after each, its transition time, Offline at last)
    let long = "k".repeat(101) + "xkk";
    let rows: [(u32, u32, &str, &str, i64, &str); 19] = [
        (3, 1, "k", "T", 0, "F"),
        (3, 1, "x", "F", 0, "T"),
        (3, 1, "kkkkkkkkkkxkk", "TTTTTTTTTTTTT", 0, "F"),
        (3, 1, "kkkkkxxxx", "TTTTTTTFF", 70, "T"),
        (3, 1, "kxxkxxkxxk", "TTTTTTTTTT", 0, "F"),
        (3, 1, "kxkxkxkxkx", "TTTTTTTTTT", 0, "F"),
        (3, 1, "kxxxk", "TTTFT", 40, "F"),
        (3, 3, "kxxxkkk", "TTTFFFT", 60, "F"),
        (3, 3, "kxxxkkxkkk", "TTTFFFFFFT", 90, "F"),
        (3, 1, "kuxu", "TTTF", 30, "F"),
        (3, 1, "kxxxuux", "TTTFFFF", 30, "T"),
        (1, 1, "kxk", "TFT", 20, "F"),
        (3, 1, "kck", "TTT", 0, "F"),
        (3, 1, "kccck", "TTTFT", 40, "F"),
        (3, 1, "ck", "FT", 10, "F"),
        (3, 1, "kkk~x", "TTTF", 30, "T"),
        (3, 3, "kksk", "TTUT", 30, "F"),
        // rule:what-we-could-not-ask-changes-nothing
        (3, 1, "kvvvvxvxvx", "TTTTTTTTTF", 90, "T"),
        (3, 2, "xkvk", "FFFT", 30, "F"),
    ];
    for (failure, success, probes, ready, since, offline) in rows {
        let mut bench = Bench::new(policy(failure, success), None);
        bench.play(probes);
        assert_eq!(bench.ready, ready, "{failure}/{success} {probes}");
        let published = bench.member.published().unwrap();
        assert_eq!(published.ready.since, wall(since), "{failure}/{success} {probes}");
        assert_eq!(
            &published.offline.status.as_str()[..1],
            offline,
            "{failure}/{success} {probes}"
        );
    }
    let mut bench = Bench::new(policy(100, 1), None);
    bench.play(&long);
    assert_eq!(bench.ready, "T".repeat(104));
    assert_eq!(bench.member.published().unwrap().ready.since, wall(0));
}

/// rule:what-we-could-not-ask-changes-nothing
#[test]
fn a_cluster_that_could_not_be_asked_grows_stale_and_its_task_is_not_stuck() {
    let policy = policy(3, 1);
    let mut bench = Bench::new(policy, None);
    bench.play("k");
    let (stale, stuck) = (bench.member.stale_at(&policy), bench.member.stuck_at(&policy));
    bench.play("vv");
    assert_eq!(bench.member.stale_at(&policy), stale);
    assert_eq!(bench.member.stuck_at(&policy), stuck + S(20));
    assert_eq!(bench.member.due(), Some(bench.start + S(30)));
    bench.play("s");
    assert_eq!(bench.ready, "TTTU");
}

/// rule:transition-time-follows-status
#[test]
fn the_transition_time_of_offline_moves_when_offline_does() {
    let mut bench = Bench::new(policy(3, 1), None);
    let mut moved = Vec::new();
    for letter in "kxxxuuxccc".chars() {
        bench.step(letter);
        let offline = bench.member.published().unwrap().offline;
        if moved.last() != Some(&offline.since) {
            moved.push(offline.since);
        }
    }
    assert_eq!(bench.offline, "FFFTFFTUUU");
    assert_eq!(moved, [0, 30, 40, 60, 70].map(wall));
    assert_eq!(bench.member.published().unwrap().ready.since, wall(30));
}

/// rule:a-restart-changes-nothing
#[test]
fn a_restart_goes_on_from_what_the_object_says() {
    let seeded = |standing| Published::seed(standing, wall(-500), wall(-500), Some(wall(-10)));
    let mut bench = Bench::new(policy(3, 1), Some(seeded(Standing::Ready)));
    let effects = bench.play("xxk");
    assert_eq!(bench.ready, "TTT");
    assert_eq!(bench.member.published().unwrap().ready.since, wall(-500));
    assert!(effects.iter().all(|effect| effect.change == Change::Nothing));

    let mut bench = Bench::new(policy(3, 2), Some(seeded(Standing::Offline)));
    let effects = bench.play("xkk");
    assert_eq!(bench.ready, "FFT");
    assert_eq!((effects[0].change, effects[1].change), (Change::Nothing, Change::Nothing));

    let mut bench = Bench::new(policy(3, 3), Some(seeded(Standing::Unknown)));
    bench.play("k");
    assert_eq!(bench.ready, "T");
}

#[test]
fn effects_tell_transitions_other_reasons_and_first_failures() {
    let mut bench = Bench::new(policy(2, 1), None);
    let effects = bench.play("kxxuuk");
    let ready = |from: Option<Status>, to| Change::Ready { from, to };
    let changes: Vec<_> = effects.iter().map(|effect| effect.change).collect();
    let (well, ill) = (Status::True, Status::False);
    assert_eq!(
        changes,
        [
            ready(None, well),
            Change::Nothing,
            ready(Some(well), ill),
            Change::Reason,
            Change::Nothing,
            ready(Some(ill), well),
        ]
    );
    let first: Vec<_> = effects.iter().map(|effect| effect.first_failure).collect();
    assert_eq!(first, [false, true, false, false, false, false]);
}

/// rule:a-restart-changes-nothing
#[test]
fn a_cluster_taken_over_while_it_fails_has_no_first_failure_again() {
    // (what the object says, whether a failure is the first of a run)
    let rows = [
        (None, true),
        (Some(Standing::Ready), true),
        (Some(Standing::Unknown), true),
        (Some(Standing::Offline), false),
        (Some(Standing::NotReady), false),
    ];
    for (standing, first) in rows {
        let published = standing.map(|it| Published::seed(it, wall(-500), wall(-500), None));
        let effects = Bench::new(policy(3, 1), published).play("x");
        assert_eq!(effects[0].first_failure, first, "{standing:?}");
    }
}

#[test]
fn the_probe_time_is_the_start_of_the_last_probe_whatever_it_found() {
    let mut bench = Bench::new(policy(3, 1), None);
    for (letter, second) in "kxkxxxxk".chars().zip((0..).step_by(10)) {
        bench.step(letter);
        assert_eq!(bench.member.published().unwrap().probed, Some(wall(second)));
    }
}

/// rule:unwatched-clusters-become-unknown
#[test]
fn a_cluster_that_nobody_probes_becomes_unknown_in_time_and_keeps_its_probe_time() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let completed = bench.start + S(1);
    assert_eq!(bench.member.stale_at(&bench.policy), Some(completed + S(40)));
    let at = |second: u64| Moment { monotonic: completed + S(second), wall: wall(41) };
    assert_eq!(bench.member.clone().sweep(&bench.policy, at(39)), None);
    let effect = bench.member.sweep(&bench.policy, at(40)).unwrap();
    let from = Some(Status::True);
    assert_eq!(effect.change, Change::Ready { from, to: Status::Unknown });
    let published = bench.member.published().unwrap();
    assert_eq!((published.probed, published.ready.since), (Some(wall(0)), wall(41)));
    assert_eq!(bench.member.sweep(&bench.policy, at(4000)), None);

    let mut fresh = Bench::new(policy(3, 1), None);
    let at = |second: u64| Moment { monotonic: fresh.start + S(second), wall: wall(0) };
    let (before, after) = (at(59), at(60));
    assert_eq!(fresh.member.sweep(&fresh.policy, before), None);
    assert!(fresh.member.sweep(&fresh.policy, after).is_some());
    assert_eq!(fresh.member.published().unwrap().probed, None);
}

/// rule:events-do-not-hurry-failures
#[test]
fn failures_of_extra_probes_count_only_half_a_confirm_interval_apart() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let mut fail_at = |second: u64, triggered: bool| {
        bench.second = second;
        if triggered {
            bench.member.trigger(bench.now().monotonic);
        }
        bench.step('x');
        (bench.member.failures(), bench.member.due().unwrap() - bench.start)
    };
    // A failure that counts puts the next regular probe a confirm interval later; others do not.
    let rows = [(10, false), (11, true), (14, true), (15, true), (19, true), (25, false)];
    let counted = rows.map(|(second, triggered)| fail_at(second, triggered));
    let expected = [(1, 20), (1, 20), (1, 20), (2, 25), (2, 25), (3, 35)];
    assert_eq!(counted, expected.map(|(failures, due)| (failures, S(due))));
    assert_eq!(bench.ready.find('F'), Some(6));
}

#[test]
fn a_run_that_contradicts_what_is_published_is_confirmed_sooner() {
    let slow = Cadence { period: S(300), timeout: S(5), confirm: S(10), jitter: 0.0 };
    let mut bench = Bench::new(Policy { cadence: slow, ..policy(3, 2) }, None);
    let mut waits = Vec::new();
    for letter in "kxxxxkk".chars() {
        bench.step(letter);
        let due = bench.member.due().unwrap() - bench.start;
        waits.push(due.as_secs() + 10 - bench.second);
        bench.second = due.as_secs();
    }
    assert_eq!(waits, [300, 10, 10, 300, 300, 10, 300]);
}

/// rule:stuck-tasks-are-replaced
#[test]
fn a_task_without_a_completed_probe_is_stuck_after_two_rounds() {
    let mut bench = Bench::new(policy(3, 1), None);
    assert_eq!(bench.member.stuck_at(&bench.policy), bench.start + S(25));
    bench.play("k");
    bench.member.begin(bench.start + S(10));
    assert_eq!(bench.member.stuck_at(&bench.policy), bench.start + S(1 + 25));
    bench.member.restart(bench.start + S(26));
    assert_eq!(bench.member.stuck_at(&bench.policy), bench.start + S(26 + 25));
    assert!(bench.member.due().unwrap() <= bench.start + S(26));
}

#[test]
fn a_shorter_period_does_not_wait_for_the_end_of_a_longer_one() {
    let slow = Cadence { period: S(300), timeout: S(5), confirm: S(10), jitter: 0.0 };
    let mut bench = Bench::new(Policy { cadence: slow, ..policy(3, 1) }, None);
    bench.play("k");
    assert_eq!(bench.member.due(), Some(bench.start + S(300)));
    let before = bench.policy;
    bench.member.follow(&before, &policy(3, 1), bench.start + S(4));
    assert_eq!(bench.member.due(), Some(bench.start + S(10)));
    bench.member.follow(&before, &policy(3, 1), bench.start + S(50));
    assert_eq!(bench.member.due(), Some(bench.start + S(10)));
}

/// rule:limits-hold-from-now-on
#[test]
fn a_shorter_period_calls_nobody_unknown_or_stuck_and_spreads_those_that_are_due() {
    let slow = Cadence { period: S(300), timeout: S(5), confirm: S(10), jitter: 0.0 };
    let (before, after) = (Policy { cadence: slow, ..policy(3, 1) }, policy(3, 1));
    let mut tenths = [0_u32; 10];
    for number in 0..1000 {
        let mut bench = Bench::new(before, None);
        bench.member.hash = crate::hash(&format!("uid-{number}"));
        bench.play("k");
        let now = bench.start + S(200);
        bench.member.follow(&before, &after, now);
        assert_eq!(bench.member.stale_at(&after), Some(now + S(40)));
        assert_eq!(bench.member.stuck_at(&after), now + S(25));
        let wait = bench.member.due().unwrap() - now;
        tenths[usize::try_from(wait.as_secs()).unwrap()] += 1;
    }
    assert!(tenths.iter().all(|count| (60..140).contains(count)), "{tenths:?}");
}

/// rule:limits-hold-from-now-on
#[test]
fn a_policy_with_the_same_limits_excuses_no_silence() {
    let mut bench = Bench::new(policy(3, 1), None);
    bench.play("k");
    let before = bench.policy;
    bench.member.follow(&before, &policy(5, 2), bench.start + S(30));
    assert_eq!(bench.member.stale_at(&before), Some(bench.start + S(1) + S(40)));
}

/// rule:damping-delays-good-news-only
#[test]
fn a_flapping_cluster_needs_three_successes_and_fails_as_soon_as_ever() {
    let damping = Damping { transitions: 6, window: S(600), min_success: 3 };
    let mut bench = Bench::new(Policy { damping, ..policy(1, 1) }, None);
    let effects = bench.play("kxkxkxkxkkxkkk");
    assert_eq!(bench.ready, "TFTFTFTFFFFFFT");
    let told: Vec<_> = effects.iter().filter(|effect| effect.flapping).collect();
    assert_eq!(told.len(), 1);
    assert!(bench.member.is_damped());
    bench.play("x");
    assert!(bench.ready.ends_with("TF"));
}

#[test]
fn a_member_is_small() {
    assert!(size_of::<Member>() <= 1280, "{}", size_of::<Member>());
}

/// What is published, defined by looking back over all results since the last change of target,
/// instead of by counting along.
fn published_by_definition(results: &[bool], failure: usize, success: usize) -> Vec<bool> {
    let mut published: Vec<bool> = Vec::new();
    for end in 1..=results.len() {
        let run = |value: bool, length: usize| {
            end >= length && results[end - length..end].iter().all(|&result| result == value)
        };
        published.push(match published.last() {
            None => results[0],
            Some(true) => !run(false, failure),
            Some(false) => run(true, success),
        });
    }
    published
}

proptest! {
    /// rule:thresholds-count-consecutive-probes
    #[test]
    fn counting_along_agrees_with_looking_back(
        results in prop::collection::vec(any::<bool>(), 1..200),
        (failure, success) in (1..6_u32, 1..6_u32),
        kinds in "[xuc]{200}",
    ) {
        let probes: String = results.iter().zip(kinds.chars())
            .map(|(&ok, kind)| if ok { 'k' } else { kind }).collect();
        let mut bench = Bench::new(policy(failure, success), None);
        bench.play(&probes);
        let expected: String = published_by_definition(&results, failure as usize, success as usize)
            .into_iter().map(|ready| if ready { 'T' } else { 'F' }).collect();
        // The first result of all is published as it is, whatever the thresholds say.
        prop_assert_eq!(bench.ready, expected);
    }
}

mod explaining {
    use super::*;
    use crate::explain;

    #[test]
    fn a_message_tells_code_run_and_next_probe() {
        let mut bench = Bench::new(policy(3, 1), None);
        bench.play("k");
        assert_eq!(explain(&bench.member, &bench.now()), "/readyz responded with ok");
        bench.play("xxx");
        bench.second = 31;
        let told = "cluster is not reachable: timeout; failed 3 times in a row, next probe 1970-01-12T13:47:20Z";
        assert_eq!(explain(&bench.member, &bench.now()), told);
    }

    /// rule:messages-are-one-short-line
    #[test]
    fn a_long_detail_cuts_off_neither_the_run_nor_the_next_probe() {
        let mut bench = Bench::new(policy(3, 1), None);
        let report = Report {
            finding: finding('x'),
            started: bench.now(),
            took: S(1),
            attempts: 3,
            endpoints: Endpoints { down: 2, total: 3 },
            detail: Some("why ".repeat(100).into()),
        };
        bench.member.begin(bench.start);
        bench.member.complete(&report, &bench.policy, bench.start, 0.5);
        let told = explain(&bench.member, &bench.now());
        assert!(told.starts_with("cluster is not reachable: timeout: why why"), "{told}");
        let run = "; 2 of 3 API endpoints down; failed once, next probe 1970-01-12T13:46:50Z";
        assert!(told.ends_with(&format!("…{run}")), "{told}");
        assert_eq!(told.chars().count(), crate::MESSAGE_MAX);
    }

    #[test]
    fn a_ready_cluster_tells_which_of_its_addresses_are_down() {
        let mut bench = Bench::new(policy(3, 1), None);
        let report = Report {
            finding: finding('k'),
            started: bench.now(),
            took: S(1),
            attempts: 2,
            endpoints: Endpoints { down: 1, total: 3 },
            detail: None,
        };
        bench.member.begin(bench.start);
        bench.member.complete(&report, &bench.policy, bench.start, 0.5);
        let told = "/readyz responded with ok; 1 of 3 API endpoints down";
        assert_eq!(explain(&bench.member, &bench.now()), told);
    }
}
