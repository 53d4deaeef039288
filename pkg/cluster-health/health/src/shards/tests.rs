mod leader;

use super::*;
use crate::write_gate::hash;

const S: fn(u64) -> Duration = Duration::from_secs;

fn view(names: &[&str]) -> View {
    names.iter().map(|&name| name.into()).collect()
}

fn claim(replica: &str, renewal: u64, names: &[&str]) -> Claim {
    Claim { replica: replica.into(), renewal, view: view(names), settled: true }
}

/// Claim of a replica that may not know all others.
fn new_claim(replica: &str, renewal: u64, names: &[&str]) -> Claim {
    Claim { settled: false, ..claim(replica, renewal, names) }
}

/// A replica that has known of everybody since then.
fn settled(replica: &str, since: Instant) -> Shards {
    Shards { settled: Some(since), ..Shards::new(replica) }
}

fn publish(shards: &mut Shards, names: &[&str], at: Instant) {
    shards.publishing(view(names));
    shards.published(at, at);
}

/// A cluster that belongs to `replica` among `names`.
fn cluster_of(replica: &str, names: &[&str]) -> u64 {
    (0..u64::MAX).find(|&cluster| owner(cluster, &view(names)) == Some(replica)).unwrap()
}

#[test]
fn a_replica_that_comes_or_goes_moves_only_its_own_share() {
    let (three, two) = (view(&["a", "b", "c"]), view(&["a", "b"]));
    let mut owned = [0_u32; 3];
    for cluster in (0..9000).map(|n| hash(&format!("uid-{n}"))) {
        let before = owner(cluster, &three).unwrap();
        owned[usize::from(before.as_bytes()[0] - b'a')] += 1;
        if before != "c" {
            assert_eq!(owner(cluster, &two), Some(before));
        }
    }
    assert!(owned.iter().all(|count| (2800..3200).contains(count)), "{owned:?}");
    assert_eq!(owner(1, &[]), None);
}

#[test]
fn nothing_is_probed_before_the_view_is_published_and_the_others_were_read_after_it() {
    let start = Instant::now();
    let mut a = settled("a", start);
    a.observe(Vec::new(), start, start);
    assert_eq!(a.desired(), view(&["a"]));
    a.publishing(view(&["a"]));
    assert!(!a.may_probe(1, start));
    a.published(start + S(1), start + S(2));
    assert!(!a.may_probe(1, start + S(2)));
    a.observe(Vec::new(), start + S(1), start + S(2));
    assert!(!a.may_probe(1, start + S(2)), "the read was begun before the view was there");
    a.observe(vec![claim("a", 1, &["a"])], start + S(2), start + S(3));
    assert!(a.may_probe(1, start + S(3)));
}

/// rule:one-owner-at-a-time
#[test]
fn a_cluster_changes_hands_when_its_owner_has_published_that_it_let_go() {
    let start = Instant::now();
    let moved = cluster_of("b", &["a", "b"]);
    let (mut a, mut b) = (settled("a", start), settled("b", start));
    publish(&mut a, &["a"], start);
    a.observe(vec![claim("a", 1, &["a"])], start, start);
    assert!(a.may_probe(moved, start));

    publish(&mut b, &["a", "b"], start);
    let both = vec![claim("a", 1, &["a"]), claim("b", 1, &["a", "b"])];
    b.observe(both.clone(), start, start);
    assert!(!b.may_probe(moved, start), "a still claims it");

    a.observe(both, start, start);
    assert!(!a.may_probe(moved, start), "b claims it, too");
    a.publishing(a.desired());
    assert!(!a.may_probe(moved, start));
    assert!(a.may_probe(cluster_of("a", &["a", "b"]), start));
    a.published(start, start);

    let both = vec![claim("a", 2, &["a", "b"]), claim("b", 1, &["a", "b"])];
    b.observe(both, start + S(1), start + S(1));
    assert!(b.may_probe(moved, start + S(1)));
}

/// rule:one-owner-at-a-time
#[test]
fn a_claim_ends_when_it_was_not_renewed_for_its_term_and_its_holder_stops_before() {
    let start = Instant::now();
    let cluster = cluster_of("a", &["a", "b"]);
    let (mut a, mut b) = (settled("a", start), settled("b", start));
    publish(&mut a, &["a", "b"], start);
    let both = vec![claim("a", 1, &["a", "b"]), claim("b", 1, &["a", "b"])];
    a.observe(both, start, start);
    assert!(a.may_probe(cluster, start + S(24)));
    assert!(!a.may_probe(cluster, start + S(25)));

    b.observe(vec![claim("a", 1, &["a", "b"])], start, start);
    publish(&mut b, &["b"], start + S(20));
    let both = || vec![claim("a", 1, &["a", "b"]), claim("b", 1, &["b"])];
    b.observe(both(), start + S(20), start + S(20));
    assert!(!b.may_probe(cluster, start + S(31)), "a may have renewed, unseen");
    b.observe(both(), start + S(29), start + S(31));
    assert!(!b.may_probe(cluster, start + S(31)), "the read is from before the end of the term");
    assert_eq!(b.next_lapse(), Some(start + S(30)));
    b.observe(both(), start + S(30), start + S(32));
    assert_eq!((b.lapsed().collect::<Vec<_>>(), b.next_lapse()), (vec!["a"], None));
    assert!(b.may_probe(cluster, start + S(32)));
    assert_eq!(b.desired(), view(&["b"]));
}

