//! Outcomes of PATCHes that were sent, and when its blocks are free
//! (`rule:unknown-outcome-ends`).

use super::*;

const LIMIT: Duration = Duration::from_secs(6);

/// A PATCH leaves at that moment; the server can apply it for [`LIMIT`].
fn send_at(allocator: &mut Allocator, name: &str, cidrs: &[IpNet], at: Instant) {
    assert!(allocator.begin_send(&name.into(), cidrs, at, at + LIMIT).is_some());
}

/// Between the first two of the reads that settle an outcome.
const AFTERMATH: Duration = Duration::from_secs(1);

fn read_at(allocator: &mut Allocator, name: &str, begun: Instant) -> AfterRead {
    allocator.read_empty(&name.into(), begun, begun).0
}

/// The three reads that the rule asks for, the first begun at that moment.
fn settle_by_reads(allocator: &mut Allocator, name: &str, begun: Instant) {
    for begun in [begun, begun + AFTERMATH, begun + AFTERMATH] {
        assert_eq!(read_at(allocator, name, begun), AfterRead::Send);
    }
}

fn unresolved(allocator: &Allocator) -> usize {
    allocator.open_outcomes().len()
}

fn dual_stack() -> Allocator {
    // Four IPv4 blocks and two of IPv6.
    Allocator::new(vec![pool("10.0.0.0/22", 24), pool("fd00::/63", 64)], &[])
}

#[test]
fn a_patch_that_can_still_be_applied_keeps_its_blocks_of_both_families() {
    let mut allocator = dual_stack();
    let start = now();
    drop(settle(&mut allocator, "other"));
    let cidrs = reserve(&mut allocator, "ours");
    send_at(&mut allocator, "ours", &cidrs, start);
    // Somebody else takes one of the two, and our PATCH is not answered.
    drop(allocator.observe(&node("theirs", "theirs").cidrs(&["10.0.1.0/24"]), now()));
    let later = start + LIMIT / 2;
    assert_eq!(read_at(&mut allocator, "ours", later), AfterRead::Wait(start + LIMIT));
    assert!(matches!(add(&mut allocator, "third"), Assignment::Starved(_)), "fd00:0:0:1:: is ours");
    // The server applies it after all.
    let both = node("ours", "ours").cidrs(&["10.0.1.0/24", "fd00:0:0:1::/64"]);
    assert!(allocator.observe(&both, now()).wake.is_empty());
    assert!(matches!(allocator.assign(&"third".into()).0, Assignment::Starved(_)));
    assert_eq!((unresolved(&allocator), allocator.snapshot().foreign_total), (0, 0));
}

/// ovn-kubernetes#4067
#[test]
fn an_event_during_a_slow_write_reserves_no_second_block() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "a");
    assert!(send(&mut allocator, "a", &cidrs));
    let changed = Node { resource_version: 2, ..node("a", "a") };
    drop(allocator.observe(&changed, now()));
    if let Assignment::Send { cidrs: again, .. } = allocator.assign(&"a".into()).0 {
        assert_eq!(again, cidrs);
    }
    assert_eq!(allocator.snapshot().pools[0].used, 1);
    assert!(allocator.bound(&"a".into(), now()).is_some());
    drop(allocator.gone("a", now()));
    assert_eq!(allocator.snapshot().pools[0].used, 0);
}

#[test]
fn a_contested_claim_is_given_up_whole_once_the_server_can_no_longer_apply_it() {
    let mut allocator = dual_stack();
    let start = now();
    drop(settle(&mut allocator, "other"));
    let cidrs = reserve(&mut allocator, "ours");
    send_at(&mut allocator, "ours", &cidrs, start);
    drop(allocator.observe(&node("theirs", "theirs").cidrs(&["10.0.1.0/24"]), now()));
    assert_eq!(allocator.snapshot().conflicts, 1);
    assert!(matches!(add(&mut allocator, "third"), Assignment::Starved(_)));
    let answered = start + LIMIT;
    let wait = AfterRead::Wait(answered + AFTERMATH);
    assert_eq!(read_at(&mut allocator, "ours", answered), wait, "a second read has to agree");
    assert!(matches!(allocator.assign(&"third".into()).0, Assignment::Starved(_)));
    let second = answered + AFTERMATH;
    let late = second + LIMIT; // on a slow disk
    let (after, _) = allocator.read_empty(&"ours".into(), second, late);
    assert_eq!(after, AfterRead::Wait(late), "and a third");
    assert_eq!(read_at(&mut allocator, "ours", second), AfterRead::Wait(late), "begun too early");
    assert!(matches!(allocator.assign(&"third".into()).0, Assignment::Starved(_)));
    let (after, effects) = allocator.read_empty(&"ours".into(), late, late);
    assert_eq!(after, AfterRead::Reassign);
    assert_eq!(effects.wake, ["ours".into(), "third".into()], "one for new blocks, one for ours");
    assert_eq!((unresolved(&allocator), allocator.snapshot().conflicts), (0, 0));
    assert_eq!(sent(allocator.assign(&"third".into()).0), ["10.0.2.0/24", "fd00:0:0:1::/64"]);
    assert!(matches!(allocator.assign(&"ours".into()).0, Assignment::Starved(_)));
}

