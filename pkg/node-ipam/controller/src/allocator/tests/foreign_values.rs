//! CIDRs that somebody else gave to Nodes.

use super::*;
use crate::second_allocator::{Evidence, Suspect};

/// `rule:unknown-outcome-ends`
#[test]
fn a_block_that_another_node_shows_meanwhile_is_not_sent() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "ours");
    drop(allocator.observe(&node("theirs", "theirs").cidrs(&["10.0.0.0/30"]), now()));
    assert!(!send(&mut allocator, "ours", &cidrs), "refused at the last moment");
    let (again, _) = allocator.assign(&"ours".into());
    assert_eq!(sent(again), ["10.0.0.4/30"], "another block is taken");
}

/// `rule:a-bad-node-stops-only-itself`
#[test]
fn strange_cidrs_become_findings_and_others_are_served() {
    let rows: &[(&str, &[&str], usize)] = &[
        ("garbage", &["not-a-cidr"], 1),
        ("outside", &["192.168.0.0/24"], 1),
        ("both", &["192.168.0.0/24", "not-a-cidr", "nor-this"], 3),
        ("another family", &["10.0.0.12/30", "fd00::/64"], 1),
        ("inside", &["10.0.0.12/30"], 0),
    ];
    for (name, cidrs, external) in rows {
        let expected = if *external > 0 { &["PodCIDROutOfRange"][..] } else { &[] };
        let mut allocator = small();
        let strange = node("strange", "strange").cidrs(cidrs);
        let effects = allocator.observe(&strange, now());
        assert_eq!(reasons(&effects), expected, "{name}");
        assert_eq!(allocator.snapshot().external, *external, "{name}");
        assert_eq!(reasons(&allocator.observe(&strange, now())), [""; 0], "{name}: told once");
        assert_eq!(settle(&mut allocator, "next"), ["10.0.0.0/30"], "{name}");
    }
}

/// `rule:a-bad-node-stops-only-itself`
#[test]
fn overlapping_nodes_are_reported_on_both_and_stay_used_until_both_are_gone() {
    let mut allocator = small();
    drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/30"]), now()));
    let effects = allocator.observe(&node("b", "b").cidrs(&["10.0.0.0/29"]), now());
    let told: Vec<_> = effects.notices.iter().map(|n| (n.name.as_ref(), n.reason)).collect();
    assert_eq!(told, [("b", "PodCIDRConflict"), ("a", "PodCIDRConflict")]);
    for text in ["Node a", "Node b", "10.0.0.0/30", "10.0.0.0/29"] {
        assert!(effects.notices[0].message.contains(text), "{}", effects.notices[0].message);
    }
    assert_eq!(allocator.snapshot().conflicts, 1);
    drop(allocator.gone("b", now()));
    let state = allocator.snapshot();
    assert_eq!((state.conflicts, state.pools[0].used), (0, 1));
}

/// `rule:foreign-value-is-adopted`
#[test]
fn values_of_others_are_adopted_and_our_block_is_freed() {
    let mut allocator = small();
    drop(add(&mut allocator, "a"));
    let foreign = node("a", "a").cidrs(&["10.0.0.8/30"]);
    let effects = allocator.observe(&foreign, now());
    assert_eq!(reasons(&effects), [""; 0], "no event");
    assert_eq!(allocator.assign(&"a".into()).0, Assignment::Settled);
    let state = allocator.snapshot();
    assert_eq!((state.pools[0].used, state.foreign_total), (1, 1));
    assert_eq!(settle(&mut allocator, "b"), ["10.0.0.4/30"]);
    assert_eq!(settle(&mut allocator, "c"), ["10.0.0.12/30"]);
    assert_eq!(settle(&mut allocator, "d"), ["10.0.0.0/30"]);
}

#[test]
fn a_foreign_value_is_counted_whether_we_had_a_block_for_the_node_or_not() {
    for (name, prepare) in [
        (
            "pending",
            (|allocator, node| drop(allocator.observe(node, now()))) as fn(&mut Allocator, &Node),
        ),
        ("reserved", |allocator, _| drop(add(allocator, "a"))),
        ("bound", |allocator, _| drop(settle(allocator, "a"))),
    ] {
        let mut allocator = small();
        prepare(&mut allocator, &node("a", "a"));
        drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.8/30"]), now()));
        assert_eq!(allocator.snapshot().foreign_total, 1, "{name}");
    }
    let mut allocator = small();
    drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.8/30"]), now()));
    assert_eq!(allocator.snapshot().foreign_total, 0, "it never waited for ours");
}

#[test]
fn our_own_write_seen_on_the_watch_before_its_answer_is_not_a_foreign_one() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "a");
    assert!(send(&mut allocator, "a", &cidrs));
    drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/30"]), now()));
    assert_eq!(allocator.bound(&"a".into(), now()), None);
    let state = allocator.snapshot();
    assert_eq!((state.foreign_total, allocator.open_outcomes().len()), (0, 0));
}

#[test]
fn a_block_freed_by_the_adoption_of_another_goes_to_the_line() {
    let mut allocator = small();
    for i in 0..3 {
        drop(settle(&mut allocator, &format!("n{i}")));
    }
    drop(add(&mut allocator, "reserved"));
    assert!(matches!(add(&mut allocator, "waiting"), Assignment::Starved(_)));
    let foreign = node("reserved", "reserved").cidrs(&["192.168.0.0/24"]);
    assert_eq!(allocator.observe(&foreign, now()).wake, ["waiting".into()]);
}

/// Two that choose alike.
#[test]
fn the_block_that_we_chose_and_somebody_else_wrote_is_no_assignment_of_ours() {
    let mut allocator = small();
    drop(reserve(&mut allocator, "a"));
    let written = node("a", "a").cidrs(&["10.0.0.0/30"]);
    let effects = allocator.observe(&written, now());
    let suspect = Suspect::new(&written, Evidence::SawEmpty);
    assert_eq!((effects.assigned, effects.foreign), (None, Some(suspect)));
    assert_eq!(allocator.snapshot().foreign_total, 1);
}