/// rule:one-owner-at-a-time
#[test]
fn a_release_ends_a_claim_at_once() {
    let start = Instant::now();
    let cluster = cluster_of("a", &["a", "b"]);
    let mut b = settled("b", start);
    publish(&mut b, &["b"], start);
    b.observe(vec![claim("a", 1, &["a", "b"]), claim("b", 1, &["b"])], start, start);
    assert!(!b.may_probe(cluster, start));
    assert_eq!(b.owner(cluster), Some("a"));
    let released = || vec![claim("a", 2, &[]), claim("b", 1, &["b"])];
    b.observe(released(), start + S(1), start + S(1));
    assert!(b.may_probe(cluster, start + S(1)));
    assert_eq!(b.owner(cluster), Some("b"));
    assert_eq!((b.desired(), b.next_lapse()), (view(&["b"]), None));
}

/// rule:one-owner-at-a-time
#[test]
fn the_claim_of_a_lease_that_somebody_deleted_outlives_it_by_a_term() {
    let start = Instant::now();
    let cluster = cluster_of("a", &["a", "b"]);
    let mut b = settled("b", start);
    let own = || claim("b", 1, &["b"]);
    b.observe(vec![claim("a", 1, &["a", "b"])], start, start);
    publish(&mut b, &["b"], start + S(20));
    for at in [20, 30, 40, 49] {
        publish(&mut b, &["b"], start + S(at));
        b.observe(vec![own()], start + S(at), start + S(at));
        assert!(!b.may_probe(cluster, start + S(at)), "a may have renewed until it was missed");
        assert_eq!(b.desired(), view(&["a", "b"]));
    }
    assert_eq!(b.next_lapse(), Some(start + S(50)));
    b.observe(vec![own()], start + S(50), start + S(50));
    assert!(b.may_probe(cluster, start + S(50)));
    assert_eq!((b.desired(), b.lapsed().count()), (view(&["b"]), 0));
}

/// rule:one-owner-at-a-time
#[test]
fn a_replica_that_lost_its_lease_reads_the_others_before_it_goes_on() {
    let start = Instant::now();
    let mut a = settled("a", start);
    publish(&mut a, &["a"], start);
    a.observe(vec![claim("a", 1, &["a"])], start, start);
    assert!(a.may_probe(1, start));
    a.lost();
    assert!(!a.may_probe(1, start));
    publish(&mut a, &["a"], start + S(1));
    assert!(!a.may_probe(1, start + S(1)), "another one may have taken it over");
    a.observe(vec![claim("a", 2, &["a"])], start + S(1), start + S(2));
    assert!(a.may_probe(1, start + S(2)));
}

/// rule:one-owner-at-a-time
#[test]
fn a_replica_that_slept_through_its_term_reads_the_others_before_it_goes_on() {
    let start = Instant::now();
    let cluster = cluster_of("a", &["a", "b"]);
    let mut a = settled("a", start);
    publish(&mut a, &["a", "b"], start);
    a.observe(vec![claim("a", 1, &["a", "b"]), claim("b", 1, &["a", "b"])], start, start);
    assert!(a.may_probe(cluster, start));
    // Awake again; what it knows of b is from before.
    let now = start + S(31);
    a.publishing(view(&["a", "b"]));
    a.published(now, now);
    assert!(!a.may_probe(cluster, now), "b may have taken it over");
    let claims = vec![claim("a", 2, &["a", "b"]), claim("b", 3, &["b"])];
    a.observe(claims, now, now);
    assert!(!a.may_probe(cluster, now), "b has");
    let claims = vec![claim("a", 2, &["a", "b"]), claim("b", 4, &["a", "b"])];
    let before = a.ours_since(cluster, start);
    a.observe(claims, now + S(1), now + S(1));
    assert!(a.may_probe(cluster, now + S(1)));
    assert_eq!((before, a.ours_since(cluster, now + S(1))), (None, Some(now + S(1))));
}

/// rule:one-owner-at-a-time
#[test]
fn a_replica_whose_lease_somebody_deleted_claims_nothing_until_it_has_another() {
    let start = Instant::now();
    let mut a = settled("a", start);
    publish(&mut a, &["a"], start + S(1));
    a.observe(Vec::new(), start, start + S(1));
    a.observe(vec![claim("a", 1, &["a"])], start + S(1), start + S(1));
    assert!(a.may_probe(1, start + S(1)), "the first read was begun before");
    a.observe(Vec::new(), start + S(2), start + S(2));
    assert!(!a.may_probe(1, start + S(2)));
    publish(&mut a, &["a"], start + S(3));
    a.observe(vec![claim("a", 2, &["a"])], start + S(3), start + S(3));
    assert!(a.may_probe(1, start + S(3)));
}

