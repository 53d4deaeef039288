//! Accepted and refused addresses of API servers.

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
        ("", "no host"),
        ("https://", "no host"),
        ("https:///path", "no host"),
        ("ftp://api.example", "neither http nor https"),
        ("api.example/path", "no scheme"),
        ("https://user:hunter2@api.example", "user name"),
        ("https://api.example:0", "port"),
        ("https://api.example:65536", "port"),
        ("https://api.example:", "port"),
        ("https://api.example/a?b", "query"),
        ("https://api.example/a#b", "fragment"),
        ("api example", "not a host"),
        ("https://[fd00::1", "not a host"),
    ];
    for (text, words) in rows {
        let problem = Address::parse(text).unwrap_err();
        assert_eq!(problem.code(), Code::BadEndpoint);
        assert!(problem.to_string().contains(words), "{text}: {problem}");
        assert!(!problem.to_string().contains("hunter2"));
    }
}

#[test]
fn host_port_and_path_make_an_address() {
    let rows = [
        (("10.0.0.1", 6443, ""), Ok("https://10.0.0.1:6443")),
        (("fd00::1", 6443, "/proxy/"), Ok("https://[fd00::1]:6443/proxy")),
        (("[fd00::1]", 6443, ""), Ok("https://[fd00::1]:6443")),
        ((" api.example ", 443, "/"), Ok("https://api.example:443")),
        (("api.example", 0, ""), Err("port 0")),
        (("", 6443, ""), Err("no host")),
        (("10.0.0.1:80", 6443, ""), Err("colon")),
        (("user@10.0.0.1", 6443, ""), Err("user name")),
    ];
    for ((host, port, base), expected) in rows {
        match (Address::of_parts(host, port, base), expected) {
            (Ok(address), Ok(meant)) => assert_eq!(address.to_string(), meant),
            (Err(problem), Err(words)) => {
                assert!(problem.to_string().contains(words), "{problem}");
            }
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

proptest! {
    #[test]
    fn no_text_makes_an_address_without_a_port(text in "\\PC*") {
        if let Ok(address) = Address::parse(&text) {
            prop_assert!(address.server().port_u16().is_some_and(|port| port > 0));
            prop_assert!(address.server().host().is_some_and(|host| !host.is_empty()));
        }
    }
}
