use super::*;

#[test]
fn cidr_text_is_read_as_upstream_reads_it() {
    for (text, expected) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        (" \t10.0.0.0/8\n", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("192.168.5.219/28", "192.168.5.208/28"),
        ("010.000.09.0/24", "10.0.9.0/24"),
        ("0000000010.0.0.0/0008", "10.0.0.0/8"),
        ("1.2.3.4/32", "1.2.3.4/32"),
        ("1.2.3.4/0", "0.0.0.0/0"),
        ("2001:DB8:0:0::1/48", "2001:db8::/48"),
        ("2001:db8:85a3::8a2e:370:7334/50", "2001:db8:85a3::/50"),
        ("::1/0", "::/0"),
        ("fd00::/128", "fd00::/128"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("::ffff:0a01:0203/128", "10.1.2.3/32"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:010.001.0.0/112", "10.1.0.0/16"),
        ("64:ff9b::192.0.2.1/128", "64:ff9b::c000:201/128"),
        ("::ffff:10.0.0.0/95", "::fffe:0:0/95"),
    ] {
        let net = parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(canonical(&net), expected, "{text:?}");
    }
}

#[test]
fn text_that_is_not_a_cidr_is_refused_with_the_part_that_is_wrong() {
    for (text, expected) in [
        ("", "the prefix length is missing"),
        ("10.0.0.0", "the prefix length is missing"),
        ("/", "not an IPv4 or IPv6 address"),
        ("/24", "not an IPv4 or IPv6 address"),
        ("10.0.0/24", "not an IPv4 or IPv6 address"),
        ("10.0.0.0.0/24", "not an IPv4 or IPv6 address"),
        ("10.0.0.256/24", "not an IPv4 or IPv6 address"),
        ("10.0..0/24", "not an IPv4 or IPv6 address"),
        ("10.0.0.+1/24", "not an IPv4 or IPv6 address"),
        ("10.0.0.0x0/24", "not an IPv4 or IPv6 address"),
        ("fe80::1%eth0/64", "not an IPv4 or IPv6 address"),
        ("2001:db8::1::/64", "not an IPv4 or IPv6 address"),
        ("1:2:3:4:5:6:7::8/64", "not an IPv4 or IPv6 address"),
        ("::10.0.0.256/64", "not an IPv4 or IPv6 address"),
        ("::10.0.0.1:1/64", "not an IPv4 or IPv6 address"),
        ("node-1/24", "not an IPv4 or IPv6 address"),
        ("10.0.0.0 /24", "not an IPv4 or IPv6 address"),
        ("10.0.0.0/", "a number from 0 to 32"),
        ("10.0.0.0/33", "a number from 0 to 32"),
        ("10.0.0.0/-1", "a number from 0 to 32"),
        ("10.0.0.0/+8", "a number from 0 to 32"),
        ("10.0.0.0/8/8", "a number from 0 to 32"),
        ("10.0.0.0/255.0.0.0", "a number from 0 to 32"),
        ("10.0.0.0/8,fd00::/8", "a number from 0 to 32"),
        ("fd00::/129", "a number from 0 to 128"),
        ("fd00::/99999999999999999999", "a number from 0 to 128"),
    ] {
        let message = parse(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text:?}: {message}");
        assert!(message.contains(&format!("{text:?}")), "{text:?}: {message}");
    }
}

#[test]
fn an_error_quotes_only_the_beginning_of_a_long_text_and_escapes_it() {
    let message = parse(&format!("line\n{}", "é".repeat(1_000_000))).unwrap_err().to_string();
    assert!(message.contains("\"line\\né"), "{message}");
    assert!(message.len() < 300, "{}", message.len());
}
