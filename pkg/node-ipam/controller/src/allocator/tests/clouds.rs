//! Claims of Nodes whose CIDRs a cloud names or routes, as the watch and the workers come and go.

use super::super::{CloudSource, Shortage};
use super::*;
use crate::second_allocator::Evidence;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// A pool of two blocks, which a cloud routes.
fn routed() -> Allocator {
    Allocator::of_cloud(CloudSource::Routed, Some(pool("10.0.0.0/23", 24)), &[])
}

/// A cloud that names CIDRs, without a pool.
fn exact() -> Allocator {
    Allocator::of_cloud(CloudSource::Exact, None, &[])
}

fn see(allocator: &mut Allocator, name: &str, cidrs: &[&str]) -> Effects {
    allocator.observe(&node(name, name).cidrs(cidrs), now())
}

fn block(allocator: &mut Allocator, name: &str) -> String {
    let [block] = &sent(allocator.assign(&name.into()).0)[..] else { panic!("not one block") };
    block.clone()
}

fn take(allocator: &mut Allocator, name: &str, cidrs: &[IpNet]) -> Assignment {
    allocator.assign_exact(&name.into(), cidrs).0
}

fn route(allocator: &mut Allocator, name: &str, range: &str) -> bool {
    allocator.begin_route(&name.into(), &net(range), now())
}

fn is_full(assignment: &Assignment) -> bool {
    matches!(assignment, Assignment::Starved(Shortage::Pool(_)))
}

fn is_in_use(assignment: &Assignment) -> bool {
    matches!(assignment, Assignment::Starved(Shortage::InUse { .. }))
}

fn used(allocator: &Allocator) -> (u128, u128) {
    let pool = &allocator.snapshot().pools[0];
    (pool.used, pool.blocks)
}

/// `rule:reserved-block-is-kept`
#[test]
fn a_node_is_given_the_same_block_until_it_is_gone() {
    let mut allocator = routed();
    drop(see(&mut allocator, "a", &[]));
    drop(see(&mut allocator, "b", &[]));
    for _ in 0..3 {
        assert_eq!(block(&mut allocator, "a"), "10.0.0.0/24");
    }
    assert_eq!(block(&mut allocator, "b"), "10.0.1.0/24");
    drop(allocator.gone("a", now()));
    drop(see(&mut allocator, "c", &[]));
    assert_eq!(block(&mut allocator, "c"), "10.0.0.0/24");
    assert_eq!(allocator.assign(&"a".into()).0, Assignment::Settled, "it is gone");
}

#[test]
fn a_full_pool_wakes_those_who_wait_when_a_block_is_freed() {
    let mut allocator = routed();
    drop(see(&mut allocator, "a", &["10.0.0.0/23"]));
    assert!(is_full(&add(&mut allocator, "b")));
    assert_eq!(allocator.gone("a", now()).wake, [Arc::from("b")]);
    assert_eq!(block(&mut allocator, "b"), "10.0.0.0/24");
}

#[test]
fn reserved_addresses_are_given_to_no_node() {
    let reserved = [net("10.0.0.128/25")];
    let pool = Some(pool("10.0.0.0/23", 24));
    let mut allocator = Allocator::of_cloud(CloudSource::Routed, pool, &reserved);
    drop(see(&mut allocator, "a", &[]));
    assert_eq!(block(&mut allocator, "a"), "10.0.1.0/24");
    assert_eq!(used(&allocator), (2, 2));
}

/// `rule:block-has-one-holder`
#[test]
fn what_another_node_has_is_not_taken_until_that_one_is_gone() {
    let (mut allocator, cidrs) = (exact(), [net("10.0.0.0/24")]);
    drop(see(&mut allocator, "old", &["10.0.0.0/25"]));
    drop(see(&mut allocator, "new", &[]));
    let held = take(&mut allocator, "new", &cidrs);
    assert_eq!(held, Assignment::Starved(Shortage::InUse { cidr: cidrs[0], by: "old".into() }));
    assert_eq!(allocator.claim(&"new".into()), [], "it blocks no other Node");
    assert!(!send(&mut allocator, "new", &cidrs));
    assert_eq!(allocator.snapshot().starved, 1);
    drop(see(&mut allocator, "third", &["10.9.0.0/24"]));
    assert_eq!(allocator.snapshot().starved, 1, "nothing has ended");
    assert_eq!(allocator.gone("old", now()).wake, [Arc::from("new")]);
    assert_eq!(sent(take(&mut allocator, "new", &cidrs)), ["10.0.0.0/24"]);
    assert!(send(&mut allocator, "new", &cidrs));
}

