//! `rule:freed-blocks-rest`

use super::*;

const REST: Duration = Duration::from_secs(60);

fn resting() -> Allocator {
    small().resting_for(REST)
}

fn used(allocator: &Allocator) -> u128 {
    allocator.snapshot().pools[0].used
}

#[test]
fn blocks_of_nodes_that_are_gone_are_given_again_after_their_rest_the_oldest_first() {
    let mut allocator = resting();
    for name in ["a", "b", "c", "d"] {
        drop(settle(&mut allocator, name));
    }
    let start = now();
    assert_eq!(allocator.next_rested(start), Some(start + REST));
    assert_eq!(allocator.gone("c", start).wake, [] as [Arc<str>; 0]);
    let later = start + REST / 2;
    drop(allocator.gone("a", later));
    for name in ["first", "second"] {
        assert!(matches!(add(&mut allocator, name), Assignment::Starved(_)));
    }
    assert_eq!((used(&allocator), allocator.snapshot().resting), (4, 2));
    assert_eq!(allocator.next_rested(later), Some(start + REST));
    let early = start + REST.checked_sub(Duration::from_nanos(1)).unwrap();
    assert_eq!(allocator.end_rests(early).wake, [] as [Arc<str>; 0]);
    assert_eq!(allocator.end_rests(start + REST).wake, ["first".into()]);
    assert_eq!(sent(allocator.assign(&"first".into()).0), ["10.0.0.8/30"]);
    assert_eq!(allocator.end_rests(later + REST).wake, ["second".into()]);
    assert_eq!(sent(allocator.assign(&"second".into()).0), ["10.0.0.0/30"]);
    assert_eq!(allocator.snapshot().resting, 0);
}

#[test]
fn what_rests_counts_as_used_until_it_is_free_and_is_counted_once() {
    let mut allocator = resting();
    drop(settle(&mut allocator, "a"));
    let start = now();
    drop(allocator.gone("a", start));
    drop(allocator.gone("a", start));
    let counts = |allocator: &Allocator| {
        let pool = &allocator.snapshot().pools[0];
        (pool.used, pool.occupied_total, pool.freed_total)
    };
    assert_eq!(counts(&allocator), (1, 1, 0));
    drop(allocator.end_rests(start + REST));
    assert_eq!(counts(&allocator), (0, 1, 1));
}

#[test]
fn a_block_that_was_never_sent_does_not_rest_and_one_that_may_have_been_written_does() {
    let mut allocator = resting();
    drop(reserve(&mut allocator, "unsent"));
    drop(allocator.gone("unsent", now()));
    assert_eq!((used(&allocator), allocator.snapshot().resting), (0, 0));
    let cidrs = reserve(&mut allocator, "lost");
    assert!(send(&mut allocator, "lost", &cidrs));
    allocator.lost(&"lost".into(), None);
    drop(allocator.gone("lost", now()));
    assert_eq!((used(&allocator), allocator.snapshot().resting), (1, 1));
}

#[test]
fn a_node_that_shows_a_block_at_rest_is_no_conflict_and_keeps_it() {
    let mut allocator = resting();
    drop(settle(&mut allocator, "a"));
    let start = now();
    drop(allocator.gone("a", start));
    let effects = allocator.observe(&node("b", "b").cidrs(&["10.0.0.0/30"]), start);
    assert_eq!((reasons(&effects), allocator.snapshot().conflicts), (vec![], 0));
    drop(allocator.end_rests(start + REST));
    assert_eq!(used(&allocator), 1);
}

#[test]
fn without_a_delay_nothing_rests() {
    let mut allocator = small();
    drop(settle(&mut allocator, "a"));
    assert_eq!(allocator.next_rested(now()), None);
    drop(allocator.gone("a", now()));
    assert_eq!((used(&allocator), allocator.snapshot().resting), (0, 0));
}
