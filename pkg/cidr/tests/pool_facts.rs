//! Facts about blocks without owners, most of them from upstream's own tests: where a block is,
//! which blocks a CIDR overlaps, and in which order blocks are handed out
//! (`rule:blocks-are-next-fit`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cidr::{IpNet, Pool, canonical, parse};

fn net(text: &str) -> IpNet {
    parse(text).unwrap()
}

fn pool(cidr: &str, mask: u8) -> Pool {
    Pool::new(net(cidr), mask, 16).unwrap()
}

fn take(pool: &mut Pool) -> Option<String> {
    pool.take().map(|candidate| canonical(&candidate.block))
}

fn take_all(pool: &mut Pool) -> Vec<String> {
    std::iter::from_fn(|| take(pool)).collect()
}

/// The third octet of every block of a /16 with node mask 24.
fn slices(network: &str, thirds: std::ops::Range<u16>) -> Vec<String> {
    thirds.map(|third| format!("{network}.{third}.0/24")).collect()
}

#[test]
fn a_block_lies_at_its_index() {
    for (cidr, mask, index, expected) in [
        ("127.123.3.0/16", 24, 0, "127.123.0.0/24"),
        ("127.123.3.0/16", 24, 15, "127.123.15.0/24"),
        ("192.168.5.219/28", 32, 5, "192.168.5.213/32"),
        ("2001:db8:1234:3::/48", 64, 0, "2001:db8:1234::/64"),
        ("2001:db8:1234:3::/48", 64, 15, "2001:db8:1234:f::/64"),
        ("2001:db8:85a3::8a2e:370:7334/50", 63, 6425, "2001:db8:85a3:3232::/63"),
        ("2001:db8::/32", 48, 15, "2001:db8:f::/48"),
        ("2001:db8::/32", 48, 6425, "2001:db8:1919::/48"),
        ("2001:db8:1234:ff00::/56", 72, 15, "2001:db8:1234:ff00:f00::/72"),
        ("2001:db8:1234:ff00::/56", 72, 6425, "2001:db8:1234:ff19:1900::/72"),
        ("2001:db8:1234:ff00::/80", 96, 6425, "2001:db8:1234:ff00:0:1919::/96"),
    ] {
        let pool = pool(cidr, mask);
        let block = pool.block(index).map(|block| canonical(&block));
        assert_eq!(block.as_deref(), Some(expected), "{cidr}, index {index}");
        assert_eq!(pool.indices(&net(expected)), Some(index..=index), "{cidr}, index {index}");
    }
}

#[test]
fn a_cidr_overlaps_a_range_of_indices_or_is_out_of_range() {
    for (cidr, mask, claim, expected) in [
        ("127.0.0.0/8", 16, "127.123.0.0/16", Some(123..=123)),
        ("127.0.0.0/8", 16, "127.168.0.0/16", Some(168..=168)),
        ("127.0.0.0/8", 16, "127.224.0.0/16", Some(224..=224)),
        ("be00::/8", 16, "beef::/16", Some(239..=239)),
        ("be00::/8", 16, "be68::/16", Some(104..=104)),
        ("192.168.0.0/16", 24, "127.168.224.0/24", None),
        ("127.0.0.0/8", 16, "127.0.0.0/8", Some(0..=255)),
        ("127.0.0.0/8", 16, "127.0.0.0/2", Some(0..=255)),
        ("2001:beef:1200::/40", 48, "2001:beef:1234::/34", Some(0..=255)),
        ("127.0.0.0/8", 32, "127.0.0.0/16", Some(0..=65535)),
        ("127.0.0.0/7", 16, "127.0.0.0/15", Some(256..=257)),
        ("127.0.0.0/7", 15, "127.0.0.0/15", Some(128..=128)),
        ("127.0.0.0/7", 18, "127.0.0.0/15", Some(1024..=1031)),
        ("2001:beef:7f00::/39", 48, "2001:beef:7f00::/47", Some(256..=257)),
        ("2001:beef:7f00::/39", 47, "2001:beef:7f00::/47", Some(128..=128)),
        ("2001:beef:7f00::/39", 50, "2001:beef:7f00::/47", Some(1024..=1031)),
    ] {
        let mut pool = pool(cidr, mask);
        assert_eq!(pool.indices(&net(claim)), expected, "{cidr}, {claim}");
        let overlapped = expected.map_or(0, |range| range.end() - range.start() + 1);
        assert_eq!(pool.occupy(&net(claim)), overlapped, "{cidr}, {claim}");
        assert_eq!(pool.used(), overlapped, "{cidr}, {claim}");
    }
}

