//! Pools that come from ClusterCIDRs.

use kube_api::{LabelledNode, NodeMarks};
use serde_json::{Value, json};

use super::super::{Holding, SeenClusterCidr, ServingState, Shortage};
use super::*;
use crate::cluster_cidr::plan::Rules;
use crate::cluster_cidr::selector::Terms;
use crate::cluster_cidr::{ClusterCidrSpec, Plan};

const WAIT: Duration = Duration::from_secs(60);
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

pub(super) fn empty() -> Allocator {
    Allocator::of_cluster_cidrs(&[], WAIT)
}

fn seen(name: &str, state: ServingState, spec: &Value) -> SeenClusterCidr {
    let spec: ClusterCidrSpec = serde_json::from_value(spec.clone()).unwrap();
    let plan = Plan::of(&spec, Rules { terms: Terms::Or, ipv6_bits: 16 }).unwrap();
    SeenClusterCidr { name: name.into(), uid: name.into(), state, spec, plan }
}

pub(super) fn see(
    allocator: &mut Allocator,
    name: &str,
    state: ServingState,
    spec: &Value,
) -> Effects {
    allocator.see_cluster_cidr(seen(name, state, spec))
}

pub(super) fn serve(allocator: &mut Allocator, name: &str, spec: &Value) -> Effects {
    see(allocator, name, ServingState::Serving, spec)
}

pub(super) fn everybody(ipv4: &str, bits: i64) -> Value {
    json!({"ipv4": ipv4, "perNodeHostBits": bits})
}

pub(super) fn labelled(ipv4: &str, bits: i64, key: &str) -> Value {
    let wanted = json!([{"matchExpressions": [{"key": key, "operator": "Exists"}]}]);
    json!({"ipv4": ipv4, "perNodeHostBits": bits, "nodeSelector": {"nodeSelectorTerms": wanted}})
}

fn marked(name: &str, labels: &[&str], taints: &[&str]) -> LabelledNode {
    let labels = labels.iter().map(|key| ((*key).into(), "".into())).collect();
    let taints = taints.iter().map(|key| (*key).into()).collect();
    let marks = Some(Arc::new(NodeMarks { labels, taints }));
    LabelledNode { node: node(name, name), marks }
}

pub(super) fn join(allocator: &mut Allocator, name: &str, labels: &[&str]) -> Assignment {
    drop(allocator.observe(&marked(name, labels, &[]), now()));
    allocator.assign(&name.into()).0
}

pub(super) fn shortage(assignment: Assignment) -> Shortage {
    match assignment {
        Assignment::Starved(shortage) => shortage,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nodes_of_two_sizes_share_a_range() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "small", &labelled("10.244.0.0/16", 7, "small")));
    drop(serve(&mut allocator, "large", &labelled("10.244.0.0/16", 9, "large")));
    for (name, label, block) in [
        ("a", "small", "10.244.0.0/25"),
        ("b", "large", "10.244.2.0/23"),
        ("c", "small", "10.244.0.128/25"),
        ("d", "large", "10.244.4.0/23"),
    ] {
        assert_eq!(sent(join(&mut allocator, name, &[label])), [block]);
    }
}

/// `rule:no-block-is-lost`
#[test]
fn the_next_one_serves_when_the_first_lacks_a_family() {
    let mut allocator = empty();
    let dual = json!({"ipv4": "10.0.0.0/16", "ipv6": "ace:cab:deca::/120", "perNodeHostBits": 8});
    drop(serve(&mut allocator, "dual", &dual));
    drop(serve(&mut allocator, "single", &everybody("127.123.234.0/23", 8)));
    let first = sent(join(&mut allocator, "a", &[]));
    assert_eq!(
        first,
        ["10.0.0.0/24", "ace:cab:deca::/120"],
        "one block of IPv6 makes it the scarcer"
    );
    assert_eq!(sent(join(&mut allocator, "b", &[])), ["127.123.234.0/24"]);
    assert_eq!(sent(join(&mut allocator, "c", &[])), ["127.123.235.0/24"]);
    let full = shortage(join(&mut allocator, "d", &[]));
    assert_eq!(full, Shortage::AllFull("dual, single".into()));
    assert_eq!(allocator.gone("a", now()).wake, ["d".into()]);
    assert_eq!(sent(allocator.assign(&"d".into()).0), ["10.0.1.0/24", "ace:cab:deca::/120"]);
}

