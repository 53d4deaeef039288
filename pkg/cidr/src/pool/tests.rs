mod runs;

use super::*;
use crate::parse;

fn net(text: &str) -> IpNet {
    parse(text).unwrap()
}

fn refusal(cidr: &str, mask: u8, max_ipv6_bits: u8) -> String {
    Pool::new(net(cidr), mask, max_ipv6_bits).unwrap_err().to_string()
}

#[test]
fn a_mask_shorter_than_the_prefix_is_refused_and_the_useful_masks_are_named() {
    assert_eq!(
        refusal("10.0.0.0/25", 24, 16),
        "cannot cut cluster CIDR 10.0.0.0/25 into node CIDRs of /24: the node mask is shorter \
         than the prefix /25, use one from 25 to 32"
    );
}

#[test]
fn a_mask_longer_than_an_address_is_refused() {
    assert_eq!(
        refusal("10.0.0.0/16", 33, 16),
        "cannot cut cluster CIDR 10.0.0.0/16 into node CIDRs of /33: an IPv4 mask is at most 32"
    );
    assert!(refusal("fd00::/120", 129, 16).ends_with("an IPv6 mask is at most 128"));
}

#[test]
fn ipv6_pools_are_limited_to_the_bits_allowed_and_never_more_than_64() {
    assert_eq!(
        refusal("fd00::/48", 65, 16),
        "cannot cut an IPv6 cluster CIDR into 2^17 node CIDRs: the limit is 2^16, use a node mask \
         shorter by 1 or raise the limit (at most 64)"
    );
    assert!(Pool::new(net("fd00::/48"), 65, 17).is_ok());
    assert_eq!(Pool::new(net("::/0"), 64, 64).unwrap().blocks(), 1 << 64);
    assert_eq!(
        Pool::new(net("::/0"), 65, u8::MAX).unwrap_err(),
        PoolError::TooManyIpv6Bits { bits: 65, max: 64 }
    );
}

#[test]
fn a_mask_equal_to_the_prefix_is_one_block_even_when_it_is_the_whole_address_space() {
    for (cidr, mask) in [("0.0.0.0/0", 0), ("::/0", 0), ("10.0.0.1/32", 32), ("::1/128", 128)] {
        let mut pool = Pool::new(net(cidr), mask, 16).unwrap();
        assert_eq!((pool.blocks(), pool.indices(&net(cidr))), (1, Some(0..=0)), "{cidr}");
        assert_eq!(pool.take().map(|candidate| candidate.block), Some(net(cidr)));
        assert_eq!((pool.take(), pool.block(1)), (None, None), "{cidr}");
    }
}

#[test]
fn host_bits_of_the_cluster_cidr_and_of_claims_are_masked() {
    let mut pool = Pool::new("10.0.3.7/22".parse().unwrap(), 24, 16).unwrap();
    assert_eq!(pool.cidr(), net("10.0.0.0/22"));
    assert_eq!(pool.occupy(&"10.0.2.9/23".parse().unwrap()), 2);
    assert_eq!(pool.indices(&"10.0.2.9/23".parse().unwrap()), Some(2..=3));
}

#[test]
fn a_cidr_of_the_other_family_is_out_of_range_even_when_its_bits_match() {
    let pool = Pool::new(net("0.0.0.0/8"), 24, 16).unwrap();
    assert_eq!(pool.indices(&net("::/104")), None);
    assert_eq!(pool.indices(&net("::/0")), None);
}

#[test]
fn looking_at_the_next_block_does_not_take_it() {
    let mut pool = Pool::new(net("10.0.0.0/23"), 24, 16).unwrap();
    assert_eq!(pool.peek(), pool.peek());
    assert_eq!((pool.used(), pool.free()), (0, 2));
    assert_eq!(pool.peek(), pool.take());
    assert_eq!((pool.used(), pool.free()), (1, 1));
}

#[test]
fn the_blocks_skipped_are_counted_across_the_wrap() {
    let mut pool = Pool::new(net("10.0.0.0/21"), 24, 16).unwrap();
    for _ in 0..6 {
        pool.take();
    }
    pool.occupy(&net("10.0.6.0/23"));
    pool.release(&net("10.0.1.0/24"));
    let found = pool.take().unwrap();
    assert_eq!((found.index, found.skipped), (1, 3));
}

#[test]
fn the_largest_pools_allocate_at_both_ends() {
    for (cidr, mask, first, last) in [
        ("10.0.0.0/8", 32, "10.0.0.0/32", "10.255.255.255/32"),
        ("0.0.0.0/0", 32, "0.0.0.0/32", "255.255.255.255/32"),
        ("2001:db8::/32", 96, "2001:db8::/96", "2001:db8:ffff:ffff:ffff:ffff::/96"),
        ("::/0", 64, "::/64", "ffff:ffff:ffff:ffff::/64"),
    ] {
        let mut pool = Pool::new(net(cidr), mask, 64).unwrap();
        assert_eq!(pool.take().unwrap().block, net(first));
        assert_eq!(pool.block(pool.blocks() - 1), Some(net(last)));
        assert_eq!(pool.occupy(&net(cidr)), pool.blocks() - 1);
        assert_eq!(pool.take(), None);
        assert_eq!(pool.release(&net(last)), 1);
        let found = pool.take().unwrap();
        assert_eq!((found.block, found.skipped), (net(last), pool.blocks() - 2));
        assert_eq!(pool.release(&net(cidr)), pool.blocks());
    }
}

#[test]
fn a_pool_knows_its_measures() {
    let pool = Pool::new(net("10.0.0.0/22"), 24, 16).unwrap();
    assert_eq!((pool.cidr(), pool.mask(), pool.family()), (net("10.0.0.0/22"), 24, Family::V4));
    assert_eq!((pool.blocks(), pool.used(), pool.free()), (4, 0, 4));
    assert_eq!((pool.block(3), pool.block(4)), (Some(net("10.0.3.0/24")), None));
}
