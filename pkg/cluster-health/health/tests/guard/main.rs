//! A simulation of the guard: thousands of members, whose process is cut off from them in every way, and restarted, or
//! given members of another replica, while it is. Time is virtual and every choice comes from a seed. `GUARD_MEMBERS` and `GUARD_PARTITIONS` make it larger, and
//! `GUARD_SEED` another one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, reason = "the summary of a run")]

mod fleet;
mod network;
#[path = "../simulation/random.rs"]
mod random;

use fleet::Fleet;
use health::{GuardState, Health};

/// Until a member that fails is published: a period, two confirmations, each with jitter, and the timeout.
const G4: u64 = 36;
const PERIOD: u64 = 10;
/// Members that are down before a partition, and that go down within it.
const DOWN: usize = 30;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// rule:our-outage-is-not-theirs
#[test]
fn no_partition_has_a_member_published_as_unreachable_that_answers() {
    let members = usize::try_from(number("GUARD_MEMBERS", 600)).unwrap();
    let partitions = number("GUARD_PARTITIONS", 24);
    let seed = number("GUARD_SEED", 7);
    println!("members {members}, partitions {partitions}, seed {seed}");
    let mut fleet = Fleet::new(members, 2, seed);
    fleet.run(30);
    let down = DOWN.min(members / 20);
    for number in 0..down {
        fleet.members[number].down_since = Some(fleet.now);
    }
    fleet.run(60);
    assert!((0..down).all(|number| fleet.health(number) == Some(Health::Unreachable)));
    for partition in 0..partitions {
        let dying = down..2 * down;
        let seconds = cut(&mut fleet, partition, dying.clone());
        // The members that went down meanwhile are told, and no other one.
        fleet.run(60);
        for number in 0..members {
            let expected = if number < 2 * down { Health::Unreachable } else { Health::Ready };
            let published = fleet.health(number);
            assert_eq!(published, Some(expected), "{number}, partition {partition} of {seconds} s");
        }
        for number in dying {
            fleet.members[number].down_since = None;
        }
        fleet.run(60);
        assert_eq!(fleet.state(), GuardState::Clear, "partition {partition}");
    }
    println!("{} probes, rounds by state {:?}", fleet.probes, fleet.states);
    assert_eq!(fleet.false_alarms, 0);
}

/// A cut of one second to ten minutes, in which members go down, and the process restarts or members move to it; returns
/// its length.
fn cut(fleet: &mut Fleet, partition: u64, dying: std::ops::Range<usize>) -> u64 {
    // As many of each order of magnitude.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 600")]
    let seconds = 600_f64.powf(fleet.random.share()) as u64;
    let from = fleet.now;
    let kind = fleet.network.cut(from, seconds * 1000, &mut fleet.random);
    let before = fleet.false_alarms;
    let half = seconds / 2;
    fleet.run(half);
    for number in dying {
        fleet.members[number].down_since = Some(fleet.now);
    }
    match partition % 3 {
        0 => fleet.restart(),
        1 => fleet.take_over(0..fleet.members.len() / 2),
        _ => {}
    }
    fleet.run(seconds - half);
    let alarms = fleet.false_alarms - before;
    assert_eq!(alarms, 0, "partition {partition}: {kind:?} of {seconds} s");
    seconds
}

#[test]
fn an_outage_of_most_members_is_published_within_six_periods() {
    for (members, share, references) in [(1000, 6, 2), (1000, 10, 2), (20, 10, 1), (1000, 6, 0)] {
        let mut fleet = Fleet::new(members, references, 11);
        fleet.run(60);
        let down = members * share / 10;
        for number in 0..down {
            fleet.members[number].down_since = Some(fleet.now);
        }
        let before: Vec<_> = (down..members).map(|number| fleet.states_of(number)).collect();
        fleet.run(6 * PERIOD);
        for number in 0..members {
            let expected = if number < down { Health::Unreachable } else { Health::Ready };
            assert_eq!(fleet.health(number), Some(expected), "{number} of {members}");
        }
        let after: Vec<_> = (down..members).map(|number| fleet.states_of(number)).collect();
        assert_eq!(after, before, "a member that answers is touched");
    }
}

#[test]
fn one_member_that_goes_down_waits_for_one_round() {
    for members in [1, 3, 20, 1000] {
        for references in [0, 1, 3] {
            let mut fleet = Fleet::new(members, references, 13);
            fleet.run(60);
            fleet.members[0].down_since = Some(fleet.now);
            fleet.run(G4 + 2);
            let published = fleet.health(0);
            assert_eq!(published, Some(Health::Unreachable), "{members}, {references}");
        }
    }
}