#[test]
fn a_patch_whose_handling_was_cut_off_is_not_closed_by_one_that_never_left() {
    let mut allocator = dual_stack();
    let start = now();
    let cidrs = reserve(&mut allocator, "ours");
    send_at(&mut allocator, "ours", &cidrs, start);
    // The handling ends without a word; the next one gets no connection.
    let (assignment, _) = allocator.assign(&"ours".into());
    assert!(matches!(assignment, Assignment::Send { unresolved: true, .. }));
    allocator.refused(&"ours".into());
    assert_eq!(unresolved(&allocator), 1, "the server may yet apply the first");
    settle_by_reads(&mut allocator, "ours", start + LIMIT);
    assert_eq!(unresolved(&allocator), 0);
}

#[test]
fn what_the_client_knows_of_a_lost_patch_takes_the_place_of_the_first_guess() {
    let start = now();
    for (known, expected) in
        [(None, LIMIT), (Some(LIMIT / 2), LIMIT / 2), (Some(2 * LIMIT), 2 * LIMIT)]
    {
        let mut allocator = small();
        let cidrs = reserve(&mut allocator, "a");
        send_at(&mut allocator, "a", &cidrs, start);
        allocator.lost(&"a".into(), known.map(|known| start + known));
        assert_eq!(allocator.open_until(&"a".into()).unwrap(), start + expected);
        // A later one that ends sooner does not shorten it.
        send_at(&mut allocator, "a", &cidrs, start);
        allocator.lost(&"a".into(), Some(start + LIMIT / 4));
        assert_eq!(allocator.open_until(&"a".into()).unwrap(), start + expected);
    }
}

#[test]
fn only_the_first_patch_of_a_node_that_found_a_block_tells_our_own_delay() {
    let mut allocator = small();
    let start = now();
    let later = start + Duration::from_micros(700);
    let delay = |allocator: &mut Allocator, name: &str| {
        let Assignment::Send { cidrs, .. } = allocator.assign(&name.into()).0 else { panic!() };
        let left = allocator.begin_send(&name.into(), &cidrs, later, later + LIMIT);
        left.unwrap().own_delay
    };
    for name in ["a", "b", "c", "d", "starved"] {
        drop(allocator.observe(&node(name, name), start));
    }
    for name in ["a", "b", "c", "d"] {
        assert_eq!(delay(&mut allocator, name), Some(later - start));
        assert_eq!(delay(&mut allocator, name), None, "again");
    }
    assert!(matches!(allocator.assign(&"starved".into()).0, Assignment::Starved(_)));
    drop(allocator.gone("a", now()));
    assert_eq!(delay(&mut allocator, "starved"), None);
}

#[test]
fn an_outcome_ends_with_the_node_whatever_the_server_may_do() {
    for end in ["bound", "seen", "foreign", "gone"] {
        let mut allocator = small();
        let cidrs = reserve(&mut allocator, "a");
        assert!(send(&mut allocator, "a", &cidrs));
        match end {
            "bound" => assert!(allocator.bound(&"a".into(), now()).is_some()),
            "seen" => drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/30"]), now())),
            "foreign" => drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.8/30"]), now())),
            _ => drop(allocator.gone("a", now())),
        }
        assert_eq!(unresolved(&allocator), 0, "{end}");
        assert_eq!(read_at(&mut allocator, "a", long_after()), AfterRead::Settled, "{end}");
    }
}

#[test]
fn a_node_that_a_finalizer_holds_is_settled_by_the_same_rule_and_keeps_its_blocks() {
    let mut allocator = small();
    let start = now();
    let cidrs = reserve(&mut allocator, "leaving");
    send_at(&mut allocator, "leaving", &cidrs, start);
    drop(allocator.observe(&node("leaving", "leaving").deleting(), now()));
    let again = allocator.assign(&"leaving".into()).0;
    assert!(matches!(again, Assignment::Send { unresolved: true, .. }), "{again:?}");
    assert_eq!(read_at(&mut allocator, "leaving", start), AfterRead::Wait(start + LIMIT));
    assert!(!send(&mut allocator, "leaving", &cidrs), "nothing is sent to it any more");
    let wait = AfterRead::Wait(start + LIMIT + AFTERMATH);
    assert_eq!(read_at(&mut allocator, "leaving", start + LIMIT), wait);
    let second = start + LIMIT + AFTERMATH;
    assert_eq!(read_at(&mut allocator, "leaving", second), AfterRead::Wait(second));
    assert_eq!(read_at(&mut allocator, "leaving", second), AfterRead::Settled);
    assert_eq!(allocator.assign(&"leaving".into()).0, Assignment::Settled);
    assert_eq!((unresolved(&allocator), allocator.snapshot().pools[0].used), (0, 1));
}