/// `rule:block-has-one-holder`
#[test]
fn a_block_that_another_node_took_is_moved_before_it_left_and_not_sent_afterwards() {
    let mut allocator = routed();
    drop(see(&mut allocator, "a", &[]));
    drop(see(&mut allocator, "b", &[]));
    let first = block(&mut allocator, "a");
    drop(see(&mut allocator, "foreign", &["10.0.0.0/24"]));
    assert!(!route(&mut allocator, "a", &first));
    assert!(!send(&mut allocator, "a", &[net(&first)]));
    assert_eq!(block(&mut allocator, "a"), "10.0.1.0/24");
    assert!(route(&mut allocator, "a", "10.0.1.0/24"));
    drop(see(&mut allocator, "another", &["10.0.1.0/24"]));
    assert!(is_in_use(&allocator.assign(&"a".into()).0));
    assert!(!route(&mut allocator, "a", "10.0.1.0/24"));
    assert!(!send(&mut allocator, "a", &[net("10.0.1.0/24")]));
    let kept = allocator.claim(&"a".into());
    assert_eq!(kept, [net("10.0.1.0/24")], "the cloud may have routed it");
    assert_eq!(allocator.gone("another", now()).wake, [Arc::from("a")]);
    assert_eq!(block(&mut allocator, "a"), "10.0.1.0/24");
}

#[test]
fn nothing_is_given_out_while_a_list_is_taken_in() {
    for (mut allocator, is_routed) in [(routed(), true), (exact(), false)] {
        let cidrs = [net("10.0.0.0/24")];
        let assign = |allocator: &mut Allocator| {
            if is_routed { allocator.assign(&"a".into()).0 } else { take(allocator, "a", &cidrs) }
        };
        drop(see(&mut allocator, "a", &[]));
        assert_eq!(sent(assign(&mut allocator)), ["10.0.0.0/24"]);
        allocator.set_in_list(true);
        assert_eq!(assign(&mut allocator), Assignment::TooEarly);
        assert!(!route(&mut allocator, "a", "10.0.0.0/24"));
        assert!(!send(&mut allocator, "a", &cidrs));
        allocator.set_in_list(false);
        assert!(send(&mut allocator, "a", &cidrs));
    }
}

#[test]
fn what_another_writer_wrote_replaces_the_claim() {
    let mut allocator = routed();
    drop(add(&mut allocator, "a"));
    drop(see(&mut allocator, "a", &["10.0.1.0/24"]));
    assert_eq!(allocator.claim(&"a".into()), [net("10.0.1.0/24")]);
    assert_eq!(used(&allocator), (1, 2));
}

/// `rule:strange-alias-is-no-claim`
#[test]
fn a_block_that_may_be_routed_goes_to_no_other_node_when_another_writer_served_its_node() {
    let mut allocator = routed();
    drop(add(&mut allocator, "a"));
    assert!(route(&mut allocator, "a", "10.0.0.0/24"));
    drop(add(&mut allocator, "b"));
    assert!(is_full(&add(&mut allocator, "c")));
    let effects = see(&mut allocator, "a", &["192.168.0.0/24"]);
    assert_eq!(effects.wake, [] as [Arc<str>; 0]);
    assert!(is_full(&allocator.assign(&"c".into()).0));
    let read = |allocator: &mut Allocator, aliases: &[IpNet]| {
        allocator.keep_aliases(&"a".into(), aliases).wake
    };
    assert_eq!(read(&mut allocator, &[net("10.0.0.0/24")]), [] as [Arc<str>; 0]);
    assert_eq!(read(&mut allocator, &[]), [Arc::from("c")]);
    assert_eq!(block(&mut allocator, "c"), "10.0.0.0/24");
}

