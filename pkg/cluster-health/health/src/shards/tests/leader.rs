//! A leader among replicas that share, or without any.

use super::*;

/// A leader that has just begun, after its first read.
fn leader_that_finds(claims: Vec<Claim>, at: Instant) -> Shards {
    let mut leader = Shards::of_leader();
    leader.observe(claims, at, at);
    leader
}

#[test]
fn a_leader_goes_on_at_once_with_the_lease_that_the_one_before_it_has_left() {
    let start = Instant::now();
    let left = |names: &[&str]| vec![claim(LEADER, 1, names)];
    let mut next = leader_that_finds(left(&[LEADER]), start);
    assert!(next.is_settled() && !next.may_probe(1, start));
    publish(&mut next, &[LEADER], start);
    next.observe(vec![claim(LEADER, 2, &[LEADER])], start, start);
    assert!(next.may_probe(1, start) && !next.has_met_others());

    assert!(leader_that_finds(left(&[]), start).is_settled(), "it was given back");
    let deleted = leader_that_finds(left(&["b", LEADER]), start);
    assert!(!deleted.is_settled(), "somebody deleted the lease of b, which may be probing");
    assert!(leader_that_finds(Vec::new(), start).is_settled(), "it is the first of all");
}

#[test]
fn a_leader_and_a_replica_that_shares_see_each_other_s_claims() {
    let start = Instant::now();
    let (names, sharing) = ([LEADER, "b"], |names: &[&str]| claim("b", 1, names));
    let mut leader = leader_that_finds(vec![sharing(&["b"])], start);
    assert_eq!(leader.desired(), view(&["b", LEADER]));
    publish(&mut leader, &["b", LEADER], start);
    let own = || claim(LEADER, 1, &["b", LEADER]);
    leader.observe(vec![own(), sharing(&["b"])], start, start);
    assert!((0..100).all(|cluster| !leader.may_probe(cluster, start)), "b has them all");
    leader.observe(vec![own(), sharing(&["b", LEADER])], start + S(1), start + S(1));
    assert!(leader.has_met_others());
    for cluster in 0..100 {
        let is_its = owner(cluster, &view(&names)) == Some(LEADER);
        assert_eq!(leader.may_probe(cluster, start + S(1)), is_its);
    }
}

#[test]
fn a_leader_to_whom_leases_are_refused_has_all_clusters_until_it_sees_somebody() {
    let start = Instant::now();
    let mut leader = Shards::of_leader();
    leader.failed(false, start);
    assert!(!leader.may_probe(1, start), "there may be somebody");
    leader.failed(true, start + S(1));
    leader.failed(true, start + S(300));
    assert!(leader.may_probe(1, start + S(300)));
    assert_eq!(leader.ours_since(1, start + S(300)), Some(start + S(1)));

    let mut granted = leader.clone();
    granted.observe(Vec::new(), start + S(310), start + S(310));
    assert!(granted.is_settled() && granted.is_alone(), "it does not wait");
    publish(&mut granted, &[LEADER], start + S(310));
    let own = vec![claim(LEADER, 1, &[LEADER])];
    granted.observe(own, start + S(310), start + S(311));
    assert!(!granted.is_alone() && granted.may_probe(1, start + S(311)));

    let newcomer = vec![new_claim("b", 1, &["b"])];
    let mut met = leader.clone();
    met.observe(newcomer, start + S(310), start + S(310));
    assert!(!met.may_probe(1, start + S(310)) && met.is_settled(), "b waits for us");
    leader.observe(vec![claim("b", 1, &["b"])], start + S(310), start + S(310));
    assert!(!leader.may_probe(1, start + S(310)), "b has it");
}

/// rule:one-owner-at-a-time
#[test]
fn when_no_lease_can_be_read_or_renewed_a_leader_begins_after_the_replicas_that_share_have_ended() {
    let start = Instant::now();
    let mut b = settled("b", start);
    publish(&mut b, &["b"], start);
    b.observe(vec![claim("b", 1, &["b"])], start, start);
    let mut leader = Shards::of_leader();
    let probing: Vec<_> = (0..40)
        .map(|second| {
            let now = start + S(second);
            leader.failed(false, now);
            b.failed(false, now);
            (b.may_probe(1, now), leader.may_probe(1, now))
        })
        .collect();
    let counts = |of: fn(&(bool, bool)) -> bool| probing.iter().filter(|it| of(it)).count();
    assert_eq!(counts(|(b, leader)| *b && *leader), 0);
    assert_eq!(counts(|(b, _)| *b), 25, "it ends a margin before its claims do");
    assert_eq!(counts(|(_, leader)| *leader), 5, "it waits for a term and a margin, and no longer");
    assert!(leader.is_unread());
    leader.observe(vec![claim("b", 2, &["b"])], start + S(40), start + S(40));
    assert!(!leader.is_unread() && !leader.may_probe(1, start + S(40)), "b may have it again");
}

/// rule:one-owner-at-a-time, rule:no-claim-before-a-read
#[test]
fn a_leader_whose_reads_fail_for_a_while_takes_nothing_from_a_replica_that_reads() {
    let start = Instant::now();
    let mut b = settled("b", start);
    let mut leader = Shards::of_leader();
    for second in 0..35 {
        let now = start + S(second);
        publish(&mut b, &["b"], now);
        b.observe(vec![claim("b", second, &["b"])], now, now);
        leader.failed(false, now);
        assert!(b.may_probe(1, now) && !leader.may_probe(1, now), "{second}");
    }
    let now = start + S(36);
    leader.observe(vec![claim("b", 36, &["b"])], now, now);
    publish(&mut leader, &["b", LEADER], now);
    leader.failed(false, now + S(60));
    assert!(!leader.may_probe(1, now + S(60)) && !leader.is_unread(), "b has it");
}

#[test]
fn a_leader_that_cannot_renew_goes_on_while_it_knows_of_nobody() {
    let start = Instant::now();
    let mut leader = leader_that_finds(vec![claim(LEADER, 1, &[LEADER])], start);
    publish(&mut leader, &[LEADER], start);
    let mut shared = leader.clone();
    leader.failed(false, start + S(20));
    assert!(leader.may_probe(1, start + S(3600)));
    let both = vec![claim(LEADER, 2, &[LEADER]), claim("b", 1, &["b", LEADER])];
    shared.observe(both, start, start + S(1));
    for refused in [false, true] {
        shared.failed(refused, start + S(20));
        assert!(!shared.is_alone() && !shared.may_probe(1, start + S(60)), "b takes over");
    }
}

#[test]
fn who_shares_is_never_alone() {
    let start = Instant::now();
    let mut a = settled("a", start);
    a.failed(true, start);
    assert!(!a.is_alone() && !a.may_probe(1, start));
}