#[test]
fn a_pool_of_one_block_gives_it_once_and_again_after_its_release() {
    for cidr in ["127.123.234.0/30", "beef:1234::/30"] {
        let mut pool = pool(cidr, 30);
        assert_eq!(take(&mut pool).as_deref(), Some(cidr));
        assert_eq!(take(&mut pool), None);
        assert_eq!(pool.release(&net(cidr)), 1);
        assert_eq!(take(&mut pool).as_deref(), Some(cidr));
        assert_eq!(take(&mut pool), None);
    }
}

#[test]
fn blocks_come_in_order_and_the_cursor_wraps() {
    let mut pool = pool("127.123.0.0/16", 24);
    for _ in 0..2 {
        assert_eq!(take_all(&mut pool), slices("127.123", 0..256));
        assert_eq!(
            slices("127.123", 0..256).iter().map(|b| pool.release(&net(b))).sum::<u128>(),
            256
        );
    }
    pool.occupy(&net("127.123.128.0/24"));
    for block in slices("127.123", 128..256) {
        pool.occupy(&net(&block));
    }
    assert_eq!(take_all(&mut pool), slices("127.123", 0..128));
}

#[test]
fn occupying_and_releasing_count_a_block_once() {
    let mut pool = pool("10.42.0.0/16", 24);
    let used: Vec<u128> = ["10.42.5.0/24", "10.42.9.0/24", "10.42.8.0/22", "10.42.9.0/24"]
        .map(|cidr| {
            pool.occupy(&net(cidr));
            pool.used()
        })
        .into();
    assert_eq!(used, [1, 2, 5, 5]);
    let used: Vec<u128> = ["10.42.9.0/24", "10.42.9.0/24", "10.42.4.0/22"]
        .map(|cidr| {
            pool.release(&net(cidr));
            pool.used()
        })
        .into();
    assert_eq!(used, [4, 4, 3]);
    assert_eq!(take_all(&mut pool).len(), 253);
}

#[test]
fn a_claim_of_many_blocks_is_passed_over() {
    let mut pool = pool("127.0.0.0/8", 32);
    pool.occupy(&net("127.0.0.0/16"));
    assert_eq!(take(&mut pool).as_deref(), Some("127.1.0.0/32"));
}

#[test]
fn ipv6_pools_of_17_bits_are_refused_and_of_16_bits_are_made() {
    assert!(Pool::new(net("beef:1234::/32"), 49, 16).is_err());
    assert_eq!(pool("beef:1234::/32", 48).blocks(), 65_536);
}

#[test]
fn ipv6_blocks_come_in_order() {
    for (cidr, mask, expected) in [
        ("2001:beef:1234:369b::/60", 64, ["2001:beef:1234:3690::/64", "2001:beef:1234:3691::/64"]),
        ("ace:cab:deca::/84", 98, ["ace:cab:deca::/98", "ace:cab:deca::4000:0/98"]),
    ] {
        let mut pool = pool(cidr, mask);
        assert_eq!(
            [take(&mut pool), take(&mut pool)],
            expected.map(|e| Some(e.to_owned())),
            "{cidr}"
        );
    }
}

#[test]
fn the_blocks_skipped_are_the_tries() {
    let mut pool = pool("10.0.0.0/16", 24);
    pool.occupy(&net("10.0.0.0/17"));
    let found = pool.take().unwrap();
    assert_eq!((canonical(&found.block).as_str(), found.skipped), ("10.0.128.0/24", 128));
    assert_eq!((pool.used(), pool.blocks()), (129, 256));
}

#[test]
fn counts_add_up_over_whole_pool_claims() {
    let mut pool = pool("10.0.0.0/16", 24);
    assert_eq!(take_all(&mut pool).len(), 256);
    assert_eq!((pool.release(&net("10.0.0.0/16")), pool.used()), (256, 0));
    assert_eq!((pool.occupy(&net("10.0.0.0/16")), pool.used()), (256, 256));
}
