use super::*;
use crate::parse;

fn net(text: &str) -> IpNet {
    parse(text).unwrap()
}

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| net(text)).collect()
}

fn ledger(pools: &[(&str, u8)]) -> Ledger<&'static str> {
    let pool = |&(cidr, mask): &(&str, u8)| Pool::new(net(cidr), mask, 16).unwrap();
    Ledger::new(pools.iter().map(pool).collect())
}

fn change(occupied: &[u128], freed: &[u128]) -> Change {
    Change { occupied: occupied.to_vec(), freed: freed.to_vec() }
}

/// A small IPv4 pool of four blocks.
fn four_blocks() -> Ledger<&'static str> {
    ledger(&[("10.0.0.0/22", 24)])
}

#[test]
fn a_block_two_owners_hold_is_used_until_both_are_gone() {
    let mut ledger = four_blocks();
    assert_eq!(ledger.occupy(&"a", &nets(&["10.0.1.0/24"])).change, change(&[1], &[0]));
    assert_eq!(ledger.occupy(&"b", &nets(&["10.0.1.0/24"])).change, change(&[0], &[0]));
    assert_eq!(ledger.release(&"a"), change(&[0], &[0]));
    assert_eq!(ledger.release(&"b"), change(&[0], &[1]));
}

#[test]
fn two_claims_smaller_than_a_block_share_it() {
    let mut ledger = four_blocks();
    assert_eq!(ledger.occupy(&"a", &nets(&["10.0.1.0/26"])).change, change(&[1], &[0]));
    let second = ledger.occupy(&"b", &nets(&["10.0.1.192/26"]));
    assert_eq!((second.change, second.conflicts), (change(&[0], &[0]), vec![]));
    assert_eq!(ledger.release(&"a"), change(&[0], &[0]));
    assert_eq!(ledger.release(&"b"), change(&[0], &[1]));
}

#[test]
fn the_end_of_a_wide_claim_frees_only_what_no_claim_inside_or_around_it_holds() {
    let mut ledger = four_blocks();
    ledger.occupy(&"inside", &nets(&["10.0.2.64/26"]));
    assert_eq!(ledger.occupy(&"wide", &nets(&["10.0.0.0/15"])).change, change(&[3], &[0]));
    assert_eq!(ledger.release(&"wide"), change(&[0], &[3]));
    assert_eq!(ledger.overlapping(&net("10.0.0.0/22")), [("inside", net("10.0.2.64/26"))]);
    ledger.occupy(&"wide", &nets(&["10.0.2.0/23"]));
    assert_eq!(ledger.release(&"inside"), change(&[0], &[0]));
}

#[test]
fn occupying_again_changes_nothing_and_still_shows_about_conflicts() {
    let mut ledger = four_blocks();
    ledger.occupy(&"a", &nets(&["10.0.1.0/24"]));
    let conflict = Conflict { mine: net("10.0.0.0/23"), other: "a", theirs: net("10.0.1.0/24") };
    for occupied in [1, 0] {
        let outcome = ledger.occupy(&"b", &nets(&["10.0.0.0/23"]));
        assert_eq!(outcome.conflicts, std::slice::from_ref(&conflict));
        assert_eq!(outcome.change, change(&[occupied], &[0]));
    }
}

#[test]
fn occupying_replaces_the_whole_claim_and_blocks_in_both_do_not_change_state() {
    let mut ledger = four_blocks();
    ledger.occupy(&"a", &nets(&["10.0.0.0/24", "10.0.1.0/24"]));
    let outcome = ledger.occupy(&"a", &nets(&["10.0.1.0/24", "10.0.2.0/23"]));
    assert_eq!(outcome.change, change(&[2], &[1]));
    assert_eq!(ledger.claim(&"a"), Some(&*nets(&["10.0.1.0/24", "10.0.2.0/23"])));
    assert_eq!(ledger.occupy(&"a", &nets(&["10.0.1.128/25"])).change, change(&[0], &[2]));
    assert_eq!(ledger.occupy(&"a", &[]).change, change(&[0], &[1]));
    assert_eq!((ledger.claim(&"a"), ledger.len()), (None, 0));
}