/// `rule:finalizer-before-use`
#[test]
fn nothing_is_given_of_one_that_is_not_held() {
    let mut allocator = empty();
    drop(allocator.see_cluster_cidr(seen("a", ServingState::Unheld, &everybody("10.0.0.0/24", 8))));
    assert!(allocator.has_unheld());
    assert_eq!(shortage(join(&mut allocator, "n", &[])), Shortage::Unheld("a".into()));
    let effects = serve(&mut allocator, "a", &everybody("10.0.0.0/24", 8));
    assert_eq!(effects.wake, ["n".into()]);
    assert_eq!(sent(allocator.assign(&"n".into()).0), ["10.0.0.0/24"]);
    assert!(!allocator.has_unheld());
}

/// `rule:first-starved-first-served`
#[test]
fn a_new_one_serves_those_who_starve_in_order() {
    let mut allocator = empty();
    for name in ["first", "second", "third"] {
        let labels: &[&str] = if name == "second" { &["other"] } else { &["foo"] };
        assert_eq!(shortage(join(&mut allocator, name, labels)), Shortage::NotSelected);
    }
    let effects = serve(&mut allocator, "one-block", &labelled("10.0.0.0/24", 8, "foo"));
    assert_eq!(effects.wake, ["first".into()]);
    let effects = serve(&mut allocator, "for-all", &everybody("10.1.0.0/16", 8));
    assert_eq!(effects.wake, ["second".into(), "third".into()]);
    assert_eq!(sent(allocator.assign(&"third".into()).0), ["10.1.1.0/24"]);
}

/// `rule:first-starved-first-served`
#[test]
fn who_cannot_be_served_holds_up_nobody_with_another_choice() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "foo", &labelled("10.0.0.0/24", 8, "foo")));
    drop(serve(&mut allocator, "bar", &labelled("10.1.0.0/24", 8, "bar")));
    for (name, label) in [("f1", "foo"), ("b1", "bar")] {
        drop(sent(join(&mut allocator, name, &[label])));
    }
    for (name, label) in [("f2", "foo"), ("b2", "bar"), ("b3", "bar")] {
        drop(shortage(join(&mut allocator, name, &[label])));
    }
    assert_eq!(allocator.gone("b1", now()).wake, ["b2".into()]);
    assert_eq!(allocator.gone("b2", now()).wake, ["b3".into()]);
    assert_eq!(allocator.gone("f1", now()).wake, ["f2".into()]);
}

#[test]
fn a_starved_node_whose_labels_change_is_looked_at_again() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "foo", &labelled("10.0.0.0/24", 8, "foo")));
    assert_eq!(shortage(join(&mut allocator, "n", &["bar"])), Shortage::NotSelected);
    let effects = allocator.observe(&marked("n", &["foo"], &[]), now());
    assert_eq!(effects.wake, ["n".into()]);
    assert_eq!(sent(allocator.assign(&"n".into()).0), ["10.0.0.0/24"]);
    drop(allocator.observe(&marked("n", &["bar"], &[]), now()));
    assert_eq!(sent(allocator.assign(&"n".into()).0), ["10.0.0.0/24"], "it is not moved");
}

/// `rule:unlabelled-nodes-wait`
#[test]
fn a_node_without_the_labels_of_its_cloud_waits_for_them() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "all", &everybody("10.0.0.0/16", 8)));
    drop(serve(&mut allocator, "foo", &labelled("10.1.0.0/16", 8, "foo")));
    let begun = now();
    let uid: Uid = "n".into();
    drop(allocator.observe(&marked("n", &[], &[UNINITIALIZED]), begun));
    assert_eq!(allocator.awaits_labels(&uid, begun), Some(begun + WAIT));
    assert_eq!(allocator.awaits_labels(&uid, begun + WAIT), None, "not without end");
    // The Node waits no longer, for its labels or for a ClusterCIDR.
    for (labels, taints) in [(&["foo"][..], &[UNINITIALIZED][..]), (&[], &[])] {
        let effects = allocator.observe(&marked("n", labels, taints), begun);
        assert_eq!(effects.wake, ["n".into()]);
        assert_eq!(allocator.awaits_labels(&uid, begun), None);
    }
    let mut none = Allocator::of_cluster_cidrs(&[], Duration::ZERO);
    drop(serve(&mut none, "all", &everybody("10.0.0.0/16", 8)));
    drop(none.observe(&marked("n", &[], &[UNINITIALIZED]), begun));
    assert_eq!(none.awaits_labels(&uid, begun), None, "0 turns it off");
}

