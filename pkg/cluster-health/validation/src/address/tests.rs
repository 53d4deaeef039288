use proptest::prelude::*;

use super::*;

#[test]
fn an_address_is_a_host_with_or_without_port_or_a_url() {
    let rows = [
        ("api.example", "https://api.example:443"),
        ("api.example:6443", "https://api.example:6443"),
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("10.0.0.1:6443", "https://10.0.0.1:6443"),
        ("[fd00::1]", "https://[fd00::1]:443"),
        ("[fd00::1]:6443", "https://[fd00::1]:6443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("https://api.example", "https://api.example:443"),
        ("HTTPS://api.example/", "https://api.example:443"),
        ("http://api.example", "http://api.example:80"),
        ("https://api.example:6443/k8s/c-1/", "https://api.example:6443/k8s/c-1"),
    ];
    for (text, meant) in rows {
        assert_eq!(Address::parse(text).unwrap().to_string(), meant, "{text}");
    }
}

#[test]
fn an_address_that_cannot_be_used_is_refused_without_being_quoted() {
    let rows = [
        ("", "must be a host"),
        ("https://", "must be a host"),
        ("https:///path", "must be a host"),
        ("ftp://api.example", "scheme http or https"),
        ("api.example/path", "needs https://"),
        ("https://user:hunter2@api.example", "user name"),
        ("https://api.example:0", "port"),
        ("https://api.example:65536", "port"),
        ("https://api.example:", "port"),
        ("https://api.example/a?b", "query"),
        ("https://api.example/a#b", "fragment"),
        ("api example", "must be a host"),
        ("https://[fd00::1", "must be a host"),
    ];
    for (text, words) in rows {
        let error = Address::parse(text).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{text}: {error}");
    }
}

#[test]
fn host_port_and_path_make_an_address() {
    let rows = [
        (("10.0.0.1", 6443, ""), Ok("https://10.0.0.1:6443")),
        (("fd00::1", 6443, "/proxy/"), Ok("https://[fd00::1]:6443/proxy")),
        (("[fd00::1]", 6443, ""), Ok("https://[fd00::1]:6443")),
        ((" api.example ", 443, "/"), Ok("https://api.example:443")),
        (("api.example", 0, ""), Err("port")),
        (("", 6443, ""), Err("must be a host")),
        (("10.0.0.1:80", 6443, ""), Err("colon")),
        (("user@10.0.0.1", 6443, ""), Err("user name")),
    ];
    for ((host, port, base), expected) in rows {
        match (Address::of_parts(host, port, base), expected) {
            (Ok(address), Ok(meant)) => assert_eq!(address.to_string(), meant),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            other => panic!("{host} {port}: {other:?}"),
        }
    }
}

#[test]
fn what_comes_before_the_paths_of_the_api_is_kept() {
    let address = Address::parse("https://gate.example/k8s/c-1").unwrap();
    assert_eq!(address.request_target("/readyz"), "/k8s/c-1/readyz");
    assert_eq!(address.server(), "https://gate.example:443/");
    assert_eq!(address.authority(), "gate.example:443");
}

#[test]
fn two_writings_of_one_address_are_equal() {
    let parse = |text: &str| Address::parse(text).unwrap();
    for (one, other) in [
        ("a", "https://A:443/"),
        ("HTTP://a", "http://a:80"),
        ("fd00::1", "https://[fd00::1]"),
        ("https://a/b/", "https://a/b"),
    ] {
        assert_eq!(parse(one), parse(other), "{one}");
    }
    assert_ne!(parse("a"), parse("http://a"));
    assert_ne!(parse("https://a/b"), parse("https://a/c"));
}

proptest! {
    #[test]
    fn no_text_makes_an_address_without_a_port(text in prop_oneof![
        "\\PC*",
        "(http|https|HTTPS|ftp|)(://|:|)[a-z\\[\\]:@./?#0-9 %-]{0,12}(:[0-9]{0,6})?(/[a-z?#/ ]{0,4})?",
    ]) {
        if let Ok(address) = Address::parse(&text) {
            prop_assert!(address.server().port_u16().is_some_and(|port| port > 0));
            prop_assert!(address.server().host().is_some_and(|host| !host.is_empty()));
        }
    }
}
