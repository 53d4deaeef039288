//! The allocator's rules.

mod clouds;
mod cluster_cidrs;
mod draining;
mod every_source;
mod explored;
mod foreign_values;
mod memory;
mod naive_model;
mod outcomes;
mod resting;
mod selecting;
mod telling;

use std::time::Duration;

use kube_api::{Node, PodCidrs};

use super::*;

fn pool(text: &str, mask: u8) -> Pool {
    Pool::new(cidr::parse(text).unwrap(), mask, 16).unwrap()
}

fn small() -> Allocator {
    // Four blocks: 10.0.0.0/30, .4, .8 and .12.
    Allocator::new(vec![pool("10.0.0.0/28", 30)], &[])
}

fn node(name: &str, uid: &str) -> Node {
    Node {
        name: name.into(),
        uid: uid.into(),
        resource_version: 1,
        deleting: false,
        is_selected: true,
        pod_cidrs: PodCidrs::default(),
    }
}

trait With {
    fn cidrs(self, texts: &[&str]) -> Self;
    fn deleting(self) -> Self;
}

impl With for Node {
    fn cidrs(self, texts: &[&str]) -> Self {
        Self { pod_cidrs: texts.iter().collect(), ..self }
    }

    fn deleting(self) -> Self {
        Self { deleting: true, ..self }
    }
}

fn now() -> Instant {
    Instant::now()
}

/// Sees a new Node and returns what to send for it.
fn add(allocator: &mut Allocator, name: &str) -> Assignment {
    drop(allocator.observe(&node(name, name), now()));
    allocator.assign(&name.into()).0
}

fn sent(assignment: Assignment) -> Vec<String> {
    match assignment {
        Assignment::Send { cidrs, .. } => cidrs.iter().map(cidr::canonical).collect(),
        other => panic!("nothing to send: {other:?}"),
    }
}

/// A moment at which no PATCH of these tests can still be applied.
fn long_after() -> Instant {
    now() + Duration::from_secs(3600)
}

/// A PATCH leaves that is never answered by itself.
fn send(allocator: &mut Allocator, name: &str, cidrs: &[IpNet]) -> bool {
    allocator.begin_send(&name.into(), cidrs, now(), long_after()).is_some()
}

/// Sees a new Node and reserves blocks for it.
fn reserve(allocator: &mut Allocator, name: &str) -> Vec<IpNet> {
    let Assignment::Send { cidrs, .. } = add(allocator, name) else { panic!("{name} starves") };
    cidrs
}

/// Assigns a Node all the way.
fn settle(allocator: &mut Allocator, name: &str) -> Vec<String> {
    let cidrs = reserve(allocator, name);
    assert!(send(allocator, name, &cidrs));
    assert!(allocator.bound(&name.into(), now()).is_some());
    cidrs.iter().map(cidr::canonical).collect()
}

fn reasons(effects: &Effects) -> Vec<&'static str> {
    effects.notices.iter().map(|notice| notice.reason).collect()
}

#[test]
fn excluded_blocks_are_given_to_nobody_and_a_node_that_has_one_keeps_it() {
    let excluded = ["10.0.0.0/31", "10.0.0.8/30"].map(|text| cidr::parse(text).unwrap());
    let mut allocator = small().without(&excluded);
    let old = node("old", "old").cidrs(&["10.0.0.0/30"]);
    assert_eq!(reasons(&allocator.observe(&old, now())), [""; 0]);
    assert_eq!(settle(&mut allocator, "a"), ["10.0.0.4/30"]);
    assert_eq!(settle(&mut allocator, "b"), ["10.0.0.12/30"]);
    assert!(matches!(add(&mut allocator, "c"), Assignment::Starved(_)));
    drop(allocator.gone("old", now()));
    assert!(matches!(allocator.assign(&"c".into()).0, Assignment::Starved(_)), "still excluded");
    let state = allocator.snapshot();
    assert_eq!((state.pools[0].used, state.conflicts, state.in_services), (4, 0, 0));
}

