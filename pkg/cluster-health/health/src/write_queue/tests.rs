use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const S: fn(u64) -> Duration = Duration::from_secs;
/// A period that shortens no wait.
const LONG: Duration = Duration::from_secs(300);

fn queue() -> (WriteQueue<&'static str, u32>, Instant) {
    (WriteQueue::default(), Instant::now())
}

/// rule:newest-state-is-written
#[test]
fn the_newest_state_takes_the_place_and_the_turn_of_an_older_one() {
    let (mut queue, now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    queue.submit("b", 2, Urgency::Change, now);
    queue.submit("a", 3, Urgency::Change, now + S(1));
    assert_eq!(queue.oldest(now + S(2)), S(2));
    assert_eq!(queue.next(now), Some(("a", 3)));
    queue.submit("a", 4, Urgency::Change, now + S(3));
    assert_eq!(queue.next(now), Some(("b", 2)));
    assert_eq!(queue.next(now), None);
    queue.finish(&"a", Written::Done, now, LONG, 0.0);
    assert_eq!(queue.age(&"a", now + S(4)), Some(S(1)));
    assert_eq!(queue.next(now), Some(("a", 4)));
    queue.finish(&"a", Written::Done, now, LONG, 0.0);
    queue.finish(&"b", Written::Done, now, LONG, 0.0);
    assert!(queue.entries.is_empty());
}

#[test]
fn changes_go_before_first_results_and_those_before_heartbeats() {
    let (mut queue, now) = queue();
    queue.submit("beat", 1, Urgency::Heartbeat, now);
    queue.submit("later", 2, Urgency::Heartbeat, now);
    queue.submit("first", 3, Urgency::FirstResult, now);
    queue.submit("news", 4, Urgency::FirstResult, now);
    queue.submit("change", 5, Urgency::Change, now);
    queue.submit("later", 6, Urgency::Change, now);
    queue.submit("news", 7, Urgency::Change, now);
    let order: Vec<_> = std::iter::from_fn(|| queue.next(now)).collect();
    assert_eq!(order, [("change", 5), ("later", 6), ("news", 7), ("first", 3), ("beat", 1)]);
}

/// rule:refused-writes-delay-no-others
#[test]
fn a_change_waits_two_turns_at_most_behind_thousands_of_other_writes() {
    let (mut queue, now) = (WriteQueue::default(), Instant::now());
    let rest =
        [Urgency::FirstResult, Urgency::Heartbeat, Urgency::OtherChange, Urgency::OtherHeartbeat];
    for (key, urgency) in (10_000..20_000).zip(rest.into_iter().cycle()) {
        queue.submit(key, (), urgency, now);
    }
    for key in 0..1000 {
        queue.submit(key, (), Urgency::Change, now);
        let took = turns_until(&mut queue, key, now);
        assert!(took <= 2, "it waited {took} turns");
    }
}

/// rule:writes-are-retried-until-done
#[test]
fn a_refused_write_comes_back_after_growing_waits_for_ever() {
    let (mut queue, mut now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    let mut waits = Vec::new();
    for _ in 0..1000 {
        assert_eq!(queue.next(now), Some(("a", 1)));
        queue.finish(&"a", Written::Failed, now, LONG, 0.5);
        let at = queue.next_at(now).unwrap();
        assert_eq!(queue.next(at.checked_sub(MS(1)).unwrap()), None);
        waits.push(at - now);
        now = at;
    }
    assert_eq!(waits[..8], [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000].map(MS));
    assert_eq!(waits[999], S(15));
    queue.submit("a", 2, Urgency::Change, now);
    assert_eq!(queue.next(now), Some(("a", 2)));
}

/// rule:writes-are-retried-until-done
#[test]
fn a_refused_write_comes_back_within_a_period_of_its_cluster_however_long_it_was_refused() {
    let (mut queue, mut now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    for _ in 0..1000 {
        assert_eq!(queue.next(now), Some(("a", 1)));
        queue.finish(&"a", Written::Failed, now, S(10), 0.999);
        let at = queue.next_at(now).unwrap();
        assert!(at - now < S(10), "{:?}", at - now);
        now = at;
    }
}

/// rule:writes-follow-the-servers-429s
#[test]
fn a_throttled_change_waits_as_long_as_the_server_asks_and_keeps_its_lane() {
    let (mut queue, mut now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    for _ in 0..12 {
        assert_eq!(queue.next(now), Some(("a", 1)));
        queue.finish(&"a", Written::Throttled { retry_after: S(1) }, now, LONG, 0.5);
        let at = queue.next_at(now).unwrap();
        assert_eq!(at - now, MS(1250));
        now = at;
    }
    queue.submit("first", 2, Urgency::FirstResult, now);
    queue.submit("b", 3, Urgency::Change, now);
    let order: Vec<_> = std::iter::from_fn(|| queue.next(now)).map(|(key, _)| key).collect();
    assert_eq!(order, ["b", "a", "first"], "not with those that are refused for themselves");
    queue.finish(&"a", Written::Throttled { retry_after: S(600) }, now, S(10), 0.0);
    assert_eq!(queue.next_at(now), Some(now + S(10)), "a period of its cluster at most");
}

/// rule:writes-are-retried-until-done
#[test]
fn thousands_of_refused_writes_come_back_at_400_per_second() {
    let (mut queue, start) = (WriteQueue::default(), Instant::now());
    for key in 0..10_000_u32 {
        queue.submit(key, (), Urgency::Change, start);
    }
    let (mut tries, mut now) = (0, start);
    let draw = |tries: u32| f64::from(tries * 7919 % 1000) / 1000.0;
    while now < start + S(120) {
        let Some((key, ())) = queue.next(now) else {
            now = queue.next_at(now).expect("they come back").max(now + MS(1));
            continue;
        };
        queue.finish(&key, Written::Failed, now, S(10), draw(tries));
        tries += 1;
    }
    // The first attempts and those before a crowd waits are as many as there are clusters.
    let retries = tries - 10_000;
    assert!((30_000..=60_000).contains(&retries), "{retries} retries in 120 s");
}

#[test]
fn a_new_state_waits_out_the_backoff_of_the_old_one() {
    let (mut queue, now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    queue.next(now);
    queue.finish(&"a", Written::Failed, now, LONG, 0.999);
    queue.submit("a", 2, Urgency::Change, now);
    assert_eq!(queue.next(now), None);
    assert_eq!(queue.next(now + MS(500)), Some(("a", 2)));
}

/// rule:writes-are-retried-until-done
#[test]
fn a_conflict_is_tried_again_at_once_and_then_as_any_failure() {
    let (mut queue, now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    queue.next(now);
    queue.finish(&"a", Written::Conflict, now, LONG, 0.5);
    assert_eq!(queue.next(now), Some(("a", 1)));
    queue.finish(&"a", Written::Conflict, now, LONG, 0.5);
    assert_eq!(queue.next(now), None);
    assert_eq!(queue.next(now + MS(500)), Some(("a", 1)));
}

#[test]
fn what_is_gone_is_dropped_wherever_it_stands() {
    let (mut queue, now) = queue();
    for key in ["gone", "forgotten", "waiting"] {
        queue.submit(key, 1, Urgency::Change, now);
    }
    assert_eq!(queue.next(now), Some(("gone", 1)));
    queue.submit("gone", 2, Urgency::Change, now);
    queue.finish(&"gone", Written::Gone, now, LONG, 0.0);
    queue.forget(&"forgotten");
    assert_eq!(queue.next(now), Some(("waiting", 1)));
    queue.finish(&"waiting", Written::Failed, now, LONG, 0.5);
    queue.forget(&"waiting");
    queue.finish(&"waiting", Written::Failed, now, LONG, 0.5);
    assert_eq!((queue.entries.len(), queue.next(now + S(60)), queue.next_at(now)), (0, None, None));
}

/// rule:refused-writes-delay-no-others
#[test]
fn a_stream_of_changes_starves_no_other_write() {
    let (mut queue, now) = (WriteQueue::default(), Instant::now());
    queue.submit(-1, (), Urgency::Change, now);
    for _ in 0..2 {
        queue.next(now);
        queue.finish(&-1, Written::Failed, now, LONG, 0.0);
    }
    queue.submit(0, (), Urgency::Heartbeat, now);
    queue.submit(-2, (), Urgency::FirstResult, now);
    let mut taken = Vec::new();
    for key in 1..=12 {
        queue.submit(key, (), Urgency::Change, now);
        let (key, ()) = queue.next(now).expect("there is always one");
        queue.finish(&key, Written::Done, now, LONG, 0.0);
        taken.push(key);
    }
    assert!([-1, 0, -2].iter().all(|key| taken.contains(key)), "{taken:?}");
}

#[test]
fn thousands_of_machines_hold_up_no_cluster_and_are_written_all_the_same() {
    use Urgency::{Change, Heartbeat, OtherChange, OtherHeartbeat};
    let now = Instant::now();
    // However many came before, and whatever became of them.
    for (machines, tries) in [(OtherChange, 0), (OtherHeartbeat, 0), (OtherChange, 3)] {
        let mut queue = WriteQueue::default();
        for key in 1000..2000 {
            queue.submit(key, (), machines, now);
        }
        for _ in 0..1000 * tries {
            let (key, ()) = queue.next(now).expect("they come back at once");
            queue.finish(&key, Written::Failed, now, LONG, 0.0);
        }
        for (key, clusters) in [(1, Change), (2, Heartbeat), (3, Change), (4, Heartbeat)] {
            queue.submit(key, (), clusters, now);
            let took = turns_until(&mut queue, key, now);
            assert!(took <= 2, "{clusters:?} behind {machines:?} waited {took} turns");
        }
        // A stream of changes of clusters leaves the machines their share.
        let before = queue.entries.len();
        for key in 0..120 {
            queue.submit(key, (), Change, now);
            let (key, ()) = queue.next(now).expect("there is always one");
            queue.finish(&key, Written::Done, now, LONG, 0.0);
        }
        let machines = (1000..2000).filter(|key| queue.age(key, now).is_some()).count();
        assert!(machines <= before - 20, "{machines} are left of {before}");
    }
}

#[test]
fn machines_that_are_refused_hold_up_no_cluster_that_is() {
    let (mut queue, now) = (WriteQueue::default(), Instant::now());
    for key in 1000..2000 {
        queue.submit(key, (), Urgency::OtherChange, now);
    }
    queue.submit(1, (), Urgency::Change, now);
    let mut tries = 0;
    for _ in 0..1000 {
        let (key, ()) = queue.next(now).expect("they come back at once");
        queue.finish(&key, Written::Failed, now, LONG, 0.0);
        tries += usize::from(key == 1);
    }
    assert!(tries >= 200, "it was tried {tries} times");
}

/// rule:newest-state-is-written
#[test]
fn what_comes_back_while_a_forgotten_write_is_under_way_waits_for_its_end() {
    let (mut queue, now) = queue();
    queue.submit("a", 1, Urgency::Change, now);
    assert_eq!(queue.next(now), Some(("a", 1)));
    queue.forget(&"a");
    assert!(queue.is_writing(&"a") && queue.entries.is_empty());
    queue.submit("a", 2, Urgency::Change, now);
    assert_eq!(queue.next(now), None);
    queue.finish(&"a", Written::Done, now, LONG, 0.0);
    assert!(!queue.is_writing(&"a"));
    assert_eq!(queue.next(now), Some(("a", 2)));
    queue.forget(&"a");
    queue.finish(&"a", Written::Failed, now, LONG, 0.0);
    assert!(!queue.is_writing(&"a") && queue.entries.is_empty());
}

#[derive(Clone, Debug)]
enum Do {
    Submit(u8, Urgency),
    Next,
    Finish(u8, Written),
    Forget(u8),
    Pass(u64),
}

fn anything() -> impl Strategy<Value = Do> {
    let key = 0..5_u8;
    let urgency = prop_oneof![
        Just(Urgency::Change),
        Just(Urgency::FirstResult),
        Just(Urgency::Heartbeat),
        Just(Urgency::OtherChange),
        Just(Urgency::OtherHeartbeat),
    ];
    let written = prop_oneof![
        Just(Written::Done),
        Just(Written::Conflict),
        Just(Written::Throttled { retry_after: S(1) }),
        Just(Written::Failed),
        Just(Written::Gone)
    ];
    prop_oneof![
        (key.clone(), urgency).prop_map(|(key, urgency)| Do::Submit(key, urgency)),
        Just(Do::Next),
        (key.clone(), written).prop_map(|(key, written)| Do::Finish(key, written)),
        key.prop_map(Do::Forget),
        (0..60_000_u64).prop_map(Do::Pass),
    ]
}

/// Takes writes until that of `key`, refuses those of negative keys, and says how many it took.
fn turns_until(queue: &mut WriteQueue<i32, ()>, key: i32, now: Instant) -> usize {
    for turn in 1.. {
        let (taken, ()) = queue.next(now).expect("it is in the queue");
        let written = if taken < 0 { Written::Failed } else { Written::Done };
        queue.finish(&taken, written, now, LONG, 0.0);
        if taken == key {
            return turn;
        }
    }
    usize::MAX
}

proptest! {
    /// rule:refused-writes-delay-no-others
    #[test]
    fn however_many_writes_are_refused_others_wait_few_turns(
        refused in 1..1000_i32,
        rounds in prop::collection::vec((any::<bool>(), 0..10_usize), 1..50),
    ) {
        let (mut queue, now) = (WriteQueue::default(), Instant::now());
        for key in 1..=refused {
            queue.submit(-key, (), Urgency::Change, now);
        }
        for _ in 0..8 * refused {
            let (key, ()) = queue.next(now).expect("they come back at once");
            queue.finish(&key, Written::Failed, now, LONG, 0.0);
        }
        for (key, (change, others)) in rounds.into_iter().enumerate() {
            for _ in 0..others {
                let (taken, ()) = queue.next(now).expect("they come back at once");
                queue.finish(&taken, Written::Failed, now, LONG, 0.0);
            }
            let urgency = if change { Urgency::Change } else { Urgency::Heartbeat };
            let key = i32::try_from(key).expect("there are few");
            queue.submit(key, (), urgency, now);
            let took = turns_until(&mut queue, key, now);
            prop_assert!(took <= 2, "{urgency:?} waited {took} turns");
        }
        prop_assert_eq!(queue.entries.len(), usize::try_from(refused).expect("positive"));
    }

    /// rule:newest-state-is-written
    #[test]
    fn whatever_happens_the_newest_state_of_every_cluster_gets_written(
        script in prop::collection::vec(anything(), 0..200),
        draw in 0.0..1.0_f64,
    ) {
        let mut queue = WriteQueue::default();
        let mut now = Instant::now();
        // The newest value submitted and not known to be written, and what is under way.
        let (mut wanted, mut writing) = (HashMap::new(), HashMap::new());
        for (value, step) in script.into_iter().enumerate() {
            match step {
                Do::Submit(key, urgency) => {
                    queue.submit(key, value, urgency, now);
                    wanted.insert(key, value);
                }
                Do::Next => if let Some((key, taken)) = queue.next(now) {
                    prop_assert_eq!(wanted.get(&key), Some(&taken));
                    prop_assert!(writing.insert(key, taken).is_none());
                },
                Do::Finish(key, written) => if let Some(taken) = writing.remove(&key) {
                    queue.finish(&key, written, now, LONG, draw);
                    match written {
                        Written::Gone => { wanted.remove(&key); }
                        Written::Done if wanted.get(&key) == Some(&taken) => { wanted.remove(&key); }
                        _ => {}
                    }
                },
                Do::Forget(key) => {
                    queue.forget(&key);
                    wanted.remove(&key);
                }
                Do::Pass(millis) => now += MS(millis),
            }
            let pending: HashSet<_> = queue.entries.keys().copied().collect();
            prop_assert_eq!(pending, wanted.keys().copied().collect::<HashSet<_>>());
        }
        // With the server well again everything gets through.
        for key in writing.into_keys() {
            queue.finish(&key, Written::Failed, now, LONG, draw);
        }
        now += S(31);
        while let Some((key, taken)) = queue.next(now) {
            prop_assert_eq!(wanted.remove(&key), Some(taken));
            queue.finish(&key, Written::Done, now, LONG, draw);
        }
        prop_assert!(wanted.is_empty() && queue.entries.is_empty());
    }
}
