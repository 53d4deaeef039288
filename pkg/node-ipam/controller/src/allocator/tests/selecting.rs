//! Nodes that `--node-selector` does not select (`rule:unselected-nodes-get-nothing`).

use super::super::findings::CONFLICT;
use super::*;

fn others(name: &str) -> Node {
    Node { is_selected: false, ..node(name, name) }
}

fn is_selected(selected: bool, node: Node) -> Node {
    Node { is_selected: selected, ..node }
}

fn used(allocator: &Allocator) -> u128 {
    allocator.snapshot().pools[0].used
}

#[test]
fn a_node_that_is_not_selected_leaves_no_trace() {
    let mut allocator = small();
    allocator.set_in_list(true);
    drop(allocator.observe(&others("listed"), now()));
    allocator.set_in_list(false);
    assert_eq!(allocator.take_listed(), [] as [Arc<str>; 0]);
    let effects = allocator.observe(&others("a"), now());
    assert_eq!((effects.wake, effects.notices), (vec![], vec![]));
    assert_eq!(allocator.assign(&"a".into()).0, Assignment::Settled);
    let state = allocator.snapshot();
    assert_eq!((state.pending, state.starved, state.reserved, state.pools[0].used), (0, 0, 0, 0));
    let (mended, effects) = allocator.audit([&others("listed"), &others("a")].into_iter(), now());
    assert_eq!((mended, effects.wake), (0, vec![]));
    drop(allocator.gone("a", now()));
}

#[test]
fn a_node_that_starts_to_be_selected_is_pending() {
    let mut allocator = small();
    drop(allocator.observe(&others("a"), now()));
    assert_eq!(allocator.observe(&node("a", "a"), now()).wake, ["a".into()]);
    assert_eq!(allocator.snapshot().pending, 1);
    assert_eq!(sent(allocator.assign(&"a".into()).0), ["10.0.0.0/30"]);
}

/// `rule:block-has-one-holder`
#[test]
fn what_a_node_has_is_a_claim_and_only_overlaps_are_reported() {
    let service = cidr::parse("10.0.0.12/30").unwrap();
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/28", 30)], &[service]);
    allocator.start();
    let strange = others("strange").cidrs(&["192.168.0.0/24", "x"]);
    let effects = allocator.observe(&strange, now());
    assert_eq!((reasons(&effects), effects.foreign), (vec![], None));
    assert_eq!(allocator.snapshot().external, 0);
    let has = |name| others(name).cidrs(&["10.0.0.0/30"]);
    assert_eq!(reasons(&allocator.observe(&has("one"), now())), [""; 0]);
    assert_eq!(reasons(&allocator.observe(&has("two"), now())), [CONFLICT, CONFLICT]);
    let in_services = others("odd").cidrs(&["10.0.0.12/30"]);
    assert_eq!(reasons(&allocator.observe(&in_services, now())), ["PodCIDROverlapsServices"]);
    assert_eq!(settle(&mut allocator, "a"), ["10.0.0.4/30"]);
    let state = allocator.snapshot();
    assert_eq!((state.conflicts, state.in_services, state.foreign_total), (1, 1, 0));
    for name in ["strange", "one", "two", "odd", "a"] {
        drop(allocator.gone(name, now()));
    }
    assert_eq!((used(&allocator), allocator.snapshot().conflicts), (1, 0));
    assert!(allocator.unselected.is_empty());
}

#[test]
fn findings_come_and_go_with_the_selection() {
    let mut allocator = small();
    allocator.start();
    let twin = node("twin", "twin").cidrs(&["10.0.0.0/30"]);
    drop(allocator.observe(&twin, now()));
    let odd = |selected| {
        is_selected(selected, node("odd", "odd").cidrs(&["10.0.0.0/30", "192.168.0.0/24", "x"]))
    };
    drop(allocator.observe(&odd(false), now()));
    for _ in 0..2 {
        assert_eq!(allocator.snapshot().external, 0);
        let effects = allocator.observe(&odd(true), now());
        assert!(reasons(&effects).contains(&"PodCIDROutOfRange"), "{effects:?}");
        assert_eq!(effects.foreign, None, "its CIDRs are not new");
        assert_eq!((allocator.snapshot().external, allocator.snapshot().conflicts), (2, 1));
        drop(allocator.observe(&odd(false), now()));
        assert_eq!((allocator.snapshot().conflicts, used(&allocator)), (1, 1));
    }
    assert_eq!(allocator.snapshot().foreign_total, 0);
}