#[test]
fn a_claim_that_repeats_or_nests_its_own_cidrs_is_not_a_conflict_and_ends_wholly() {
    let mut ledger = four_blocks();
    let own = nets(&["10.0.0.0/23", "10.0.1.0/24", "10.0.1.0/24"]);
    let outcome = ledger.occupy(&"a", &own);
    assert_eq!((outcome.conflicts, outcome.change), (vec![], change(&[2], &[0])));
    assert_eq!(ledger.release(&"a"), change(&[0], &[2]));
    assert_eq!(ledger.overlapping(&net("0.0.0.0/0")), []);
}

#[test]
fn cidrs_outside_every_pool_are_claimed_and_reported_as_external() {
    let mut ledger = ledger(&[("10.0.0.0/22", 24), ("fd00::/62", 64)]);
    let outcome = ledger.occupy(&"a", &nets(&["fd00::/64", "172.16.0.0/24", "fe80::/64"]));
    assert_eq!(outcome.external, nets(&["172.16.0.0/24", "fe80::/64"]));
    assert_eq!(outcome.change, change(&[0, 1], &[0, 0]));
    let outcome = ledger.occupy(&"b", &nets(&["172.16.0.0/16"]));
    assert_eq!(outcome.conflicts[0].other, "a");
}

#[test]
fn claims_meet_pools_by_family_in_whatever_order_they_are_listed() {
    let mut ledger = ledger(&[("10.0.0.0/22", 24), ("fd00::/62", 64)]);
    ledger.occupy(&"swapped", &nets(&["fd00::/64", "10.0.0.0/24"]));
    let allocated = ledger.allocate(&"a").unwrap();
    assert_eq!(allocated.cidrs, nets(&["10.0.1.0/24", "fd00:0:0:1::/64"]));
    assert_eq!(allocated.skipped, [1, 1]);
    assert_eq!(allocated.change, change(&[1, 1], &[0, 0]));
}

#[test]
fn no_allocation_overlaps_a_live_claim() {
    let mut ledger = ledger(&[("10.0.0.0/20", 24)]);
    for (owner, cidr) in [("a", "10.0.0.0/28"), ("b", "10.0.4.0/22"), ("c", "10.0.9.255/32")] {
        ledger.occupy(&owner, &nets(&[cidr]));
    }
    for owner in ["d", "e", "f", "g", "h", "i", "j", "k", "l", "m"] {
        let block = ledger.allocate(&owner).unwrap().cidrs[0];
        assert_eq!(ledger.overlapping(&block), [(owner, block)]);
    }
    assert!(ledger.allocate(&"n").is_err());
}

#[test]
fn when_the_last_node_is_gone_only_the_service_range_is_left() {
    let mut ledger = four_blocks();
    ledger.occupy(&"service", &nets(&["10.0.0.0/25"]));
    ledger.occupy(&"giant", &nets(&["10.0.0.0/8"]));
    ledger.occupy(&"garbage", &nets(&["10.0.0.0/32", "10.0.3.9/32", "::/0"]));
    assert!(ledger.allocate(&"a").is_err());
    for owner in ["giant", "a", "garbage"] {
        ledger.release(&owner);
    }
    assert_eq!(ledger.pools()[0].used(), 1);
    assert_eq!((ledger.len(), ledger.claim(&"service").is_some()), (1, true));
    for expected in ["10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"] {
        assert_eq!(ledger.allocate(&expected).unwrap().cidrs, nets(&[expected]));
    }
}

#[test]
fn an_owner_with_a_claim_is_given_the_same_again() {
    let mut ledger = four_blocks();
    let first = ledger.allocate(&"a").unwrap();
    let again = ledger.allocate(&"a").unwrap();
    assert_eq!(again.cidrs, first.cidrs);
    assert_eq!((again.change, again.skipped), (change(&[0], &[0]), vec![]));
    assert_eq!(ledger.pools()[0].used(), 1);
    assert_eq!(ledger.allocate(&"b").unwrap().cidrs, nets(&["10.0.1.0/24"]));
}