/// `rule:unlabelled-nodes-wait`
#[tokio::test(start_paused = true)]
async fn a_node_that_starved_without_its_labels_waits_for_them_all_the_same() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "foo", &labelled("10.1.0.0/16", 8, "foo")));
    let (begun, uid) = (now(), Uid::from("n"));
    for name in ["n", "labelled"] {
        let taints: &[&str] = if name == "n" { &[UNINITIALIZED] } else { &[] };
        drop(allocator.observe(&marked(name, &[], taints), begun));
        assert_eq!(shortage(allocator.assign(&name.into()).0), Shortage::NotSelected);
    }
    let effects = serve(&mut allocator, "all", &everybody("10.0.0.0/16", 8));
    assert_eq!(effects.wake, ["n".into(), "labelled".into()], "it holds up no other");
    assert_eq!(allocator.awaits_labels(&uid, now()), Some(begun + WAIT));
    assert_eq!(sent(allocator.assign(&"labelled".into()).0), ["10.0.0.0/24"]);
    let effects = allocator.observe(&marked("n", &["foo"], &[]), now());
    assert_eq!(effects.wake, ["n".into()]);
    assert_eq!(allocator.awaits_labels(&uid, now()), None);
    assert_eq!(sent(allocator.assign(&uid).0), ["10.1.0.0/24"]);
}

/// `rule:unlabelled-nodes-wait`
#[tokio::test(start_paused = true)]
async fn a_node_that_starved_and_has_waited_long_enough_is_served_without_its_labels() {
    let mut allocator = empty();
    drop(allocator.observe(&marked("n", &[], &[UNINITIALIZED]), now()));
    assert_eq!(shortage(allocator.assign(&"n".into()).0), Shortage::NotSelected);
    tokio::time::advance(WAIT).await;
    let effects = serve(&mut allocator, "all", &everybody("10.0.0.0/16", 8));
    assert_eq!(effects.wake, ["n".into()]);
    assert_eq!(sent(allocator.assign(&"n".into()).0), ["10.0.0.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn a_closer_one_without_its_finalizer_is_waited_for_and_not_for_ever() {
    let (close, far) = (labelled("10.1.0.0/24", 8, "foo"), everybody("10.0.0.0/16", 8));
    let mut allocator = empty();
    drop(serve(&mut allocator, "far", &far));
    drop(allocator.see_cluster_cidr(seen("close", ServingState::Unheld, &close)));
    let waits = Shortage::Unheld("close".into());
    assert_eq!(shortage(join(&mut allocator, "n", &["foo"])), waits);
    assert_eq!(sent(join(&mut allocator, "other", &[])), ["10.0.0.0/24"]);
    assert_eq!(serve(&mut allocator, "close", &close).wake, ["n".into()]);
    assert_eq!(sent(allocator.assign(&"n".into()).0), ["10.1.0.0/24"]);
    assert_eq!(sent(join(&mut allocator, "full", &["foo"])), ["10.0.1.0/24"]);

    let mut allocator = empty();
    drop(serve(&mut allocator, "far", &far));
    drop(allocator.see_cluster_cidr(seen("close", ServingState::Unheld, &close)));
    assert_eq!(shortage(join(&mut allocator, "n", &["foo"])), waits);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(sent(allocator.assign(&"n".into()).0), ["10.0.0.0/24"]);
}

/// `rule:cluster-cidr-outlives-its-claims`
#[test]
fn what_was_reserved_of_one_that_is_deleted_is_not_sent() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "old", &labelled("10.0.0.0/22", 8, "foo")));
    drop(serve(&mut allocator, "new", &everybody("10.9.0.0/16", 8)));
    let (n, m) = (Uid::from("n"), Uid::from("m"));
    let block = [cidr::parse("10.0.0.0/24").unwrap()];
    assert_eq!(sent(join(&mut allocator, "n", &["foo"])), ["10.0.0.0/24"]);
    let second = [cidr::parse("10.0.1.0/24").unwrap()];
    assert_eq!(sent(join(&mut allocator, "m", &["foo"])), ["10.0.1.0/24"]);
    let until = now() + Duration::from_secs(10);
    assert!(allocator.begin_send(&m, &second, now(), until).is_some(), "it has left");
    allocator.terminate("old");
    assert!(allocator.begin_send(&n, &block, now(), until).is_none());
    assert_eq!(sent(allocator.assign(&n).0), ["10.9.0.0/24"]);
    allocator.lost(&m, Some(until));
    let Assignment::Send { cidrs, unresolved: true, .. } = allocator.assign(&m).0 else { panic!() };
    assert_eq!(cidrs, second, "it may yet be applied");
    assert_eq!(allocator.read_empty(&m, now(), now()).0, AfterRead::Wait(until));
    assert!(allocator.begin_send(&m, &second, now(), until).is_none(), "it is not sent again");
}