#[test]
fn a_view_whose_write_has_no_known_end_gives_nothing_and_takes_what_it_takes() {
    let start = Instant::now();
    let mut a = settled("a", start);
    publish(&mut a, &["a", "b"], start);
    a.observe(vec![claim("a", 1, &["a", "b"])], start, start);
    let (ours, theirs) = (cluster_of("a", &["a", "b"]), cluster_of("b", &["a", "b"]));
    a.publishing(view(&["a"]));
    assert!(a.may_probe(ours, start) && !a.may_probe(theirs, start));
    a.publishing(view(&["a", "b", "c"]));
    let lost = (0..u64::MAX).find(|&cluster| {
        owner(cluster, &view(&["a", "b"])) == Some("a")
            && owner(cluster, &view(&["a", "b", "c"])) == Some("c")
    });
    assert!(!a.may_probe(lost.unwrap(), start));
}

/// rule:one-owner-at-a-time
#[test]
fn a_view_that_may_have_been_published_between_counts_until_the_others_were_read_again() {
    let start = Instant::now();
    let mut a = settled("a", start);
    publish(&mut a, &["a", "b"], start);
    a.observe(vec![claim("a", 1, &["a", "b"])], start, start);
    let lost = (0..u64::MAX).find(|&cluster| {
        owner(cluster, &view(&["a", "b"])) == Some("a")
            && owner(cluster, &view(&["a", "b", "c"])) == Some("c")
    });
    let lost = lost.unwrap();
    assert!(a.may_probe(lost, start));
    a.publishing(view(&["a", "b", "c"]));
    a.publishing(view(&["a", "b"]));
    assert!(!a.may_probe(lost, start), "the view with c may be in the lease");
    a.published(start + S(1), start + S(1));
    assert!(!a.may_probe(lost, start + S(1)), "c may have taken it over meanwhile");
    a.observe(vec![claim("a", 2, &["a", "b"])], start + S(1), start + S(2));
    assert!(a.may_probe(lost, start + S(2)));
    a.publishing(view(&["a", "b"]));
    a.published(start + S(3), start + S(3));
    assert!(a.may_probe(lost, start + S(3)), "a renewal takes nothing away");
}

#[test]
fn a_newcomer_that_finds_nobody_waits_for_a_term_after_its_first_read() {
    let start = Instant::now();
    let mut a = Shards::new("a");
    a.observe(Vec::new(), start, start + S(1));
    publish(&mut a, &["a"], start + S(1));
    for at in [10, 20, 30] {
        publish(&mut a, &["a"], start + S(at));
        a.observe(vec![new_claim("a", at, &["a"])], start + S(at), start + S(at) + S(1));
        assert!(!a.may_probe(1, start + S(at) + S(1)) && !a.is_settled(), "{at}");
    }
    a.observe(vec![new_claim("a", 30, &["a"])], start + S(31), start + S(32));
    assert!(a.may_probe(1, start + S(32)) && a.is_settled());
    assert_eq!(a.ours_since(1, start + S(32)), Some(start + S(32)), "not since it was published");
}

#[test]
fn a_newcomer_begins_when_one_that_knows_of_everybody_knows_of_it() {
    let start = Instant::now();
    let all = ["a", "b", "c"];
    let cluster = cluster_of("c", &all);
    let read = |of_a: &dyn Fn(u64, &[&str]) -> Claim,
                view_of_a: &[&str],
                lease_of_b: Option<Claim>| {
        let mut c = Shards::new("c");
        let others = || [of_a(1, view_of_a)].into_iter().chain(lease_of_b.clone()).collect();
        c.observe(others(), start, start);
        publish(&mut c, &all, start);
        c.observe([others(), vec![new_claim("c", 1, &all)]].concat(), start + S(1), start + S(1));
        c.may_probe(cluster, start + S(1))
    };
    let known = |renewal: u64, names: &[&str]| claim("a", renewal, names);
    let new = |renewal: u64, names: &[&str]| new_claim("a", renewal, names);
    let of_b = || Some(claim("b", 1, &all));
    assert!(read(&known, &all, of_b()));
    assert!(read(&known, &all, Some(claim("b", 2, &[]))), "b has released its lease");
    assert!(!read(&known, &all, None), "somebody deleted the lease of b, which may be probing");
    let of_b = || Some(claim("b", 1, &["a", "b"]));
    assert!(!read(&known, &["a", "b"], of_b()), "neither may know of c");
    assert!(!read(&new, &all, Some(new_claim("b", 1, &all))), "who came lately knows no more");
}