#[test]
fn a_full_pool_leaves_every_pool_as_it_was() {
    let mut ledger = ledger(&[("10.0.0.0/22", 24), ("fd00::/64", 64)]);
    ledger.allocate(&"a").unwrap();
    for _ in 0..3 {
        assert_eq!(ledger.allocate(&"b").unwrap_err().pool, net("fd00::/64"));
        assert_eq!((ledger.pools()[0].used(), ledger.claim(&"b")), (1, None));
    }
    ledger.release(&"a");
    assert_eq!(ledger.allocate(&"b").unwrap().cidrs, nets(&["10.0.1.0/24", "fd00::/64"]));
}

#[test]
fn pools_that_overlap_still_give_disjoint_blocks_or_none() {
    let mut ledger = ledger(&[("10.0.0.0/23", 24), ("10.0.0.0/23", 25)]);
    ledger.occupy(&"tiny", &nets(&["10.0.1.200/32"]));
    assert_eq!(ledger.allocate(&"a").unwrap().cidrs, nets(&["10.0.0.0/24", "10.0.1.0/25"]));
    ledger.release(&"a");
    ledger.occupy(&"more", &nets(&["10.0.1.0/32"]));
    // The first pool has one block left, and it is all the second one has left.
    assert!(ledger.allocate(&"b").is_err());
    assert_eq!((ledger.pools()[0].used(), ledger.pools()[1].used()), (1, 2));
}

#[test]
fn an_exhausted_pool_says_how_large_it_is_and_what_to_do() {
    let mut ledger = ledger(&[("10.0.0.0/24", 24)]);
    ledger.allocate(&"a").unwrap();
    assert_eq!(
        ledger.allocate(&"b").unwrap_err().to_string(),
        "cannot allocate a node CIDR: cluster CIDR 10.0.0.0/24 with node mask /24 has 1 block, \
         1 in use; delete Nodes, or restart with a larger cluster CIDR or a longer node mask"
    );
    let mut ledger = four_blocks();
    ledger.occupy(&"a", &nets(&["10.0.0.0/8"]));
    let error = ledger.allocate(&"b").unwrap_err();
    assert_eq!((error.mask, error.blocks, error.used), (24, 4, 4));
    assert!(error.to_string().contains("has 4 blocks, 4 in use"), "{error}");
}

#[test]
fn a_pool_given_with_used_blocks_starts_empty() {
    let mut pool = Pool::new(net("10.0.0.0/22"), 24, 16).unwrap();
    pool.take();
    assert_eq!(Ledger::<&str>::new(vec![pool]).pools()[0].used(), 0);
}

#[test]
fn a_ledger_shows_who_has_a_claim_and_what_it_is() {
    let mut ledger = four_blocks();
    assert!(ledger.is_empty());
    ledger.occupy(&"b", &nets(&["10.0.1.0/24"]));
    ledger.occupy(&"a", &nets(&["192.168.0.0/24"]));
    assert_eq!((ledger.is_empty(), ledger.len()), (false, 2));
    assert!(ledger.claim(&"a").is_some());
    assert_eq!(ledger.claim(&"b"), Some(&nets(&["10.0.1.0/24"])[..]));
    assert_eq!(ledger.claim(&"absent"), None);
    assert_eq!((ledger.pools().len(), ledger.pools()[0].used()), (1, 1));
}

#[test]
fn a_claim_is_contested_while_a_claim_of_somebody_else_overlaps_it() {
    let mut ledger = ledger(&[("10.0.0.0/22", 24), ("fd00::/63", 64)]);
    ledger.occupy(&"a", &nets(&["10.0.1.0/24", "fd00::/64"]));
    assert!(!ledger.is_contested(&"a") && !ledger.is_contested(&"absent"));
    for other in ["10.0.1.0/24", "10.0.1.128/25", "10.0.0.0/16", "fd00::/96", "fd00::/8"] {
        ledger.occupy(&"other", &nets(&[other]));
        assert!(ledger.is_contested(&"a") && ledger.is_contested(&"other"), "{other}");
    }
    for apart in ["10.0.2.0/24", "10.0.0.0/24", "fd00:0:0:1::/64"] {
        ledger.occupy(&"other", &nets(&[apart]));
        assert!(!ledger.is_contested(&"a"), "{apart}");
    }
}