#[test]
fn a_block_that_was_not_sent_is_freed_for_the_first_in_line() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "a");
    for name in ["b", "c", "d"] {
        drop(settle(&mut allocator, name));
    }
    assert!(matches!(add(&mut allocator, "leaving"), Assignment::Starved(_)));
    assert!(matches!(add(&mut allocator, "waiting"), Assignment::Starved(_)));
    drop(allocator.observe(&others("leaving"), now()));
    assert_eq!(allocator.observe(&others("a"), now()).wake, ["waiting".into()]);
    assert!(!send(&mut allocator, "a", &cidrs), "the worker had it already");
    assert_eq!(sent(allocator.assign(&"waiting".into()).0), ["10.0.0.0/30"]);
    assert_eq!(allocator.snapshot().starved, 0);
}

/// `rule:unknown-outcome-ends`
#[test]
fn a_block_that_was_sent_is_kept_until_its_outcome_is_settled_and_not_sent_again() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "a");
    let until = now() + Duration::from_secs(6);
    assert!(allocator.begin_send(&"a".into(), &cidrs, now(), until).is_some());
    assert_eq!(allocator.observe(&others("a"), now()).wake, ["a".into()]);
    allocator.lost(&"a".into(), None);
    let Assignment::Send { unresolved: true, .. } = allocator.assign(&"a".into()).0 else {
        panic!("it has to be read");
    };
    assert!(!send(&mut allocator, "a", &cidrs));
    let (mut at, mut reads) = (now(), 0);
    while let (AfterRead::Wait(until), _) = allocator.read_empty(&"a".into(), at, at) {
        assert_eq!(used(&allocator), 1);
        (at, reads) = (until, reads + 1);
        assert!(reads < 9);
    }
    assert_eq!((used(&allocator), allocator.snapshot().reserved), (0, 0));
}

#[test]
fn a_block_whose_patch_is_refused_is_freed_and_one_that_was_written_stays() {
    let mut allocator = small();
    for name in ["refused", "written"] {
        let cidrs = reserve(&mut allocator, name);
        assert!(send(&mut allocator, name, &cidrs));
        drop(allocator.observe(&others(name), now()));
    }
    allocator.refused(&"refused".into());
    assert_eq!(used(&allocator), 2);
    assert_eq!(allocator.assign(&"refused".into()).0, Assignment::Settled);
    assert_eq!(used(&allocator), 1);
    assert!(allocator.bound(&"written".into(), now()).is_some());
    let shown = others("written").cidrs(&["10.0.0.4/30"]);
    let effects = allocator.observe(&shown, now());
    assert_eq!((reasons(&effects), effects.foreign), (vec![], None));
    assert_eq!((used(&allocator), allocator.snapshot().foreign_total), (1, 0));
}

#[test]
fn a_read_shows_no_labels_and_changes_no_selection() {
    let mut allocator = small();
    allocator.start();
    let cidrs = reserve(&mut allocator, "a");
    assert!(send(&mut allocator, "a", &cidrs));
    drop(allocator.observe(&others("a"), now()));
    let read = node("a", "a").cidrs(&["192.168.0.0/24"]);
    let effects = allocator.observe_read(&read, now());
    assert_eq!((reasons(&effects), effects.foreign), (vec![], None));
    assert!(allocator.unselected.contains("a"));
}

#[test]
fn a_node_that_is_selected_again_gets_the_block_that_was_sent_for_it() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "a");
    assert!(send(&mut allocator, "a", &cidrs));
    allocator.lost(&"a".into(), None);
    drop(allocator.observe(&others("a"), now()));
    assert_eq!(allocator.observe(&node("a", "a"), now()).wake, ["a".into()]);
    assert_eq!(sent(allocator.assign(&"a".into()).0), ["10.0.0.0/30"]);
    assert!(send(&mut allocator, "a", &cidrs));
}