#[test]
fn what_was_written_counts_before_the_cache_shows_it() {
    let (mut allocator, a) = (routed(), node("a", "a"));
    drop(add(&mut allocator, "a"));
    assert_eq!(allocator.pod_cidrs(&a), [""; 0]);
    assert!(allocator.bound(&"a".into(), now()).is_some());
    drop(see(&mut allocator, "a", &[]));
    assert_eq!(allocator.pod_cidrs(&a), ["10.0.0.0/24"]);
    assert_eq!(allocator.pod_cidrs(&a.clone().cidrs(&["10.0.1.0/24"])), ["10.0.1.0/24"]);
    drop(allocator.gone("a", now()));
    assert_eq!(allocator.bound(&"a".into(), now()), None);
    assert_eq!(allocator.pod_cidrs(&a), [""; 0]);
}

#[test]
fn a_node_shows_ours_when_it_has_just_what_was_sent() {
    let (mut allocator, cidrs) = (routed(), [net("10.0.0.0/24")]);
    let shown = node("a", "a").cidrs(&["10.0.0.0/24"]);
    drop(allocator.observe(&shown, now()));
    assert!(!allocator.shows_ours(&shown), "another writer has written it");
    drop(allocator.gone("a", now()));
    drop(add(&mut allocator, "a"));
    assert!(send(&mut allocator, "a", &cidrs));
    for _ in 0..2 {
        assert!(allocator.shows_ours(&shown));
        assert!(!allocator.shows_ours(&node("a", "a")));
        assert!(!allocator.shows_ours(&node("a", "a").cidrs(&["10.0.1.0/24"])));
        drop(allocator.observe(&shown, now()));
    }
    drop(see(&mut allocator, "a", &["10.0.1.0/24"]));
    assert!(!allocator.shows_ours(&shown));
}

/// `rule:no-block-is-lost`
#[test]
fn an_audit_mends_what_the_watch_did_not_tell() {
    let mut allocator = routed();
    let (a, b) = (node("a", "a").cidrs(&["10.0.0.0/24"]), node("b", "b").cidrs(&["10.0.1.0/24"]));
    let audit =
        |allocator: &mut Allocator, live: &Node| allocator.audit([live].into_iter(), now()).0;
    drop(allocator.observe(&a, now()));
    assert_eq!(audit(&mut allocator, &a), 0);
    assert_eq!(audit(&mut allocator, &b), 2, "one has gone, one has come");
    let claims = ["a", "b"].map(|uid| allocator.claim(&uid.into()).to_vec());
    assert_eq!(claims, [vec![], vec![net("10.0.1.0/24")]]);
    assert_eq!(audit(&mut allocator, &b), 0);
}

/// `rule:unknown-outcome-ends`
#[test]
fn what_the_cloud_names_in_place_of_what_was_sent_waits_for_the_outcome() {
    let mut allocator = exact();
    let (first, second) = ([net("10.0.0.0/24")], [net("10.0.1.0/24")]);
    drop(see(&mut allocator, "a", &[]));
    assert_eq!(sent(take(&mut allocator, "a", &first)), ["10.0.0.0/24"]);
    assert!(send(&mut allocator, "a", &first));
    assert_eq!(sent(take(&mut allocator, "a", &first)), ["10.0.0.0/24"], "it is the same");
    assert_eq!(take(&mut allocator, "a", &second), Assignment::TooEarly);
    assert_eq!(allocator.claim(&"a".into()), first);
    allocator.refused(&"a".into());
    drop(see(&mut allocator, "holder", &["10.0.1.0/24"]));
    assert_eq!(allocator.open_outcomes().len(), 1, "an earlier PATCH is open");
    for later in 1..4 {
        let at = long_after() + Duration::from_secs(2 * later);
        drop(allocator.read_empty(&"a".into(), at, at));
    }
    assert!(is_in_use(&take(&mut allocator, "a", &second)));
    assert_eq!(allocator.claim(&"a".into()), [], "it blocks no other Node");
    drop(allocator.gone("holder", now()));
    assert_eq!(sent(take(&mut allocator, "a", &second)), ["10.0.1.0/24"]);
    assert!(allocator.open_outcomes().is_empty());
}