/// `rule:claims-outlive-pools`
#[test]
fn a_pool_that_is_added_finds_the_blocks_of_all_claims_used() {
    let mut ledger = ledger(&[]);
    for (owner, cidr) in
        [("around", "10.0.0.0/15"), ("inside", "10.2.1.64/26"), ("far", "10.3.0.0/24")]
    {
        ledger.occupy(&owner, &nets(&[cidr]));
    }
    let pool = |cidr: &str, mask| Pool::new(net(cidr), mask, 16).unwrap();
    assert_eq!(ledger.add_pools(vec![pool("10.1.0.0/16", 24), pool("10.2.0.0/22", 24)]), 0..2);
    assert_eq!(ledger.pools().iter().map(Pool::used).collect::<Vec<_>>(), [256, 1]);
    assert_eq!(ledger.add_pools(vec![pool("10.2.0.0/16", 26)]), 2..3);
    assert_eq!(ledger.pools()[2].used(), 1, "pools may lie in one another, with other blocks");
    assert_eq!(ledger.release(&"inside"), change(&[0, 0, 0], &[0, 1, 1]));
}

/// `rule:claims-outlive-pools`
#[test]
fn claims_stay_when_their_pool_is_taken_away() {
    let pools = [("10.0.0.0/22", 24), ("fd00::/62", 64), ("10.0.0.0/23", 25)];
    let mut ledger = ledger(&pools);
    assert_eq!(
        ledger.allocate_from(&"a", &[0, 1]).unwrap().cidrs,
        nets(&["10.0.0.0/24", "fd00::/64"])
    );
    ledger.remove_pools(0..2);
    assert_eq!(ledger.claim(&"a"), Some(&*nets(&["10.0.0.0/24", "fd00::/64"])));
    assert_eq!(ledger.pools()[0].cidr(), net("10.0.0.0/23"), "those behind move up");
    assert_eq!(ledger.allocate_from(&"b", &[0, 7]).unwrap().cidrs, nets(&["10.0.1.0/25"]));
    ledger.remove_pools(5..9);
    assert_eq!(ledger.pools().len(), 1, "places behind the last pool mean nothing");
}

#[test]
fn blocks_are_taken_of_the_pools_asked_for_and_of_no_other() {
    let mut ledger = ledger(&[("10.0.0.0/22", 25), ("10.0.0.0/22", 23)]);
    let blocks = [0, 1, 0, 1].into_iter().zip(["a", "b", "c", "d"]).map(|(place, owner)| {
        ledger.allocate_from(&owner, &[place]).map(|allocated| allocated.cidrs[0])
    });
    let blocks: Vec<_> = blocks.map(Result::ok).collect();
    let given = ["10.0.0.0/25", "10.0.2.0/23", "10.0.0.128/25"].map(|cidr| Some(net(cidr)));
    assert_eq!(blocks, [given[0], given[1], given[2], None], "none of the large blocks is whole");
    let full = ledger.allocate_from(&"e", &[1]).unwrap_err();
    assert_eq!((full.mask, full.used), (23, 2));
    let both = ledger.allocate_from(&"f", &[1, 0]).unwrap_err();
    assert_eq!(both, full, "in the order asked for");
    assert_eq!(ledger.release(&"b"), change(&[0, 0], &[4, 1]));
    let both = ledger.allocate_from(&"f", &[1, 0]).unwrap();
    assert_eq!(both.cidrs, nets(&["10.0.2.0/23", "10.0.1.0/25"]));
}

#[test]
fn a_cidr_is_held_by_whoever_has_a_claim_around_or_inside_it() {
    let mut ledger = four_blocks();
    ledger.occupy(&"inside", &nets(&["10.0.1.64/26"]));
    ledger.occupy(&"around", &nets(&["10.0.0.0/8"]));
    for owner in ["inside", "around"] {
        assert!(ledger.is_held(&net("10.0.1.0/24"), |holder| *holder == owner), "{owner}");
    }
    assert!(!ledger.is_held(&net("10.0.2.0/24"), |holder| *holder == "inside"));
    assert!(!ledger.is_held(&net("11.0.0.0/8"), |_| true));
}
