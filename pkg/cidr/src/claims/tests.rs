use super::*;
use crate::parse;

fn net(text: &str) -> IpNet {
    parse(text).unwrap()
}

fn claims(cidrs: &[&str]) -> Claims<&'static str> {
    let mut claims = Claims::new();
    for cidr in cidrs {
        claims.insert(net(cidr), &"owner");
    }
    claims
}

fn texts<'a>(found: impl Iterator<Item = Claimed<'a, &'static str>>) -> Vec<String> {
    found.map(|claimed| crate::canonical(&claimed.net)).collect()
}

#[test]
fn the_end_of_a_claim_hides_none_of_the_same_length() {
    let mut claims = claims(&["10.0.0.0/15", "10.2.0.0/15", "fd00::/15"]);
    claims.remove(&net("10.2.0.0/15"), &"owner");
    assert_eq!(texts(claims.around(Prefix::of(&net("10.1.0.0/24")))), ["10.0.0.0/15"]);
    assert_eq!(texts(claims.around(Prefix::of(&net("fd00::/24")))), ["fd00::/15"]);
}

#[test]
fn only_prefix_lengths_in_use_are_looked_up() {
    let mut claims = claims(&["10.0.0.0/16", "10.1.0.0/16", "10.0.0.0/24", "fd00::/24"]);
    let lengths = |claims: &Claims<_>| claims.lengths.keys().copied().collect::<Vec<_>>();
    assert_eq!(lengths(&claims), [(Family::V4, 16), (Family::V4, 24), (Family::V6, 24)]);
    for cidr in ["10.0.0.0/16", "10.1.0.0/16", "10.0.0.0/24"] {
        claims.remove(&net(cidr), &"owner");
    }
    assert_eq!(lengths(&claims), [(Family::V6, 24)]);
}

#[test]
fn what_lies_inside_a_cidr_reaches_from_itself_to_its_last_address() {
    let inside = ["10.0.1.0/24", "10.0.1.0/32", "10.0.1.128/25", "10.0.1.255/32"];
    let claims =
        claims(&[&inside[..], &["10.0.0.255/32", "10.0.2.0/32", "::10.0.1.0/128"]].concat());
    assert_eq!(texts(claims.within(Prefix::of(&net("10.0.1.0/24")))), inside);
}