#[test]
fn nodes_that_wait_are_counted_by_how_far_they_have_come() {
    let mut allocator = routed();
    let a = sent(add(&mut allocator, "a"));
    assert!(send(&mut allocator, "a", &[net(&a[0])]));
    drop(add(&mut allocator, "b"));
    assert!(is_full(&add(&mut allocator, "c")));
    drop(see(&mut allocator, "d", &[]));
    let count = |allocator: &Allocator| {
        let state = allocator.snapshot();
        (state.pending, state.starved, state.reserved)
    };
    assert_eq!(count(&allocator), (1, 1, 2), "d, c, a and b");
    assert!(allocator.bound(&"a".into(), now()).is_some());
    assert_eq!(count(&allocator), (1, 1, 1), "a has what was written");
    drop(allocator.gone("d", now()));
    assert_eq!(count(&allocator), (0, 1, 1), "no block was freed");
    drop(allocator.gone("a", now()));
    assert_eq!(count(&allocator), (0, 0, 2), "c has that of a");
}

/// `rule:foreign-value-is-adopted`
#[test]
fn what_another_writer_gave_a_node_that_waited_is_counted_and_ours_is_not() {
    let mut allocator = routed();
    drop(see(&mut allocator, "a", &["10.0.0.0/24"]));
    drop(see(&mut allocator, "b", &[]));
    drop(see(&mut allocator, "b", &["10.0.1.0/24"]));
    drop(see(&mut allocator, "b", &["10.0.1.0/24"]));
    drop(allocator.gone("a", now()));
    let block = reserve(&mut allocator, "c");
    assert!(send(&mut allocator, "c", &block));
    drop(see(&mut allocator, "c", &["10.0.0.0/24"]));
    let state = allocator.snapshot();
    assert_eq!(state.foreign_total, 1, "b, to which we had sent nothing");
    let pool = &state.pools[0];
    assert_eq!((pool.occupied_total, pool.freed_total, pool.used), (3, 1, 2));
}

/// `rule:second-allocator-is-told`
#[test]
fn what_no_patch_of_ours_can_have_written_is_foreign() {
    let mut allocator = routed();
    let evidence = |effects: Effects| effects.foreign.map(|suspect| suspect.evidence);
    allocator.set_in_list(true);
    let old = see(&mut allocator, "old", &["10.0.0.0/24"]);
    assert_eq!(evidence(old), None, "there at the start");
    allocator.set_in_list(false);
    let late = see(&mut allocator, "late", &["10.0.1.0/24"]);
    assert_eq!(evidence(late), Some(Evidence::SeenLate));
    drop(allocator.gone("late", now()));
    drop(see(&mut allocator, "a", &[]));
    let served = see(&mut allocator, "a", &["10.0.1.0/24"]);
    assert_eq!(evidence(served), Some(Evidence::SawEmpty));
    drop(allocator.gone("a", now()));
    let block = reserve(&mut allocator, "b");
    assert!(send(&mut allocator, "b", &block));
    let ours = see(&mut allocator, "b", &["10.0.1.0/24"]);
    assert_eq!(evidence(ours), None, "its answer tells");
}

/// `rule:freed-blocks-rest`
#[test]
fn the_block_of_a_node_that_is_gone_rests_for_as_long_as_the_flag_says() {
    let rest = Duration::from_secs(30);
    let mut allocator = routed().resting_for(rest);
    drop(see(&mut allocator, "a", &["10.0.0.0/24"]));
    drop(reserve(&mut allocator, "b"));
    let begun = now();
    drop(allocator.gone("a", begun));
    drop(allocator.gone("b", begun));
    assert_eq!(sent(add(&mut allocator, "c")), ["10.0.1.0/24"], "that of b never left");
    assert!(is_full(&add(&mut allocator, "d")));
    assert_eq!(allocator.next_rested(begun), Some(begun + rest));
    assert_eq!(allocator.snapshot().resting, 1);
    assert_eq!(allocator.end_rests(begun + rest).wake, [Arc::from("d")]);
    assert_eq!(allocator.snapshot().resting, 0);
    assert_eq!(block(&mut allocator, "d"), "10.0.0.0/24");
}