/// `rule:cluster-cidr-outlives-its-claims`
#[test]
fn one_that_was_replaced_by_another_of_the_same_range_goes_at_once() {
    let range = cidr::parse("10.0.0.0/22").unwrap();
    let mut allocator = empty();
    drop(serve(&mut allocator, "old", &everybody("10.0.0.0/22", 8)));
    drop(join(&mut allocator, "a", &[]));
    drop(allocator.observe(&node("foreign", "foreign").cidrs(&["10.0.2.0/24"]), now()));
    allocator.terminate("old");
    let new = everybody("10.0.0.0/20", 8);
    drop(allocator.see_cluster_cidr(seen("new", ServingState::Unheld, &new)));
    assert_eq!(allocator.holding(&[range]), Holding::By(2), "the new one may yet go unseen");
    let effects = serve(&mut allocator, "new", &new);
    assert_eq!(effects.released, ["old".into()]);
    assert_eq!(allocator.holding(&[range]), Holding::Unused);

    // A Node with addresses of both is of neither.
    let both = node("both", "both").cidrs(&["10.0.3.0/24", "fd00::/64"]);
    drop(allocator.observe(&both, now()));
    assert_eq!(allocator.holding(&[range]), Holding::By(1));
}

#[test]
fn a_node_that_nothing_selects_starves_at_once_with_or_without_its_labels() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "foo", &labelled("10.1.0.0/16", 8, "foo")));
    drop(allocator.observe(&marked("n", &[], &[UNINITIALIZED]), now()));
    assert_eq!(allocator.awaits_labels(&"n".into(), now()), None);
}

/// `rule:cluster-cidr-outlives-its-claims`
#[test]
fn one_that_is_deleted_gives_nothing_and_goes_with_the_last_node_that_has_addresses_of_it() {
    let mut allocator = Allocator::of_cluster_cidrs(&[cidr::parse("10.0.0.0/28").unwrap()], WAIT);
    drop(serve(&mut allocator, "old", &labelled("10.0.0.0/22", 8, "foo")));
    drop(serve(&mut allocator, "new", &everybody("10.9.0.0/16", 8)));
    assert_eq!(
        sent(join(&mut allocator, "a", &["foo"])),
        ["10.0.1.0/24"],
        "the Services have the first"
    );
    drop(allocator.observe(&node("foreign", "foreign").cidrs(&["10.0.2.0/26"]), now()));
    allocator.terminate("old");
    assert_eq!(sent(join(&mut allocator, "b", &["foo"])), ["10.9.0.0/24"]);
    let ranges = [cidr::parse("10.0.0.0/22").unwrap()];
    assert_eq!(allocator.holding(&ranges), Holding::By(2));
    assert_eq!(allocator.gone("a", now()).released, [] as [Arc<str>; 0]);
    assert_eq!(allocator.gone("foreign", now()).released, ["old".into()]);
    allocator.set_in_list(true);
    assert_eq!(
        allocator.holding(&ranges),
        Holding::Unknown,
        "a block may be about to turn up elsewhere"
    );
    allocator.set_in_list(false);
    assert_eq!(allocator.holding(&ranges), Holding::Unused);
    let ended = allocator.cluster_cidr_gone("old").ended;
    assert_eq!(ended, [(cidr::parse("10.0.0.0/22").unwrap(), "old".into())]);
    assert_eq!(allocator.use_of("old"), None);
    assert_eq!(sent(join(&mut allocator, "c", &["foo"])), ["10.9.1.0/24"], "its pools moved up");
}

