//! Pools that give out nothing and keep what Nodes have of them (`rule:draining-pool-gives-nothing`).

use super::super::{Holding, ServingState, Shortage};
use super::cluster_cidrs::{empty, everybody, join, labelled, see, serve, shortage};
use super::*;

/// `rule:draining-pool-gives-nothing`
#[test]
fn a_draining_pool_gives_nothing_not_even_what_is_reserved_and_unsent() {
    let old = labelled("10.0.0.0/22", 8, "foo");
    let mut allocator = empty();
    drop(serve(&mut allocator, "old", &old));
    drop(serve(&mut allocator, "new", &everybody("10.9.0.0/16", 8)));
    let [first, second] = ["10.0.0.0/24", "10.0.1.0/24"].map(|block| [cidr::parse(block).unwrap()]);
    assert_eq!(sent(join(&mut allocator, "unsent", &["foo"])), ["10.0.0.0/24"]);
    assert_eq!(sent(join(&mut allocator, "under-way", &["foo"])), ["10.0.1.0/24"]);
    assert!(send(&mut allocator, "under-way", &second));
    drop(see(&mut allocator, "old", ServingState::Draining, &old));

    assert!(!send(&mut allocator, "unsent", &first));
    assert_eq!(sent(allocator.assign(&"unsent".into()).0), ["10.9.0.0/24"]);
    assert_eq!(sent(join(&mut allocator, "later", &["foo"])), ["10.9.1.0/24"]);
    assert!(allocator.bound(&"under-way".into(), now()).is_some(), "the PATCH had left");
    assert_eq!(allocator.claim(&"under-way".into()), second);
    assert_eq!(allocator.draining_nodes("old"), Some(Holding::By(1)));

    // The drain ends: it gives out blocks again, where it stopped.
    drop(serve(&mut allocator, "old", &old));
    assert_eq!(allocator.draining_nodes("old"), None);
    assert_eq!(sent(join(&mut allocator, "again", &["foo"])), ["10.0.2.0/24"]);
}

/// `rule:draining-pool-gives-nothing`
#[test]
fn nodes_that_only_draining_pools_could_serve_are_told_so_and_wake_when_the_drain_ends() {
    let (one, other) = (everybody("10.0.0.0/22", 8), everybody("10.1.0.0/24", 8));
    let mut allocator = empty();
    drop(see(&mut allocator, "one", ServingState::Draining, &one));
    let waits = Shortage::Draining("one".into());
    assert_eq!(shortage(join(&mut allocator, "a", &[])), waits);
    drop(serve(&mut allocator, "other", &other));
    assert_eq!(sent(allocator.assign(&"a".into()).0), ["10.1.0.0/24"]);
    for name in ["b", "c"] {
        assert_eq!(shortage(join(&mut allocator, name, &[])), waits, "the other one is full");
    }
    assert!(waits.to_string().contains("full or draining; draining: one; "), "{waits}");
    let effects = serve(&mut allocator, "one", &one);
    assert_eq!(effects.wake, ["b".into(), "c".into()]);
    assert_eq!(sent(allocator.assign(&"c".into()).0), ["10.0.1.0/24"]);
}

#[test]
fn a_node_is_left_in_a_draining_pool_unless_another_in_service_would_give_it_the_same_blocks() {
    let old = everybody("10.0.0.0/16", 8);
    let mut allocator = empty();
    drop(serve(&mut allocator, "old", &old));
    drop(join(&mut allocator, "a", &[]));
    drop(allocator.observe(&node("foreign", "foreign").cidrs(&["10.0.9.0/26"]), now()));
    drop(see(&mut allocator, "old", ServingState::Draining, &old));
    assert_eq!(allocator.draining_nodes("old"), Some(Holding::By(2)));
    // A change of the block size inside one range.
    drop(serve(&mut allocator, "new", &everybody("10.0.0.0/16", 6)));
    assert_eq!(sent(join(&mut allocator, "b", &[])), ["10.0.1.0/26"]);
    assert_eq!(allocator.draining_nodes("old"), Some(Holding::By(1)));
    allocator.set_in_list(true);
    assert_eq!(allocator.draining_nodes("old"), Some(Holding::Unknown));
    allocator.set_in_list(false);
    drop(allocator.gone("a", now()));
    assert_eq!(allocator.draining_nodes("old"), Some(Holding::Unused));
    assert_eq!(allocator.draining_nodes("new"), None);
}

/// `rule:cluster-cidr-outlives-its-claims`
#[test]
fn a_draining_pool_can_be_deleted_and_keeps_another_one_of_its_range_from_holding_on() {
    let (old, same) = (everybody("10.0.0.0/22", 8), everybody("10.0.0.0/22", 9));
    let range = [cidr::parse("10.0.0.0/22").unwrap()];
    let mut allocator = empty();
    drop(serve(&mut allocator, "old", &old));
    drop(join(&mut allocator, "a", &[]));
    drop(see(&mut allocator, "same", ServingState::Draining, &same));
    allocator.terminate("old");
    assert_eq!(
        allocator.holding(&range),
        Holding::Unused,
        "the finalizer of the other one holds it"
    );
    drop(see(&mut allocator, "same", ServingState::Terminating, &same));
    assert_eq!(allocator.draining_nodes("same"), None);
    assert_eq!(allocator.holding(&range), Holding::By(1));
    assert_eq!(allocator.gone("a", now()).released, ["same".into(), "old".into()]);
}

/// `rule:draining-pool-gives-nothing`
#[test]
fn ranges_of_the_flags_are_drained_too() {
    let pools = || vec![pool("10.0.0.0/29", 30), pool("10.1.0.0/30", 30), pool("10.2.0.0/30", 30)];
    let drained = [cidr::parse("10.0.0.0/29").unwrap()];
    let mut allocator = Allocator::new(pools(), &[]).draining(&drained);
    drop(allocator.observe(&node("old", "old").cidrs(&["10.0.0.0/30"]), now()));
    assert_eq!(settle(&mut allocator, "a"), ["10.1.0.0/30"]);
    assert_eq!(settle(&mut allocator, "b"), ["10.2.0.0/30"]);
    let Assignment::Starved(why) = add(&mut allocator, "c") else { panic!() };
    assert_eq!(why, Shortage::Draining("10.0.0.0/29".into()));
    let states: Vec<_> = allocator.snapshot().pools.iter().map(|pool| pool.state).collect();
    assert_eq!(states, ["draining", "serving", "serving"]);
    assert_eq!(allocator.servable()[0].nodes, 0, "those of the draining range do not count");
    assert_eq!(allocator.gone("old", now()).wake, [] as [Arc<str>; 0]);
    assert_eq!(allocator.gone("a", now()).wake, ["c".into()]);
}

#[test]
fn a_pool_that_drains_does_not_count_as_room_for_its_family() {
    let pools = vec![pool("10.0.0.0/16", 24), pool("10.1.0.0/24", 30)];
    let drained = [cidr::parse("10.0.0.0/16").unwrap()];
    let mut allocator = Allocator::new(pools, &[]).draining(&drained);
    assert_eq!(sent(add(&mut allocator, "first")), ["10.1.0.0/30"]);
    let effects = allocator.observe(&node("big", "big").cidrs(&["10.1.0.0/24"]), now());
    assert!(reasons(&effects).contains(&"PodCIDRPoolNearlyFull"), "{effects:?}");
}
