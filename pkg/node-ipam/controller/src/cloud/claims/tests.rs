//! Claims of Nodes, as the watch and the workers come and go.

use proptest::prelude::*;

use super::*;

fn node(name: &str, cidrs: &[&str]) -> Node {
    Node {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        resource_version: 1,
        deleting: false,
        pod_cidrs: cidrs.iter().collect(),
    }
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn counted(claims: Claims) -> Snapshot {
    Mutex::new(claims).count()
}

/// Used blocks of the pool, and all.
fn used(claims: Claims) -> (u128, u128) {
    let pool = &counted(claims).pools[0];
    (pool.used, pool.blocks)
}

/// A pool of two blocks.
fn pool() -> Claims {
    Claims::new(Some(Pool::new(net("10.0.0.0/23"), 24, 16).unwrap()), &[])
}

/// `rule:reserved-block-is-kept`
#[test]
fn a_node_is_given_the_same_block_until_it_is_gone() {
    let (mut claims, a, b) = (pool(), node("a", &[]), node("b", &[]));
    drop(claims.see(&a));
    drop(claims.see(&b));
    for _ in 0..3 {
        assert_eq!(claims.block(&a), Ok(net("10.0.0.0/24")));
    }
    assert_eq!(claims.block(&b), Ok(net("10.0.1.0/24")));
    drop(claims.gone(&a.uid));
    drop(claims.see(&node("c", &[])));
    assert_eq!(claims.block(&node("c", &[])), Ok(net("10.0.0.0/24")));
    assert_eq!(claims.block(&a), Err(Refusal::NotNow), "it is gone");
}

#[test]
fn a_full_pool_wakes_those_who_wait_when_a_block_is_freed() {
    let mut claims = pool();
    drop(claims.see(&node("a", &["10.0.0.0/23"])));
    drop(claims.see(&node("b", &[])));
    assert!(matches!(claims.block(&node("b", &[])), Err(Refusal::Full(_))));
    assert_eq!(claims.gone(&"uid-a".into()).wake, [Arc::from("b")]);
    assert_eq!(claims.block(&node("b", &[])), Ok(net("10.0.0.0/24")));
}

#[test]
fn reserved_addresses_are_given_to_nobody() {
    let pool = Pool::new(net("10.0.0.0/23"), 24, 16).unwrap();
    let mut claims = Claims::new(Some(pool), &[net("10.0.0.128/25")]);
    drop(claims.see(&node("a", &[])));
    assert_eq!(claims.block(&node("a", &[])), Ok(net("10.0.1.0/24")));
    assert_eq!(used(claims), (2, 2));
}

/// `rule:block-has-one-holder`
#[test]
fn what_another_node_has_is_not_taken_until_that_one_is_gone() {
    let (mut claims, cidrs) = (Claims::new(None, &[]), [net("10.0.0.0/24")]);
    let (old, new) = (node("old", &["10.0.0.0/25"]), node("new", &[]));
    drop(claims.see(&old));
    drop(claims.see(&new));
    let held = claims.take(&new, &cidrs).unwrap_err();
    assert_eq!(held, Refusal::Held { cidr: cidrs[0], by: "old".into() });
    assert_eq!(claims.of(&new.uid), [], "it blocks no other Node");
    assert!(!claims.may_send(&new.uid, &cidrs));
    assert_eq!(claims.gone(&old.uid).wake, [Arc::from("new")]);
    assert_eq!(claims.take(&new, &cidrs), Ok(()));
    assert!(claims.may_send(&new.uid, &cidrs));
}

/// `rule:block-has-one-holder`
#[test]
fn a_block_that_somebody_else_took_is_moved_before_it_left_and_not_sent_afterwards() {
    let (mut claims, a, b) = (pool(), node("a", &[]), node("b", &[]));
    drop(claims.see(&a));
    drop(claims.see(&b));
    let block = claims.block(&a).unwrap();
    drop(claims.see(&node("foreign", &["10.0.0.0/24"])));
    assert!(!claims.may_send(&a.uid, &[block]));
    let moved = claims.block(&a).unwrap();
    assert_eq!(moved, net("10.0.1.0/24"));
    assert!(claims.may_send(&a.uid, &[moved]));
    drop(claims.see(&node("another", &["10.0.1.0/24"])));
    assert!(matches!(claims.block(&a), Err(Refusal::Held { .. })));
    assert!(!claims.may_send(&a.uid, &[moved]));
    assert_eq!(claims.of(&a.uid), [moved], "it may have been carried out");
}

#[test]
fn nothing_is_given_out_while_a_list_is_taken_in() {
    let (mut claims, a) = (pool(), node("a", &[]));
    drop(claims.see(&a));
    let block = claims.block(&a).unwrap();
    claims.set_in_list(true);
    assert_eq!(claims.block(&a), Err(Refusal::NotNow));
    assert_eq!(claims.take(&a, &[block]), Err(Refusal::NotNow));
    assert!(!claims.may_send(&a.uid, &[block]));
    claims.set_in_list(false);
    assert!(claims.may_send(&a.uid, &[block]));
}

#[test]
fn what_somebody_else_wrote_replaces_the_claim() {
    let (mut claims, a) = (pool(), node("a", &[]));
    drop(claims.see(&a));
    claims.block(&a).unwrap();
    drop(claims.see(&node("a", &["10.0.1.0/24"])));
    assert_eq!(claims.of(&a.uid), [net("10.0.1.0/24")]);
    assert_eq!(used(claims), (1, 2));
}

#[test]
fn what_was_written_counts_before_the_cache_shows_it() {
    let (mut claims, a) = (pool(), node("a", &[]));
    drop(claims.see(&a));
    claims.block(&a).unwrap();
    assert_eq!(claims.pod_cidrs(&a), [""; 0]);
    claims.written(&a.uid);
    drop(claims.see(&a));
    assert_eq!(claims.pod_cidrs(&a), ["10.0.0.0/24"]);
    assert_eq!(claims.pod_cidrs(&node("a", &["10.0.1.0/24"])), ["10.0.1.0/24"]);
    drop(claims.gone(&a.uid));
    claims.written(&a.uid);
    assert_eq!(claims.pod_cidrs(&a), [""; 0]);
}

#[test]
fn a_node_shows_ours_when_it_has_just_what_was_sent() {
    let (mut claims, cidrs) = (pool(), [net("10.0.0.0/24")]);
    let shown = node("a", &["10.0.0.0/24"]);
    drop(claims.see(&shown));
    assert!(!claims.shows_ours(&shown), "somebody else has written it");
    drop(claims.gone(&shown.uid));
    drop(claims.see(&node("a", &[])));
    assert_eq!(claims.block(&node("a", &[])), Ok(cidrs[0]));
    assert!(claims.may_send(&shown.uid, &cidrs));
    assert!(claims.shows_ours(&shown));
    assert!(!claims.shows_ours(&node("a", &[])));
    assert!(!claims.shows_ours(&node("a", &["10.0.1.0/24"])));
}

/// `rule:no-block-is-lost`
#[test]
fn an_audit_mends_what_the_watch_did_not_tell() {
    let mut claims = pool();
    let (a, b) = (node("a", &["10.0.0.0/24"]), node("b", &["10.0.1.0/24"]));
    drop(claims.see(&a));
    assert_eq!(claims.audit([&a].into_iter()), 0);
    assert_eq!(claims.audit([&b].into_iter()), 2, "one has gone, one has come");
    assert_eq!((claims.of(&a.uid), claims.of(&b.uid)), (&[][..], &[net("10.0.1.0/24")][..]));
    assert_eq!(claims.audit([&b].into_iter()), 0);
}

/// `rule:reserved-block-is-kept`
#[test]
fn what_was_taken_in_place_of_what_was_sent_was_not_sent() {
    let (mut claims, a) = (Claims::new(None, &[]), node("a", &[]));
    let (first, second) = ([net("10.0.0.0/24")], [net("10.0.1.0/24")]);
    drop(claims.see(&a));
    assert_eq!(claims.take(&a, &first), Ok(()));
    assert!(claims.may_send(&a.uid, &first));
    assert_eq!(claims.told(&a.uid), Some(first[0]));
    assert_eq!(claims.take(&a, &first), Ok(()));
    assert_eq!(claims.told(&a.uid), Some(first[0]), "it is the same");
    assert_eq!(claims.take(&a, &second), Ok(()));
    assert_eq!(claims.told(&a.uid), None);
}

#[test]
fn nodes_that_wait_are_counted_by_how_far_they_have_come() {
    let mut claims = pool();
    let nodes = ["a", "b", "c", "d"].map(|name| node(name, &[]));
    for node in &nodes {
        drop(claims.see(node));
    }
    let [a, b, c, d] = &nodes;
    let block = claims.block(a).unwrap();
    assert!(claims.may_send(&a.uid, &[block]));
    claims.block(b).unwrap();
    assert!(claims.block(c).is_err());
    let count = |claims: Claims| {
        let claims = Mutex::new(claims);
        let Snapshot { pending, starved, reserved, .. } = claims.count();
        ((pending, starved, reserved), claims.into_inner())
    };
    let (counts, mut claims) = count(claims);
    assert_eq!(counts, (1, 1, 2), "d, c, a and b");
    claims.written(&a.uid);
    let (counts, mut claims) = count(claims);
    assert_eq!(counts, (1, 1, 2), "the cache does not show a");
    drop(claims.see(&node("a", &["10.0.0.0/24"])));
    drop(claims.gone(&d.uid));
    let (counts, _) = count(claims);
    assert_eq!(counts, (1, 0, 1), "c was woken");
}

/// `rule:foreign-value-is-adopted`
#[test]
fn what_somebody_else_gave_a_node_that_waited_is_counted_and_ours_is_not() {
    let mut claims = pool();
    drop(claims.see(&node("a", &["10.0.0.0/24"])));
    drop(claims.see(&node("b", &[])));
    drop(claims.see(&node("b", &["10.0.1.0/24"])));
    drop(claims.see(&node("b", &["10.0.1.0/24"])));
    drop(claims.gone(&"uid-a".into()));
    drop(claims.see(&node("c", &[])));
    let block = claims.block(&node("c", &[])).unwrap();
    assert!(claims.may_send(&"uid-c".into(), &[block]));
    drop(claims.see(&node("c", &["10.0.0.0/24"])));
    let state = counted(claims);
    assert_eq!(state.foreign_total, 1, "b, to which we had sent nothing");
    let pool = &state.pools[0];
    assert_eq!((pool.occupied_total, pool.freed_total, pool.used), (3, 1, 2));
}

/// `rule:second-allocator-is-told`
#[test]
fn what_no_patch_of_ours_can_have_written_is_foreign() {
    let mut claims = pool();
    claims.set_in_list(true);
    assert_eq!(claims.see(&node("old", &["10.0.0.0/24"])).foreign, None, "there at the start");
    claims.set_in_list(false);
    let late = claims.see(&node("late", &["10.0.1.0/24"]));
    assert_eq!(late.foreign, Some(Evidence::SeenLate));
    drop(claims.gone(&"uid-late".into()));
    drop(claims.see(&node("a", &[])));
    assert_eq!(claims.see(&node("a", &["10.0.1.0/24"])).foreign, Some(Evidence::SawEmpty));
    drop(claims.gone(&"uid-a".into()));
    let b = node("b", &[]);
    drop(claims.see(&b));
    let block = claims.block(&b).unwrap();
    assert!(claims.may_send(&b.uid, &[block]));
    assert_eq!(claims.see(&node("b", &["10.0.1.0/24"])).foreign, None, "its answer tells");
}

/// `rule:freed-blocks-rest`
#[tokio::test(start_paused = true)]
async fn the_block_of_a_node_that_is_gone_rests_for_as_long_as_the_flag_says() {
    let mut claims = pool().resting_for(Duration::from_secs(60));
    let (b, c) = (node("b", &[]), node("c", &[]));
    drop(claims.see(&node("a", &["10.0.0.0/24"])));
    drop(claims.see(&b));
    claims.block(&b).unwrap();
    drop(claims.gone(&"uid-a".into()));
    drop(claims.gone(&b.uid));
    drop(claims.see(&c));
    assert_eq!(claims.block(&c), Ok(net("10.0.1.0/24")), "that of b never left");
    let d = node("d", &[]);
    drop(claims.see(&d));
    assert!(matches!(claims.block(&d), Err(Refusal::Full(_))));
    let claims = Mutex::new(claims);
    assert_eq!(claims.count().resting, 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(claims.count().resting, 0);
    assert_eq!(claims.lock().block(&d), Ok(net("10.0.0.0/24")));
}

/// `rule:a-bad-node-stops-only-itself`
#[test]
fn pairs_that_overlap_and_what_is_outside_of_the_pool_are_counted_while_they_last() {
    let mut claims = pool();
    let effects = claims.see(&node("a", &["10.0.0.0/24"]));
    assert_eq!(effects, Effects::default());
    let effects = claims.see(&node("b", &["10.0.0.0/25", "garbage"]));
    let conflict = effects.conflict.unwrap();
    assert_eq!(conflict.other, ("a".into(), "uid-a".into()));
    assert_eq!((conflict.mine, conflict.theirs), (net("10.0.0.0/25"), net("10.0.0.0/24")));
    drop(claims.see(&node("c", &["10.0.0.0/23"])));
    drop(claims.see(&node("d", &["192.168.0.0/24", "fd00::/64"])));
    let (claims, mut state) = (Mutex::new(claims), Vec::new());
    for gone in ["", "b", "d", "a"] {
        drop(claims.lock().gone(&format!("uid-{gone}").into()));
        let counts = claims.count();
        state.push((counts.conflicts, counts.external));
    }
    assert_eq!(state, [(3, 3), (1, 2), (1, 0), (0, 0)]);
}

#[test]
fn garbage_is_nobodys_claim_and_no_reason_to_fail() {
    let mut claims = pool();
    drop(claims.see(&node("a", &["garbage", "10.0.0.0/24"])));
    assert_eq!(claims.of(&"uid-a".into()), [net("10.0.0.0/24")]);
    assert_eq!(claims.pod_cidrs(&node("a", &["garbage"])), ["garbage"]);
}

proptest! {
    /// `rule:block-has-one-holder`, whatever the order.
    #[test]
    fn no_two_nodes_may_ever_be_sent_the_same(
        steps in prop::collection::vec((0..4_u8, 0..6_u8, 0..4_u8), 1..60),
    ) {
        let mut claims = Claims::new(Some(Pool::new(net("10.0.0.0/22"), 24, 16).unwrap()), &[]);
        let mut sent: HashMap<Uid, Vec<IpNet>> = HashMap::new();
        for (step, who, what) in steps {
            let name = format!("n{who}");
            let (a, cidr) = (node(&name, &[]), format!("10.0.{what}.0/24"));
            match step {
                0 => drop(claims.see(&a)),
                1 => { drop(claims.gone(&a.uid)); sent.remove(&a.uid); }
                2 => { drop(claims.take(&a, &[net(&cidr)])); }
                _ => { drop(claims.block(&a)); }
            }
            let mine = claims.of(&a.uid).to_vec();
            if !mine.is_empty() && claims.may_send(&a.uid, &mine) {
                sent.insert(a.uid.clone(), mine.clone());
                for (other, theirs) in &sent {
                    prop_assert!(*other == a.uid || *theirs != mine, "{other} and {}", a.uid);
                }
            }
        }
    }
}