#[test]
fn of_those_that_may_serve_a_node_the_ones_in_use_are_named_as_full() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "b", &everybody("10.1.0.0/24", 8)));
    drop(sent(join(&mut allocator, "n", &[])));
    assert_eq!(shortage(join(&mut allocator, "m", &[])), Shortage::AllFull("b".into()));
    drop(allocator.see_cluster_cidr(seen("a", ServingState::Unheld, &everybody("10.1.0.0/24", 8))));
    assert_eq!(shortage(allocator.assign(&"m".into()).0), Shortage::AllFull("b".into()));
    allocator.terminate("b");
    let left = allocator.assign(&"m".into()).0;
    assert_eq!(shortage(left), Shortage::Unheld("a".into()));
    allocator.terminate("a");
    let left = allocator.assign(&"m".into()).0;
    assert_eq!(shortage(left), Shortage::NotSelected);
}

/// `rule:first-starved-first-served`
#[test]
fn a_new_one_with_room_serves_all_who_wait_in_one_line() {
    let mut allocator = empty();
    for name in ["first", "second", "third"] {
        assert_eq!(shortage(join(&mut allocator, name, &[])), Shortage::NotSelected);
    }
    let effects = serve(&mut allocator, "new", &everybody("10.0.0.0/22", 8));
    assert_eq!(effects.wake, ["first".into(), "second".into(), "third".into()]);
}

#[test]
fn of_many_that_are_full_five_are_named() {
    let full = |count: u8| {
        let mut allocator = empty();
        for index in 0..count {
            let range = format!("10.0.{index}.0/24");
            drop(serve(&mut allocator, &index.to_string(), &everybody(&range, 8)));
            drop(join(&mut allocator, &format!("of {index}"), &[]));
        }
        shortage(join(&mut allocator, "n", &[]))
    };
    assert_eq!(full(5), Shortage::AllFull("0, 1, 2, 3, 4".into()));
    assert_eq!(full(7), Shortage::AllFull("0, 1, 2, 3, 4, 2 more".into()));
}

#[test]
fn what_was_given_of_one_is_counted_for_it_after_another_is_gone() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "first", &labelled("10.0.0.0/22", 8, "first")));
    drop(serve(&mut allocator, "second", &labelled("10.1.0.0/22", 8, "second")));
    drop(join(&mut allocator, "n", &["second"]));
    drop(allocator.cluster_cidr_gone("first"));
    let pools = allocator.snapshot().pools;
    assert_eq!(pools.iter().map(|pool| pool.occupied_total).collect::<Vec<_>>(), [1]);
}

#[test]
fn one_that_is_seen_again_goes_on_where_it_was_and_one_with_other_fields_begins_anew() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "a", &everybody("10.0.0.0/22", 8)));
    assert_eq!(sent(join(&mut allocator, "n", &[])), ["10.0.0.0/24"]);
    drop(allocator.gone("n", now()));
    drop(serve(&mut allocator, "a", &everybody("10.0.0.0/22", 8)));
    assert_eq!(sent(join(&mut allocator, "o", &[])), ["10.0.1.0/24"], "blocks come back last");
    drop(serve(&mut allocator, "a", &everybody("10.9.0.0/22", 8)));
    assert_eq!(sent(join(&mut allocator, "p", &[])), ["10.9.0.0/24"]);
}

/// The object's own worker may know of the deletion before the watch tells it.
#[test]
fn one_that_is_being_deleted_gives_out_nothing_whatever_older_copies_say() {
    let mut allocator = empty();
    drop(serve(&mut allocator, "a", &everybody("10.0.0.0/24", 8)));
    allocator.terminate("a");
    drop(serve(&mut allocator, "a", &everybody("10.0.0.0/24", 8)));
    drop(serve(&mut allocator, "a", &everybody("10.0.0.0/25", 7)));
    assert_eq!(shortage(join(&mut allocator, "n", &[])), Shortage::NotSelected);
    let again = SeenClusterCidr {
        uid: "of the next".into(),
        ..seen("a", ServingState::Serving, &everybody("10.0.0.0/24", 8))
    };
    drop(allocator.cluster_cidr_gone("a"));
    assert_eq!(allocator.see_cluster_cidr(again).wake, ["n".into()]);
}