/// `rule:list-before-allocate`
#[test]
fn nothing_is_sent_while_a_list_is_being_delivered() {
    let mut allocator = small();
    for i in 0..4 {
        drop(settle(&mut allocator, &format!("n{i}")));
    }
    assert!(matches!(add(&mut allocator, "waiting"), Assignment::Starved(_)));
    // The list shows that n0 is gone, and later that a foreign Node has its block.
    allocator.set_in_list(true);
    drop(allocator.gone("n0", now()));
    let Assignment::Send { cidrs, .. } = allocator.assign(&"waiting".into()).0 else { panic!() };
    assert!(!send(&mut allocator, "waiting", &cidrs), "the list is not complete");
    drop(allocator.observe(&node("theirs", "theirs").cidrs(&["10.0.0.0/30"]), now()));
    allocator.set_in_list(false);
    assert!(!send(&mut allocator, "waiting", &cidrs), "now it is known to be taken");
    assert!(matches!(allocator.assign(&"waiting".into()).0, Assignment::Starved(_)));
}

#[test]
fn nodes_that_a_list_brings_are_worked_on_in_its_order_when_it_is_over() {
    let mut allocator = small();
    allocator.set_in_list(true);
    for name in ["b", "a"] {
        assert_eq!(allocator.observe(&node(name, name), now()).wake, [] as [Arc<str>; 0]);
    }
    allocator.set_in_list(false);
    assert_eq!(allocator.take_listed(), ["b".into(), "a".into()]);
    assert_eq!(allocator.take_listed(), [] as [Arc<str>; 0]);
    assert_eq!(allocator.observe(&node("c", "c"), now()).wake, ["c".into()]);
}

/// `rule:no-block-is-lost`
#[test]
fn after_the_last_node_the_pool_is_back_at_the_service_baseline() {
    let service = cidr::parse("10.0.0.0/30").unwrap();
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/28", 30)], &[service]);
    drop(settle(&mut allocator, "bound"));
    drop(add(&mut allocator, "reserved"));
    drop(settle(&mut allocator, "third"));
    drop(add(&mut allocator, "starved"));
    drop(allocator.observe(&node("giant", "giant").cidrs(&["10.0.0.0/8"]), now()));
    for name in ["starved", "giant", "third", "bound", "reserved", "never seen"] {
        drop(allocator.gone(name, now()));
    }
    let state = allocator.snapshot();
    assert_eq!(state.pools[0].used, 1);
    assert_eq!(state.pools[0].occupied_total - state.pools[0].freed_total, 1);
    assert_eq!((state.pending, state.starved, state.reserved), (0, 0, 0));
    assert_eq!((state.external, state.conflicts), (0, 0));
}

/// `rule:retry-repeats-the-claim`
#[test]
fn every_retry_sends_the_same_blocks() {
    let mut allocator = small();
    let first = sent(add(&mut allocator, "a"));
    for _ in 0..3 {
        assert!(send(&mut allocator, "a", &[cidr::parse(&first[0]).unwrap()]));
        let (again, _) = allocator.assign(&"a".into());
        assert_eq!(sent(again), first);
    }
    assert_eq!(allocator.snapshot().pools[0].used, 1);
}

#[test]
fn the_next_range_of_a_family_serves_when_those_before_it_are_full() {
    let pools = vec![pool("10.0.0.0/24", 24), pool("fd00::/63", 64), pool("10.9.0.0/23", 24)];
    let mut allocator = Allocator::new(pools, &[]);
    assert_eq!(settle(&mut allocator, "a"), ["10.0.0.0/24", "fd00::/64"]);
    assert_eq!(settle(&mut allocator, "b"), ["10.9.0.0/24", "fd00:0:0:1::/64"]);
    assert!(matches!(add(&mut allocator, "c"), Assignment::Starved(_)), "IPv6 has no other range");
    assert_eq!(allocator.snapshot().pools[2].used, 1);
    assert_eq!(allocator.gone("a", now()).wake, ["c".into()]);
    assert_eq!(sent(allocator.assign(&"c".into()).0), ["10.0.0.0/24", "fd00::/64"]);
    drop(allocator.gone("b", now()));
    drop(allocator.observe(&node("d", "d"), now()));
    let skipped = allocator.assign(&"d".into()).1.skipped;
    let searched: Vec<String> = skipped.iter().map(|it| it.pool.to_string()).collect();
    assert_eq!(searched, ["10.9.0.0/23", "fd00::/63"]);
}

