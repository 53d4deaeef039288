use proptest::prelude::*;

use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const POLICY: GuardPolicy =
    GuardPolicy { ratio: 0.5, min: 5, interval: s(5), timeout: s(2), hold: s(30) };

/// How a member answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    NewConnection,
    OpenConnection,
    None,
}

/// A guard, its clock and the members of a fleet, which were all probed just now.
struct Bench {
    guard: Guard,
    start: Instant,
    second: u64,
    members: Vec<Reach>,
    waits: bool,
}

/// Half of two references, none of two, and no references.
const UP: (usize, usize) = (1, 2);
const SILENT: (usize, usize) = (0, 2);
const NO_REFERENCE: (usize, usize) = (0, 0);

impl Bench {
    fn new(members: usize, failing: usize) -> Self {
        let start = Instant::now() + s(1000);
        let members = vec![Reach::NewConnection; members];
        let guard = Guard::new(POLICY, start);
        let mut bench = Self { guard, start, second: 0, members, waits: false };
        bench.fail(failing);
        bench
    }

    fn fail(&mut self, failing: usize) {
        self.members[..failing].fill(Reach::None);
    }

    fn at(&self, second: u64) -> Instant {
        self.start + s(second)
    }

    fn round(&mut self, (up, references): (usize, usize), api: bool) -> Ruling {
        self.second += 5;
        let began = self.at(self.second);
        let members = self.members.iter().zip(0..).map(|(&reach, member)| Evidence {
            member,
            started: began,
            answers: reach != Reach::None,
            connected: (reach == Reach::NewConnection).then_some(began),
            unreachable_since: None,
            waits: self.waits && reach == Reach::None,
        });
        let members: Vec<_> = members.collect();
        let round =
            Round { began, ended: began, local_down: false, api, references_up: up, references };
        self.guard.judge(&round, &members)
    }

    /// The state after each of so many rounds.
    fn states(&mut self, rounds: usize, references: (usize, usize), api: bool) -> Vec<GuardState> {
        (0..rounds).map(|_| self.round(references, api).state).collect()
    }
}

use GuardState::{Clear, MassOutage, Partition, Suspect};

/// rule:our-outage-is-not-theirs
#[test]
fn a_member_that_fails_alone_is_published_after_a_round_that_began_later() {
    for (references, api) in [(UP, false), (NO_REFERENCE, true)] {
        let mut bench = Bench::new(20, 1);
        let ruling = bench.round(references, api);
        assert_eq!((ruling.state, ruling.release), (Clear, Some(bench.at(5))));
    }
    // Answers of members alone prove that the network worked for as long as they were gathered.
    let mut bench = Bench::new(20, 1);
    bench.states(20, SILENT, false);
    let ruling = bench.round(SILENT, false);
    assert_eq!(ruling.release, Some(bench.at(bench.second - 12)));
}

/// rule:our-outage-is-not-theirs
#[test]
fn without_any_answer_nothing_is_published_but_the_partition_after_half_a_minute() {
    for references in [SILENT, NO_REFERENCE] {
        let mut bench = Bench::new(20, 20);
        assert_eq!(bench.states(2, references, false), [Suspect, Partition]);
        for second in (15..200).step_by(5) {
            let ruling = bench.round(references, false);
            assert_eq!((ruling.state, ruling.release), (Partition, None));
            assert_eq!(ruling.publish_partition, second >= 40, "{second}");
        }
    }
}

#[test]
fn a_partition_ends_when_few_members_fail_for_fifteen_seconds() {
    let mut bench = Bench::new(20, 20);
    bench.states(3, SILENT, false);
    bench.members.fill(Reach::NewConnection);
    for (expected, forgive) in [(Partition, false), (Partition, false), (Partition, false)] {
        let ruling = bench.round(UP, true);
        assert_eq!((ruling.state, ruling.forgive), (expected, forgive));
    }
    let ruling = bench.round(UP, true);
    assert_eq!((ruling.before, ruling.state, ruling.forgive), (Partition, Clear, true));
}

#[test]
fn an_outage_of_many_members_is_published_when_references_answer_in_three_rounds() {
    let mut bench = Bench::new(20, 12);
    assert_eq!(bench.round(UP, true).state, Suspect);
    assert_eq!(bench.states(3, UP, true), [Suspect, Suspect, MassOutage]);
    assert!(bench.round(UP, true).release.is_some());
    // Nothing is published without a sign of the network, however many were.
    assert_eq!(bench.round(SILENT, true).release, None);
}

#[test]
fn members_that_come_back_are_no_outage() {
    let mut bench = Bench::new(100, 90);
    bench.states(2, UP, true);
    for answering in 1..8 {
        bench.members[answering * 5..answering * 5 + 5].fill(Reach::NewConnection);
        assert_eq!(bench.round(UP, true).state, if answering < 5 { Suspect } else { Partition });
    }
}