/// `rule:refused-block-is-changed`
#[test]
fn a_block_that_the_cloud_refused_rests_for_a_minute_whatever_the_reuse_delay() {
    for delay in [0, 3600] {
        let mut allocator = routed().resting_for(Duration::from_secs(delay));
        let (uid, begun) = ("a".into(), now());
        drop(add(&mut allocator, "a"));
        assert!(route(&mut allocator, "a", "10.0.0.0/24"));
        allocator.route_refused(&uid);
        assert!(allocator.is_route_refused(&uid));
        drop(allocator.change_block(&uid, begun));
        assert_eq!(block(&mut allocator, "a"), "10.0.1.0/24");
        assert!(!allocator.is_route_refused(&uid) && allocator.routed_block(&uid).is_none());
        assert!(is_full(&add(&mut allocator, "b")));
        let rested = begun + Duration::from_secs(60);
        assert_eq!(allocator.next_rested(begun), Some(rested));
        assert_eq!(allocator.end_rests(rested).wake, [Arc::from("b")]);
    }
    let minute = Duration::from_secs(60);
    assert_eq!(exact().next_rested(now()), None);
    assert!(routed().next_rested(now()).is_some_and(|next| next <= now() + minute));
}

/// `rule:a-bad-node-stops-only-itself`
#[test]
fn pairs_that_overlap_and_what_is_outside_of_the_pool_are_counted_while_they_last() {
    let mut allocator = routed();
    assert_eq!(reasons(&see(&mut allocator, "a", &["10.0.0.0/24"])), [""; 0]);
    let effects = see(&mut allocator, "b", &["10.0.0.0/25", "garbage"]);
    let told: Vec<_> = effects.notices.iter().map(|n| (n.name.as_ref(), n.reason)).collect();
    assert_eq!(told, [("b", "PodCIDRConflict"), ("a", "PodCIDRConflict")]);
    for text in ["10.0.0.0/25 of Node b", "10.0.0.0/24 of Node a"] {
        assert!(effects.notices.iter().all(|notice| notice.message.contains(text)));
    }
    drop(see(&mut allocator, "c", &["10.0.0.0/23"]));
    let outside = see(&mut allocator, "d", &["192.168.0.0/24", "fd00::/64"]);
    assert_eq!(reasons(&outside), [""; 0], "the cloud has ranges of its own");
    let mut state = Vec::new();
    for gone in ["", "b", "d", "a"] {
        drop(allocator.gone(gone, now()));
        let counts = allocator.snapshot();
        state.push((counts.conflicts, counts.external));
    }
    assert_eq!(state, [(3, 3), (1, 2), (1, 0), (0, 0)]);
}

#[test]
fn what_the_cloud_names_outside_of_the_pool_is_counted_and_without_a_pool_it_is_not() {
    let pool = || Some(pool("10.0.0.0/23", 24));
    for (pool, external) in [(pool(), 1), (None, 0)] {
        let mut allocator = Allocator::of_cloud(CloudSource::Exact, pool, &[]);
        drop(see(&mut allocator, "a", &[]));
        drop(take(&mut allocator, "a", &[net("10.0.0.0/24")]));
        assert_eq!(allocator.snapshot().external, 0);
        let named = [net("192.168.0.0/24")];
        drop(take(&mut allocator, "a", &named));
        assert!(send(&mut allocator, "a", &named));
        assert_eq!(allocator.snapshot().external, external);
        drop(see(&mut allocator, "a", &["192.168.0.0/24"]));
        assert_eq!(allocator.snapshot().external, external);
        drop(allocator.gone("a", now()));
        assert_eq!(allocator.snapshot().external, 0);
    }
}

/// `rule:a-bad-node-stops-only-itself`
#[test]
fn a_pair_that_overlaps_ends_when_the_cloud_names_another_cidr() {
    let (mut allocator, first) = (exact(), [net("10.0.0.0/24")]);
    drop(see(&mut allocator, "a", &[]));
    drop(take(&mut allocator, "a", &first));
    assert!(send(&mut allocator, "a", &first));
    drop(see(&mut allocator, "b", &["10.0.0.0/24"]));
    assert_eq!(allocator.snapshot().conflicts, 1);
    allocator.refused(&"a".into());
    assert_eq!(sent(take(&mut allocator, "a", &[net("10.0.1.0/24")])), ["10.0.1.0/24"]);
    assert_eq!(allocator.snapshot().conflicts, 0);
}

#[test]
fn garbage_is_no_claim_and_no_reason_to_fail() {
    let mut allocator = routed();
    drop(see(&mut allocator, "a", &["garbage", "10.0.0.0/24"]));
    assert_eq!(allocator.claim(&"a".into()), [net("10.0.0.0/24")]);
    assert_eq!(allocator.pod_cidrs(&node("a", "a").cidrs(&["garbage"])), ["garbage"]);
}