#[test]
fn of_ranges_that_are_all_full_the_first_is_named() {
    let pools = vec![pool("10.0.0.0/24", 24), pool("10.9.0.0/24", 24)];
    let mut allocator = Allocator::new(pools, &[]);
    assert_eq!(settle(&mut allocator, "a"), ["10.0.0.0/24"]);
    assert_eq!(settle(&mut allocator, "b"), ["10.9.0.0/24"]);
    let Assignment::Starved(Shortage::Pool(full)) = add(&mut allocator, "c") else { panic!() };
    assert_eq!(full.pool.to_string(), "10.0.0.0/24");
}

/// `rule:first-starved-first-served`
#[test]
fn starved_nodes_are_served_in_the_order_in_which_they_came() {
    let mut allocator = small();
    for i in 0..4 {
        drop(settle(&mut allocator, &format!("n{i}")));
    }
    for name in ["first", "second"] {
        assert!(matches!(add(&mut allocator, name), Assignment::Starved(_)));
    }
    let effects = allocator.gone("n1", now());
    assert_eq!(effects.wake, ["first".into()]);
    assert!(matches!(add(&mut allocator, "late"), Assignment::Starved(_)), "no Node overtakes");
    assert_eq!(sent(allocator.assign(&"first".into()).0), ["10.0.0.4/30"]);
    // The first one leaves before it was served: its block goes to the next.
    assert_eq!(allocator.gone("first", now()).wake, ["second".into()]);
    assert_eq!(sent(allocator.assign(&"second".into()).0), ["10.0.0.4/30"]);
}

/// `rule:first-starved-first-served`
#[test]
fn a_starved_node_that_is_being_deleted_leaves_the_line() {
    let mut allocator = small();
    for i in 0..4 {
        drop(settle(&mut allocator, &format!("n{i}")));
    }
    for name in ["leaving", "waiting"] {
        assert!(matches!(add(&mut allocator, name), Assignment::Starved(_)));
    }
    drop(allocator.observe(&node("leaving", "leaving").deleting(), now()));
    assert_eq!(allocator.gone("n0", now()).wake, ["waiting".into()]);
}

#[test]
fn a_reused_name_is_two_owners() {
    let mut allocator = small();
    drop(settle(&mut allocator, "n"));
    drop(allocator.gone("n", now()));
    drop(allocator.observe(&node("n", "second-uid"), now()));
    let (assignment, _) = allocator.assign(&"second-uid".into());
    assert_eq!(sent(assignment), ["10.0.0.4/30"]);
    drop(allocator.gone("n", now()));
    assert_eq!(allocator.snapshot().pools[0].used, 1, "a late delete of the old one is harmless");
}

/// `rule:claim-outlives-refusal`
#[test]
fn a_stale_copy_without_cidrs_does_not_undo_an_assignment() {
    let mut allocator = small();
    drop(settle(&mut allocator, "a"));
    let effects = allocator.observe(&node("a", "a"), now());
    assert!(effects.wake.is_empty());
    assert_eq!(allocator.assign(&"a".into()).0, Assignment::Settled);
    assert_eq!(allocator.snapshot().pools[0].used, 1);
}

#[test]
fn an_answer_that_comes_after_the_delete_brings_nothing_back() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "a");
    assert!(send(&mut allocator, "a", &cidrs));
    drop(allocator.gone("a", now()));
    assert_eq!(allocator.bound(&"a".into(), now()), None);
    let late = node("a", "a").cidrs(&["10.0.0.0/30"]);
    drop(allocator.observe_read(&late, now()));
    assert_eq!(allocator.snapshot().pools[0].used, 0);
}