#[test]
fn without_references_an_outage_of_all_members_is_a_partition() {
    let mut bench = Bench::new(20, 20);
    assert_eq!(bench.round(NO_REFERENCE, true).state, Suspect);
    bench.states(30, NO_REFERENCE, true);
    assert_eq!(bench.guard.state(), Partition);
    // Under five members only the targets count.
    let mut bench = Bench::new(4, 4);
    assert_eq!(bench.states(3, NO_REFERENCE, true), [Clear; 3]);
}

#[test]
fn references_that_are_dead_hold_members_up_for_a_minute_only() {
    let mut bench = Bench::new(20, 1);
    assert_eq!(bench.round(UP, true).state, Clear);
    let states = bench.states(20, SILENT, true);
    assert_eq!(states.iter().position(|state| *state == Clear), Some(11), "{states:?}");
    assert!(!states.contains(&Partition), "{states:?}");
    assert!(bench.round(SILENT, true).release.is_some());
}

#[test]
fn references_that_never_answered_are_no_partition_while_the_api_answers() {
    let mut bench = Bench::new(1, 0);
    let states = bench.states(20, SILENT, true);
    assert!(!states.contains(&Partition), "{states:?}");
    assert_eq!(states.last(), Some(&Clear));
}

#[test]
fn open_connections_are_no_sign_of_the_network() {
    let mut bench = Bench::new(20, 5);
    bench.members[5..].fill(Reach::OpenConnection);
    for references in [SILENT, NO_REFERENCE] {
        let mut bench = Bench { guard: Guard::new(POLICY, bench.start), ..bench_of(&bench) };
        let states = bench.states(20, references, true);
        assert!(!states.contains(&Clear) && !states.contains(&MassOutage), "{states:?}");
    }
    // Members are asked over new ones then, and once in ten seconds.
    let samples: Vec<_> = (0..4).map(|_| bench.round(SILENT, true).sample.len()).collect();
    assert_eq!(samples, [15, 0, 15, 0]);
    bench.members[5..8].fill(Reach::NewConnection);
    bench.states(20, SILENT, true);
    assert_eq!(bench.guard.state(), MassOutage);
}

fn bench_of(bench: &Bench) -> Bench {
    Bench {
        guard: bench.guard.clone(),
        start: bench.start,
        second: 0,
        members: bench.members.clone(),
        waits: bench.waits,
    }
}

#[test]
fn members_that_were_down_before_do_not_count() {
    let mut guard = Guard::new(POLICY, Instant::now());
    let began = Instant::now() + s(1000);
    let member = |member: u64| Evidence {
        member,
        started: began,
        answers: member >= 18,
        connected: None,
        unreachable_since: (member < 18).then_some(began),
        waits: false,
    };
    let members: Vec<_> = (0..20).map(member).collect();
    let round = Round {
        began,
        ended: began,
        local_down: false,
        api: true,
        references_up: 0,
        references: 0,
    };
    let ruling = guard.judge(&round, &members);
    assert_eq!(ruling.state, Clear);
    assert!(ruling.ratio < 0.01, "{}", ruling.ratio);
    let down = Round { local_down: true, ..round };
    assert_eq!(guard.judge(&down, &members).state, Suspect, "this machine has no network");
}

proptest! {
    /// rule:our-outage-is-not-theirs
    #[test]
    fn nothing_is_released_without_a_sign_of_the_network_and_all_ends_clear(
        rounds in prop::collection::vec((0..3_usize, any::<bool>(), 0..31_usize, any::<bool>()), 1..60),
        references in 0..3_usize,
    ) {
        let mut bench = Bench::new(30, 0);
        for (up, api, failing, over_new) in rounds {
            let reach = if over_new { Reach::NewConnection } else { Reach::OpenConnection };
            bench.members.fill(reach);
            bench.fail(failing);
            let up = up.min(references);
            let ruling = bench.round((up, references), api);
            let witness = references > 0 && 2 * up >= references;
            let members = over_new && failing <= 27;
            if !(witness || members || references == 0 && api) {
                prop_assert_eq!(ruling.release, None);
                prop_assert!(ruling.state != Clear && ruling.state != MassOutage);
            }
            prop_assert!(ruling.release.is_none_or(|at| at <= bench.at(bench.second)));
            prop_assert!(!ruling.publish_partition || ruling.state == Partition);
        }
        bench.members.fill(Reach::NewConnection);
        bench.states(8, (references, references), true);
        prop_assert_eq!(bench.guard.state(), Clear);
    }
}