#[test]
fn what_an_object_finds_in_use_is_no_news_and_what_is_taken_of_it_then_is() {
    let mut allocator = empty();
    for i in 0..8 {
        let name = format!("n{i}");
        drop(allocator.observe(&node(&name, &name).cidrs(&[&format!("10.0.{i}.0/24")]), now()));
    }
    drop(serve(&mut allocator, "late", &everybody("10.0.0.0/20", 8)));
    drop(serve(&mut allocator, "full", &labelled("10.0.0.0/21", 8, "foo")));
    let pressure = |allocator: &Allocator| {
        allocator.snapshot().pools.iter().map(|pool| pool.pressure).collect::<Vec<_>>()
    };
    assert_eq!(pressure(&allocator), [0, 95]);
    let mut told = Vec::new();
    for i in 0..8 {
        let name = format!("m{i}");
        drop(allocator.observe(&marked(&name, &[], &[]), now()));
        told.push(reasons(&allocator.assign(&name.as_str().into()).1));
    }
    let nearly_full = |nodes: &Vec<&str>| *nodes == ["PodCIDRPoolNearlyFull"];
    let at: Vec<usize> = (0..8).filter(|i| nearly_full(&told[*i])).collect();
    assert_eq!(at, [4, 7], "of 16 blocks 13 and 16 are over the lines, and nothing else is told");
    assert!(told.iter().all(|told| told.is_empty() || nearly_full(told)), "{told:?}");
}

/// `rule:claims-outlive-pools`
#[test]
fn what_nodes_have_is_known_to_objects_that_come_later() {
    let mut allocator = empty();
    drop(allocator.observe(&node("old", "old").cidrs(&["10.0.0.0/24"]), now()));
    assert_eq!(allocator.snapshot().external, 1);
    drop(serve(&mut allocator, "late", &everybody("10.0.0.0/16", 8)));
    assert_eq!(allocator.snapshot().external, 0);
    assert_eq!(allocator.use_of("late").unwrap()[0].used, 1);
    assert_eq!(sent(join(&mut allocator, "n", &[])), ["10.0.1.0/24"]);
    drop(allocator.cluster_cidr_gone("late"));
    assert_eq!(allocator.snapshot().external, 2, "somebody let go of it by force");
}

#[test]
fn service_ranges_are_kept_out_of_objects_that_come_later() {
    let mut allocator = Allocator::of_cluster_cidrs(&[cidr::parse("10.0.0.0/23").unwrap()], WAIT);
    drop(serve(&mut allocator, "late", &everybody("10.0.0.0/22", 8)));
    assert_eq!(sent(join(&mut allocator, "n", &[])), ["10.0.2.0/24"]);
}

#[test]
fn excluded_ranges_are_kept_out_of_objects_too_and_hold_none_of_them() {
    let range = cidr::parse("10.0.0.0/22").unwrap();
    let mut allocator = empty().without(&[cidr::parse("10.0.0.0/23").unwrap()]);
    drop(serve(&mut allocator, "late", &everybody("10.0.0.0/22", 8)));
    assert_eq!(allocator.holding(&[range]), Holding::Unused);
    assert_eq!(sent(join(&mut allocator, "n", &[])), ["10.0.2.0/24"]);
    allocator.terminate("late");
    assert_eq!(allocator.holding(&[range]), Holding::By(1));
}

#[test]
fn cidrs_in_no_range_are_no_news_to_their_nodes_and_texts_that_are_none_are() {
    let mut allocator = empty();
    let effects = allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/24"]), now());
    assert_eq!(reasons(&effects), [""; 0]);
    let effects = allocator.observe(&node("b", "b").cidrs(&["garbage"]), now());
    assert_eq!(reasons(&effects), ["PodCIDROutOfRange"]);
    assert!(
        effects.notices[0]
            .message
            .contains("\"garbage\" (not a CIDR); this program does not change it")
    );
}
